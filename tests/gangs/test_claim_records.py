"""The record of claims: what was written is read, and what another writer put over it is nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import zlib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from enbloc.gangs.claim_records import (
    ANNOTATIONS,
    NAMES_CHARS,
    OBJECT_BYTES,
    RECORDS_BYTES,
    ClaimKind,
    Record,
    by_role,
    digest_of,
    fits,
    is_ours,
    read,
    read_all,
    room_beside,
    sealed,
    shortened,
    with_nodes,
    write,
)
from enbloc.gangs.record_digests import SIMULATED

GOOD = {"kind": "wave", "until": 5, "slots": {"work": {"n1": 2}}}


def test_as_it_is_written() -> None:
    """The same room gives the same text, in whatever order it was counted: it is written only when it changes."""
    one = write(Record(ClaimKind.WAVE, 5, {"b": {"n2": 1, "n1": 2}, "a": {}}))
    other = write(Record(ClaimKind.WAVE, 5, {"a": {}, "b": {"n1": 2, "n2": 1}}))
    slots = '{"a":{},"b":{"n1":2,"n2":1}}'
    assert one == other == f'{{"kind":"wave","until":5,"slots":{slots},"version":1,"clock":0,"held":false}}'


@given(
    st.builds(
        Record,
        st.sampled_from(ClaimKind),
        st.integers(-(2**63), 2**63),
        st.dictionaries(st.text(), st.dictionaries(st.text(), st.integers(1, 1000))),
    )
)
def test_what_is_written_reads_back(record: Record) -> None:
    assume(fits(record))  # one that is too large is not written (R1)
    assert read(write(record)) == record
    text = sealed(SIMULATED, "uid", record.kind, write(record))
    assert read(text) == record
    assert is_ours(SIMULATED, "uid", record.kind, text)
    assert not is_ours(SIMULATED, "another", record.kind, text)
    assert not is_ours(SIMULATED, "uid", record.kind, text + " ")
    assert not is_ours(SIMULATED, "uid", record.kind, write(record))


@pytest.mark.parametrize(
    "change",
    [
        {"until": None},
        {"until": "5"},
        {"until": 5.5},
        {"kind": 1},
        {"kind": "other"},
        {"version": 2},
        {"slots": []},
        {"slots": {"work": 2}},
        {"slots": {"work": {"n1": "2"}}},
        {"slots": {"work": {"n1": 0}}},
        {"slots": {"work": {"n1": -1}}},
        {"slots": {"work": {"n1": 10**5 + 1}}},
        {"slots": {"work": {"n1": 60_000, "n2": 60_000}}},
        {"slots": {"work": {"n1": 1.5}}},
        {"more": 1},
    ],
)
def test_a_bad_record_is_none(change: dict[str, object]) -> None:
    assert read(json.dumps(GOOD)) is not None
    assert read(json.dumps({**GOOD, **change})) is None


@pytest.mark.parametrize("lacking", sorted(GOOD))
def test_an_incomplete_record_is_none(lacking: str) -> None:
    assert read(json.dumps({key: value for key, value in GOOD.items() if key != lacking})) is None


@pytest.mark.parametrize(
    "text",
    ["", " ", "{", "null", "[]", "7", '"wave"', "\ud800", '{"kind":"\ud800"}', "[" * 100_000, '{"kind":' * 30_000],
    ids=lambda text: ascii(text)[:20],
)
def test_garbage_is_none(text: str) -> None:
    assert read(text) is None


def test_what_is_too_long_was_not_written_by_us() -> None:
    long = json.dumps({**GOOD, "slots": {"work": {f"node-{i}": 1 for i in range(30_000)}}})
    assert read(long) is None


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    read(text)


def test_r1_a_record_of_5000_pods_is_compressed_and_reads_back() -> None:
    slots = {f"train-worker-{index}": {f"node-{index * 7919 % 2000}.example.internal": 1} for index in range(5_000)}
    record = Record(ClaimKind.RESERVE, 0, slots)
    text = write(record)
    assert fits(record)
    assert len(text) < 64 * 1024
    assert read(text) == record


def test_s2_what_inflates_beyond_any_record_is_none() -> None:
    bomb = base64.b64encode(zlib.compress(b" " * (64 * 1024 * 1024))).decode()
    assert read(f"zlib:{bomb}") is None
    assert read("zlib:no base64") is None
    assert read("zlib:" + base64.b64encode(b"no zlib").decode()) is None


def test_one_record_a_kind_and_that_of_an_earlier_version() -> None:
    hold = Record(ClaimKind.HOLD, 7, {"a-0": {"n": 1}})
    reserve = Record(ClaimKind.RESERVE, 0, {"a-1": {"m": 1}})
    written = {record.kind.annotation: write(record) for record in (hold, reserve)}
    assert read_all(written) == {ClaimKind.HOLD: hold, ClaimKind.RESERVE: reserve}
    assert read_all({ClaimKind.HOLD.annotation: write(reserve)}) == {}, "a record under another kind's key"
    legacy = '{"kind":"preempt","until":0,"slots":{"a-0":{"n":1}}}'
    assert read_all({"enbloc.dev/claims": legacy}).keys() == {ClaimKind.PREEMPT}


def _random_name(draw: random.Random, length: int = 253) -> str:
    return "".join(draw.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


@pytest.mark.parametrize("kind", ClaimKind)
def test_r1_a_record_of_5000_long_names_has_digests_in_their_place(kind: ClaimKind) -> None:
    draw = random.Random(5)
    nodes = [_random_name(draw) for _ in range(5_000)]
    pods = [_random_name(draw) for _ in range(5_000)]
    slots = dict(zip(pods, ({node: 1} for node in nodes), strict=True))
    if not kind.names_pods:
        slots = {"work": dict.fromkeys(nodes, 1)}
    plain = Record(kind, 0, slots)
    record = shortened(plain)
    assert record.is_brief
    assert fits(record)
    found = read(write(record))
    assert found == record, "what is written is what is read"
    assert found is not None
    named = with_nodes(found, [*reversed(nodes), "another"])
    assert {name: named.places(name) for name in slots} == slots
    assert named.places("unknown") == {}


def test_a_record_of_short_names_is_written_in_full() -> None:
    record = Record(ClaimKind.RESERVE, 0, {f"pod-{index}": {f"node-{index}": 1} for index in range(5_000)})
    assert shortened(record) is record
    assert with_nodes(record, ["node-1"]) is record
    assert record.places("pod-7") == {"node-7": 1}


def test_r1_a_node_that_is_gone_stays_a_digest() -> None:
    record = shortened(Record(ClaimKind.RESERVE, 0, {"p" * NAMES_CHARS: {"n": 1, "m": 2}}))
    assert with_nodes(record, ["m"]).places("p" * NAMES_CHARS) == {digest_of("n"): 1, "m": 2}


def _of_roles(roles: int, pods: int = 5_000) -> Record:
    draw = random.Random(7)
    slots: dict[str, dict[str, int]] = {_random_name(draw, 63): {} for _ in range(roles)}
    for index in range(pods):
        list(slots.values())[index % roles][_random_name(draw)] = 1
    return Record(ClaimKind.WAVE, 0, slots)


@pytest.mark.parametrize("roles", [500, 2_500])
def test_d5_a_record_of_5000_pods_in_many_roles_is_short_and_reads_back(roles: int) -> None:
    plain = _of_roles(roles)
    record = shortened(plain)
    text = write(record)
    assert len(text) < 96 * 1024
    found = read(text)
    assert found == record
    nodes = [node for places in plain.slots.values() for node in places]
    assert found is not None
    assert by_role(with_nodes(found, nodes), [*reversed(plain.slots)]) == plain.slots


def test_d5_a_brief_record_that_names_its_roles_in_full_is_read() -> None:
    """As versions before this one wrote it."""
    record = Record(ClaimKind.WAVE, 0, {"work": {digest_of("n"): 1}}, brief=True)
    assert by_role(record, ["work", "master"]) == {"work": {digest_of("n"): 1}}


def test_r1_records_may_have_what_other_annotations_leave() -> None:
    assert room_beside({}) == RECORDS_BYTES
    assert room_beside({"a": "x" * 1000}) == RECORDS_BYTES
    assert room_beside(dict.fromkeys(ANNOTATIONS, "x" * 60_000)) == RECORDS_BYTES, "they are the records"
    assert room_beside({"aa": "x" * 100_000}) == OBJECT_BYTES - 100_002
    assert room_beside({"aa": "ä" * 100_000}) == OBJECT_BYTES - 200_002, "bytes, not characters"
    assert room_beside({"a": "x" * 300_000}) == 0


@pytest.mark.parametrize(("pods", "nodes"), [(15_000, 15_000), (20_000, 10_000), (25_000, 5_000)])
def test_r1_a_record_of_the_largest_clusters_fits_on_one_object(pods: int, nodes: int) -> None:
    """Kubernetes is built for 5,000 nodes; the largest on offer have 15,000. How long the names are does not matter."""
    order = random.Random(3).sample(range(pods), pods)
    slots = {f"{pod:0200}": {f"{number % nodes:0200}": 1} for pod, number in enumerate(order)}
    record = shortened(Record(ClaimKind.RESERVE, 0, slots))
    assert fits(record)
    text = write(record)
    assert len(text) <= 192 * 1024
    assert read(text) == record


def test_a_brief_record_of_an_earlier_version_is_read() -> None:
    """Its digests had 8 characters, and it was not packed."""

    def digest(name: str) -> str:
        return base64.urlsafe_b64encode(hashlib.blake2b(name.encode(), digest_size=6).digest()).decode()

    slots = {digest("pod"): {digest("node"): 1}}
    written = json.dumps({"kind": "reserve", "until": 0, "slots": slots, "version": 1, "brief": True})
    for text in (written, "zlib:" + base64.b64encode(zlib.compress(written.encode())).decode()):
        record = read(text)
        assert record is not None
        assert with_nodes(record, ["other", "node"]).places("pod") == {"node": 1}


def test_s2_a_packed_record_that_is_none_is_none() -> None:
    record = shortened(Record(ClaimKind.RESERVE, 0, {"p" * NAMES_CHARS: {"n": 1}}))
    text = write(record)
    assert text.startswith("packed:")
    assert read(text) == record
    bomb = base64.b85encode(zlib.compress(b" " * (64 * 1024 * 1024))).decode()
    for bad in ("packed:", "packed:ä", "packed:\x00", f"packed:{bomb}", text[:-5], text[:-1] + "!", f"{text}00000"):
        assert read(bad) is None, bad[:40]


def test_r1_a_record_fits_only_with_those_of_other_kinds() -> None:
    one = shortened(Record(ClaimKind.RESERVE, 0, {f"{index:0200}": {f"n{index:099}": 1} for index in range(8_000)}))
    size = len(write(one))
    assert RECORDS_BYTES / 3 < size < RECORDS_BYTES / 2
    others = [shortened(Record(kind, 0, one.slots, brief=True)) for kind in (ClaimKind.HOLD, ClaimKind.PREEMPT)]
    assert fits(one)
    assert fits(one, others[:1])
    assert not fits(one, others)
    assert fits(one, others, 4 * size)
    assert not fits(one, others, 3 * size)
    assert not fits(one, (), size - 1)
    assert not fits(one, (), 0)


@given(st.integers(0, 400), st.integers(3, 253), st.sampled_from(ClaimKind))
def test_r1_no_record_fits_into_less_than_its_text(count: int, length: int, kind: ClaimKind) -> None:
    """Whether it is compressed to find out or not, and however little its names can be compressed."""
    draw = random.Random(count * 1000 + length)
    slots = {_random_name(draw, length): {_random_name(draw, length): 1} for _ in range(count)}
    record = shortened(Record(kind, 0, slots))
    assert not fits(record, (), len(write(record)) - 1)
