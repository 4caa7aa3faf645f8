"""S2: which records count, by digest until a scheduler leads and by memory from then on."""

from __future__ import annotations

import tracemalloc
import zlib
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.meta import Obj, annotations_of
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.hints import EXPECTED_START
from enbloc.gangs.model import GangKey
from enbloc.gangs.own_annotations import COMMITTED, DECISION, DIGEST, MARKS, OWN_ANNOTATIONS
from enbloc.gangs.record_digests import SIMULATED, TRUSTING, Keyring, new_keyring
from enbloc.runtime.own_records import NO_MARKS, OwnRecords
from support import manifests as m

GANG, OTHER = GangKey("volcano", "default", "g"), GangKey("volcano", "default", "other")
BODY = claim_records.write(Record(ClaimKind.RESERVE, 7, {"g-0": {"n1": 1}}))
KEY = ClaimKind.RESERVE.annotation


def group(annotations: dict[str, Any] | None = None, uid: str = "u1") -> Obj:
    made = m.podgroup("g", 2)
    return {**made, "metadata": {**made["metadata"], "uid": uid, "annotations": annotations or {}}}


def pod(annotations: dict[str, Any] | None = None, node: str = "n1", uid: str = "p1") -> Obj:
    made = m.pod("g-0", nodeName=node) if node else m.pod("g-0")
    return {**made, "metadata": {**made["metadata"], "uid": uid, "annotations": annotations or {}}}


def restarted(keyring: Keyring = SIMULATED) -> OwnRecords:
    return OwnRecords(keyring)


def leading(*objects: Obj) -> OwnRecords:
    records = restarted()
    for one in objects:
        records.authentic(one)
    records.lead()
    records.foreign(0.0)
    return records


def claim_text(records: OwnRecords, obj: Obj) -> dict[str, str | None]:
    return records.claim(obj, ClaimKind.RESERVE, BODY)


def counts(records: OwnRecords, obj: Obj) -> dict[str, str]:
    """The texts of records that count, without empty ones."""
    found = annotations_of(records.authentic(obj)).items()
    return {key: text for key, text in found if text and key in OWN_ANNOTATIONS - set(MARKS)}


# ---- claims


def test_s2_what_one_scheduler_wrote_counts_for_the_next() -> None:
    written = claim_text(leading(), group())
    assert counts(restarted(), group(written)) == written


def test_s2_a_record_counts_on_no_other_object_and_with_no_other_key() -> None:
    written = claim_text(leading(), group())
    assert counts(restarted(), group(written, uid="u2")) == {}
    assert counts(restarted(new_keyring()), group(written)) == {}
    assert counts(restarted(), group({ClaimKind.HOLD.annotation: written[KEY]})) == {}
    assert counts(restarted(TRUSTING), group({KEY: BODY})) == {KEY: BODY}


def test_s2_what_does_not_verify_is_removed_by_the_one_that_leads() -> None:
    records = restarted()
    assert counts(records, group({KEY: BODY, "mine": "x"})) == {}
    records.lead()
    ((ref, uid, change),) = records.foreign(0.0)
    assert (ref.name, uid, change) == ("g", "u1", {KEY: None})
    assert records.foreign(0.0) == []


def test_s2_a_standby_follows_what_the_leader_writes() -> None:
    standby, leader = restarted(), leading()
    first = claim_text(leader, group())
    second = leader.claim(group(), ClaimKind.RESERVE, BODY.replace("n1", "n2"))
    for written in (first, second, {}):
        assert counts(standby, group(written)) == written
    assert standby.foreign(0.0) == []


def test_s2_while_one_leads_memory_counts_and_changes_are_written_back() -> None:
    records = leading()
    written = claim_text(records, group())
    assert counts(records, group(written)) == written
    for forged in ({}, {KEY: BODY}, {KEY: "x"}):
        assert counts(records, group(forged)) == written
        assert [change for _, _, change in records.foreign(0.0)] == [written]


def test_s2_an_older_echo_is_not_taken_for_a_change() -> None:
    records = leading()
    first = claim_text(records, group())
    second = records.claim(group(), ClaimKind.RESERVE, BODY.replace("n1", "n2"))
    for seen in ({}, first, second):
        counts(records, group(seen))
    assert records.foreign(0.0) == []
    counts(records, group(first))  # once the second was seen, the first can only have been written by others
    assert [change for _, _, change in records.foreign(0.0)] == [second]


def test_s2_a_write_that_was_refused_is_not_restored() -> None:
    records = leading()
    written = claim_text(records, group())
    records.refused("u1", written)
    assert counts(records, group()) == {}
    assert records.foreign(0.0) == []


def test_s2_a_removal_that_was_refused_and_carried_out_is_not_taken_for_a_change() -> None:
    records = leading()
    written = claim_text(records, group())
    counts(records, group(written))
    records.refused("u1", records.claim(group(), ClaimKind.RESERVE, None))  # its answer was lost
    assert counts(records, group(written)) == written, "the object still carries it"
    assert counts(records, group()) == {}
    assert records.foreign(0.0) == []


def test_s2_a_change_that_is_taken_back_in_time_is_not_written_back() -> None:
    records = leading()
    written = claim_text(records, group())
    for seen in (written, {}, written):
        counts(records, group(seen))
    assert records.foreign(0.0) == []


def test_s2_nothing_is_kept_of_objects_that_are_gone() -> None:
    records = leading()
    claim_text(records, group())
    records.expected_start(group(), "2026-01-01T00:00:00Z")
    records.marks(pod(), GANG)
    counts(records, group({KEY: "x"}))
    for uid in ("u1", "p1"):
        records.gone(uid)
    assert not records._records
    assert not records._marks
    assert records.foreign(0.0) == []


def test_s2_an_expected_start_counts_if_it_verifies() -> None:
    written = leading().expected_start(group(), "2026-01-01T00:00:00Z")
    assert counts(restarted(), group(written)) == written
    assert counts(restarted(), group({**written, EXPECTED_START: "2027-01-01T00:00:00Z"})) == {}


# ---- marks


def test_s2_marks_count_for_their_pod_node_and_gang() -> None:
    bound = restarted().bound_with("p1", "n1", GANG, "d1", "2")
    assert restarted().marks(pod(bound), GANG) == ("d1", "2")
    assert restarted().marks(pod(bound, uid="p2"), GANG) == NO_MARKS
    assert restarted().marks(pod(bound, node="n2"), GANG) == NO_MARKS
    assert restarted().marks(pod(bound), OTHER) == NO_MARKS
    assert restarted().marks(pod(bound, node=""), GANG) == NO_MARKS
    assert restarted(new_keyring()).marks(pod(bound), GANG) == NO_MARKS
    assert restarted(TRUSTING).marks(pod({DECISION: "x"}), GANG) == ("x", "")


@pytest.mark.parametrize("change", [{COMMITTED: None}, {COMMITTED: "9"}, {DECISION: "x"}, {DIGEST: None}])
def test_s2_marks_of_which_one_was_changed_do_not_count(change: dict[str, str | None]) -> None:
    bound = {**restarted().bound_with("p1", "n1", GANG, "d1", "2"), **change}
    texts = {key: text for key, text in bound.items() if text is not None}
    records = restarted()
    assert records.marks(pod(texts), GANG) == NO_MARKS
    assert records.is_forged("p1") is (DIGEST in texts)


def test_s2_marks_that_do_not_verify_at_the_start_stay_where_they_are() -> None:
    """They may be of version 0.1, or of a key that is gone."""
    records = restarted()
    records.marks(pod({DECISION: "d1", COMMITTED: "2"}), GANG)
    records.lead()
    records.marks(pod({DECISION: "d1", COMMITTED: "2"}), GANG)
    assert records.foreign(0.0) == []
    assert not records.is_forged("p1")


def test_s2_a_pod_that_gets_the_mark_later_keeps_its_decision() -> None:
    records = leading()
    bound = records.bound_with("p1", "n1", GANG, "d1", "")
    assert records.marks(pod(bound), GANG) == ("d1", "")
    marked = records.marked("p1", GANG, "2")
    assert records.marks(pod(bound), GANG) == ("d1", "")  # not written yet
    assert records.marks(pod({**bound, **marked}), GANG) == ("d1", "2")
    assert records.foreign(0.0) == []
    assert restarted().marks(pod({**bound, **marked}), GANG) == ("d1", "2")


def test_s2_a_decision_that_does_not_verify_is_not_signed_with_the_mark() -> None:
    records = restarted()
    records.marks(pod({DECISION: "forged"}), GANG)
    records.lead()
    marked = records.marked("p1", GANG, "2")
    assert marked[DECISION] is None
    texts = {key: text for key, text in marked.items() if text is not None}
    assert restarted().marks(pod(texts), GANG) == ("", "2")


def test_s2_marks_that_are_changed_while_it_leads_are_written_back() -> None:
    records = leading()
    bound = records.bound_with("p1", "n1", GANG, "d1", "2")
    records.marks(pod(bound), GANG)
    assert records.marks(pod({}), GANG) == ("d1", "2")
    assert [change for _, _, change in records.foreign(0.0)] == [bound]
    assert records.marks(pod({**bound, COMMITTED: "9"}), GANG) == ("d1", "2")
    assert [change for _, _, change in records.foreign(0.0)] == [bound]


# ---- any content


BOMB = (
    "zlib:"
    + b64encode(zlib.compress(b'{"kind":"reserve","until":0,"slots":{"a":{' + b" " * 2**24 + b"}}}", 1)).decode()
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.binary(max_size=200).map(lambda raw: raw.decode("latin-1")),
    st.sampled_from([BODY, BOMB, "hmac:", "hmac:key-1:", f"hmac:key-1:{'0' * 32}:{BODY}", "[" * 10**5, "9" * 10**5]),
    st.builds("hmac:key-1:{}:{}".format, st.text("0123456789abcdef", max_size=40), st.text(max_size=100)),
)


VERSIONS = st.lists(st.dictionaries(st.sampled_from(sorted(OWN_ANNOTATIONS)), TEXTS), min_size=1, max_size=4)


@given(VERSIONS, st.booleans())
def test_s2_fuzz_no_content_that_was_not_signed_counts(versions: list[dict[str, str]], leads: bool) -> None:
    """And none is decoded: a record is decompressed after its digest was verified."""
    records = leading() if leads else restarted()
    decoded: list[str] = []
    plain = claim_records._decoded
    claim_records._decoded = lambda text: decoded.append(text) or plain(text)  # type: ignore[func-returns-value]
    try:
        for annotations in versions:
            assert counts(records, group(annotations)) == {}
            assert records.marks(pod(annotations), GANG) == NO_MARKS
        assert not decoded
    finally:
        claim_records._decoded = plain
    for _, _, change in records.foreign(0.0):
        assert set(change.values()) == {None} or change.keys() <= set(MARKS)


@pytest.mark.parametrize("text", [BOMB, "x" * 2**18, "hmac:key-1:" + "0" * 2**18], ids=["bomb", "long", "long digest"])
def test_s2_adoption_allocates_no_more_than_the_text_has(text: str) -> None:
    """Operations are counted as memory here: at most a few copies of the annotation, whatever it says."""
    obj = group({KEY: text})
    tracemalloc.start()
    try:
        restarted().authentic(obj)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(text) + 50_000
