"""S2: our records are ours. Claims, decision ids and commit marks count only if a scheduler with our keys wrote them,
and while a scheduler runs its memory counts. The scenarios are played as on a cluster without our webhook."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from enbloc.api.meta import Obj
from enbloc.config import Config
from enbloc.gangs import claim_records
from enbloc.gangs.own_annotations import COMMITTED, DECISION, DIGEST, EXPECTED_START_DIGEST, MARKS
from enbloc.gangs.record_digests import SIMULATED, Keyring, new_keyring
from enbloc.sim.simulation import Records, control_plane
from support import manifests as m
from support.answers import Answer
from support.simulation import NO_EVICTIONS, lint, simulate

NODES = [m.node(f"n{index}", 8) for index in range(4)]
SLOTS = {f"evil-{index}": {f"n{index}": 1} for index in range(4)}
FORGED = {"version": 1, "until": 2**62, "slots": SLOTS}
NO_POD = {"labelSelector": {"matchLabels": {"no": "pod"}}, "topologyKey": "kubernetes.io/hostname"}
RESERVE = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 1, "reservedNodePercent": 100}}
RESERVING = {"actions": ["enqueue", "allocate", RESERVE]}


def evil(annotations: dict[str, str] | None = None) -> list[Obj]:
    """A gang whose affinity matches no pod: its claims would never be used."""
    group, *pods = m.gang("evil", 4, cpu=8, namespace="a")
    group["metadata"]["annotations"] = annotations or {}
    for pod in pods:
        pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NO_POD]}}
    return [group, *pods]


def forged(kind: str) -> dict[str, str]:
    return {f"enbloc.dev/claim-{kind}": json.dumps(FORGED | {"kind": kind})}


def annotations(answer: Answer, kind: str, name: str, namespace: str = "default") -> dict[str, str]:
    found: dict[str, str] = answer.obj(kind, name, namespace)["metadata"].get("annotations") or {}
    return found


def victim(at: str) -> list[Obj]:
    return m.gang("b", 4, cpu=8, namespace="b", at=at)


def in_a(step: Obj) -> Obj:
    step["target"]["namespace"] = "a"
    return step


def play(*documents: Any, **options: Any) -> Answer:
    return simulate(*documents, records=Records.AS_WRITTEN, **options)


def with_keys(keyrings: Sequence[Keyring]) -> Callable[[Any, Config], Any]:
    """The first scheduler has the first keyring, the one after a restart the next."""
    left = list(keyrings)
    return lambda store, config: control_plane(store, config, left.pop(0) if len(left) > 1 else left[0])


def warnings_on(answer: Answer, name: str) -> list[str]:
    return [
        event["message"]
        for event in answer.all("Event")
        if event["reason"] == "RecordRemoved" and event["involvedObject"]["name"] == name and event["type"] == "Warning"
    ]


# ---- claims


@pytest.mark.parametrize("kind", ["reserve", "preempt", "hold", "wave", "evicted"])
def test_s2_attack_t2_a_record_that_is_patched_in_claims_nothing(kind: str) -> None:
    """Attack A2c: one slot a node closed all nodes to gangs of equal priority. The record is removed."""
    late = in_a(m.patch("5s", "PodGroup", "evil", metadata={"annotations": forged(kind)}))
    answer = play(NODES, evil(), late, victim("10s"))
    assert answer.times("b-") == [10.0] * 4
    assert not annotations(answer, "PodGroup", "evil", "a").keys() & forged(kind).keys()
    assert len(warnings_on(answer, "evil")) == 1


@pytest.mark.parametrize("kind", ["reserve", "preempt", "hold", "wave", "evicted"])
def test_s2_attack_t2_a_record_that_was_forged_before_a_restart_claims_nothing(kind: str) -> None:
    """Attack A2d: the scheduler that starts finds it, and it does not verify."""
    answer = play(NODES, evil(forged(kind)), m.restart("5s"), victim("10s"), config=RESERVING)
    assert answer.times("b-") == [10.0] * 4
    assert not annotations(answer, "PodGroup", "evil", "a").keys() & forged(kind).keys()
    assert len(warnings_on(answer, "evil")) == 1


def test_s2_attack_t2_a_record_on_a_pod_claims_nothing() -> None:
    """Attack A3b: gangs without an object have their records on a pod."""
    pods = m.koordinator_gang("evil", 4, cpu=8, namespace="a")
    for pod in pods:
        pod["metadata"]["annotations"] |= forged("reserve")
        pod["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NO_POD]}}
    answer = play(NODES, pods, m.restart("5s"), victim("10s"), config=RESERVING)
    assert answer.times("b-") == [10.0] * 4
    assert all("enbloc.dev/claim-reserve" not in annotations(answer, "Pod", f"evil-{n}", "a") for n in range(4))


@pytest.mark.parametrize("kind", ["reserve", "preempt"])
def test_s2_records_of_kinds_that_no_action_makes_are_not_adopted(kind: str) -> None:
    """Attack A3c: a reservation, though `reserve` is not configured, in a file whose records are trusted."""
    answer = simulate(NODES, evil(forged(kind)), m.restart("5s"), victim("10s"), config=NO_EVICTIONS)
    assert answer.times("b-") == [10.0] * 4


@pytest.mark.parametrize("records", [Records.AS_WRITTEN, Records.TRUSTED])
def test_s2_p3_a_forged_record_of_evicted_gangs_protects_no_gang(records: Records) -> None:
    """`y` would be safe from `x`, had `x` been evicted for it."""
    digest = claim_records.digest_of("volcano/default/x")
    record = {"version": 1, "kind": "evicted", "until": 0, "slots": {}, "evicted": [digest]}
    group, *pods = m.gang("y", 4, cpu=8)
    group["metadata"]["annotations"] = {"enbloc.dev/claim-evicted": json.dumps(record)}
    high = m.gang("x", 4, cpu=8, priority="high", at="10s")
    answer = simulate(m.priority_class("high", 1), NODES, group, pods, high, records=records, until="20s")
    assert answer.times("x-") == ([10.0] * 4 if records is Records.AS_WRITTEN else [])


@pytest.mark.parametrize("restarts", [[], [m.restart("6s")]], ids=["running", "restarted"])
def test_s2_attack_t3_a_wave_record_with_huge_counts_claims_nothing(restarts: list[Obj]) -> None:
    """Four nodes with a million slots each: one object per slot took gigabytes."""
    bomb = {"kind": "wave", "until": 0, "version": 1, "slots": {"w": {f"n{index}": 10**6 for index in range(4)}}}
    late = in_a(
        m.patch("5s", "PodGroup", "evil", metadata={"annotations": {"enbloc.dev/claim-wave": json.dumps(bomb)}})
    )
    answer = play(NODES, evil(), late, restarts, victim("10s"))
    assert answer.times("b-") == [10.0] * 4


def test_s2_a_record_counts_on_its_own_object_alone() -> None:
    """A record that the scheduler wrote, copied to another gang of the tenant before a restart."""
    first = play(NODES, m.pod("busy", 8, nodeName="n0"), m.gang("g", 4, cpu=8), config=RESERVING, until="30s")
    text = annotations(first, "PodGroup", "g")["enbloc.dev/claim-reserve"]
    assert text.startswith("hmac:key-1:")
    copied = evil({"enbloc.dev/claim-reserve": text.replace("g-", "evil-")})
    answer = play(NODES, copied, m.restart("5s"), victim("10s"), config=RESERVING)
    assert answer.times("b-") == [10.0] * 4


def starving() -> list[Obj]:
    """`big` reserves n0 and n1, where pods run until 100 s; `small` would fit on n0 at 50 s and starts after `big`."""
    return [
        m.node("n0", 8),
        m.node("n1", 8),
        m.pod("a", 4, run_time="40s"),
        m.pod("c", 8, run_time="100s"),
        *m.gang("big", 2, cpu=8, at="1s", run_time="10s"),
        m.pod("small", 8, at="45s", run_time="10s"),
    ]


@pytest.mark.parametrize(
    "text",
    [None, "", "x", '{"kind":"reserve","until":0,"slots":{}}'],
    ids=["removed", "emptied", "garbled", "replaced"],
)
def test_s2_a_record_that_others_change_is_written_back(text: str | None) -> None:
    """The claim counts all the same, and the one after a restart finds it."""
    change = m.patch("20s", "PodGroup", "big", metadata={"annotations": {"enbloc.dev/claim-reserve": text}})
    answer = play(starving(), change, m.restart("30s"), config=RESERVING)
    assert answer.times("big-") == [100.0] * 2
    assert answer.at("small") == 110.0
    assert len(warnings_on(answer, "big")) == 1


def test_s2_keys_are_rotated_without_a_record_being_lost() -> None:
    """The scheduler after the restart signs with a new key and verifies with the old one; later the old one is gone."""
    old = new_keyring()
    both = Keyring({**old.keys, "key-2": b"2" * 32})
    answer = play(starving(), m.restart("20s"), config=RESERVING, plane=with_keys([old, both]))
    assert answer.times("big-") == [100.0] * 2
    assert answer.at("small") == 110.0
    assert not warnings_on(answer, "big")


def test_s2_a_lost_key_costs_the_reservation_and_nothing_else() -> None:
    """The record does not verify and is removed; the gang starves still and reserves again."""
    answer = play(starving(), m.restart("20s"), config=RESERVING, plane=with_keys([new_keyring(), new_keyring()]))
    assert answer.times("big-") == [100.0] * 2
    assert not answer.lines("evicted")


# ---- decision ids and commit marks


def half(annotations: dict[str, str], **more: Any) -> list[Obj]:
    """A gang of two of which one is bound by its author, with these annotations; the other fits nowhere."""
    group, first, second = m.gang("half", 2, cpu="1m", namespace="a", **more)
    first["spec"]["nodeName"] = "n0"
    first["metadata"]["annotations"] |= annotations
    second["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    return [group, first, second]


@pytest.mark.parametrize("restarts", [[], [m.restart("5s")]], ids=["running", "restarted"])
@pytest.mark.parametrize(
    "marks",
    [{DECISION: "x"}, {DECISION: "x", DIGEST: f"key-1:{'0' * 32}"}],
    ids=["without digest", "with a forged one"],
)
def test_s2_attack_t4_a_forged_decision_id_closes_no_node(marks: dict[str, str], restarts: list[Obj]) -> None:
    """Attack A4a: all nodes that the other member could use were closed for `partialGangTimeout`."""
    answer = play(NODES, half(marks), restarts, m.gang("b", 3, cpu=8, namespace="b", at="10s"), until="200s")
    assert answer.times("b-") == [10.0] * 3
    assert not answer.lines("evicted")


@pytest.mark.parametrize("restarts", [[], [m.restart("25s")]], ids=["running", "restarted"])
def test_s2_attack_t4_a_mark_that_was_taken_away_and_a_new_gang_close_no_node(restarts: list[Obj]) -> None:
    """Attack A4e: a single pod is bound; then its mark is removed and it joins a gang that is not complete."""
    group = m.podgroup("late", 2, at="15s", namespace="a")
    other = m.pod("late-1", 64, group="late", at="15s", namespace="a")
    change = {"annotations": {COMMITTED: None, "scheduling.k8s.io/group-name": "late"}}
    answer = play(
        NODES,
        m.pod("single", "1m", namespace="a"),
        group,
        other,
        in_a(m.patch("20s", "Pod", "single", metadata=change)),
        restarts,
        m.gang("b", 3, cpu=8, namespace="b", at="30s"),
        until="200s",
    )
    assert answer.times("b-") == [30.0] * 3
    assert not answer.lines("evicted")


def test_s2_attack_t4_a_member_that_moves_to_another_gang_brings_no_decision_along() -> None:
    """A member that was bound before the committing one carries a decision id and no mark."""
    change = {"annotations": {"scheduling.k8s.io/group-name": "late"}}
    answer = play(
        NODES,
        m.gang("first", 2, cpu="1m", namespace="a"),
        m.podgroup("late", 2, at="15s", namespace="a"),
        m.pod("late-1", 64, group="late", at="15s", namespace="a"),
        in_a(m.patch("20s", "Pod", "first-0", metadata=change)),
        m.gang("b", 2, cpu=8, namespace="b", at="30s"),
        until="200s",
    )
    assert answer.times("b-") == [30.0] * 2
    assert not answer.lines("evicted")


def test_s2_marks_that_others_change_are_written_back() -> None:
    changed = {COMMITTED: "9", DECISION: "x", DIGEST: None}
    answer = play(NODES, m.gang("g", 2), m.patch("5s", "Pod", "g-1", metadata={"annotations": changed}))
    marks = annotations(answer, "Pod", "g-1")
    assert marks.keys() >= set(MARKS)
    assert (marks[COMMITTED], marks[DECISION]) == ("2", annotations(answer, "Pod", "g-0")[DECISION])
    assert len(warnings_on(answer, "g-1")) == 1


def test_s2_a_forged_commit_mark_grants_nothing() -> None:
    """A gang is not satisfied because one of its bound pods says so: the rest starts together or not at all."""
    group, first, *rest = m.gang("g", 3, cpu=8, minimum=3)
    first["spec"]["nodeName"] = "n0"
    first["metadata"]["annotations"] |= {COMMITTED: "3", DECISION: "x", DIGEST: f"key-1:{'0' * 32}"}
    answer = play(NODES[:2], group, first, rest, m.restart("5s"), until="100s")
    assert not answer.bound("g-1")
    assert not answer.bound("g-2")


@pytest.mark.parametrize("lost", ["digests", "keys"])
def test_s2_records_of_version_0_1_and_lost_keys_get_no_running_gang_evicted(lost: str) -> None:
    """A gang of four that was satisfied and has lost two members: its marks do not verify after the restart."""
    gang = m.gang("g", 4, cpu=8)
    gone = [m.step("10s", "delete", "Pod", f"g-{n}") for n in (0, 3)]
    unsigned = [m.patch("9s", "Pod", f"g-{n}", metadata={"annotations": {DIGEST: None}}) for n in range(4)]
    blocker = [m.pod("late", 8, at="11s"), m.pod("later", 8, at="11s")]
    keyrings = [SIMULATED, new_keyring()] if lost == "keys" else [SIMULATED]
    documents = [*NODES, *gang, *gone, *blocker, m.restart("12s"), m.pod("g-9", 8, group="g", at="13s")]
    if lost == "digests":
        documents += unsigned
    answer = play(documents, until="300s", plane=with_keys(keyrings))
    assert not answer.lines("evicted")


def test_s2_g11_evicts_no_gang_with_a_member_that_was_not_bound_by_us() -> None:
    """Every bound member must carry a decision id of ours. Here one is bound by its author."""
    group, first, second, third = m.gang("g", 3, cpu=8)
    first["spec"]["nodeName"] = "n0"
    third["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "64"}}
    second["spec"]["nodeName"] = "n1"
    second["metadata"]["annotations"][DECISION] = "1"
    answer = simulate(NODES, group, first, second, third, m.pod("p", 8, at="5s"), until="200s", records=Records.TRUSTED)
    assert answer.at("p") == 5.0
    assert not answer.lines("evicted")


# ---- expected starts


def test_s2_an_expected_start_that_others_change_is_written_back() -> None:
    key = "enbloc.dev/expected-start"
    documents = [
        m.node("n0", 8),
        m.pod("a", 8, run_time="100s", annotations={"enbloc.dev/expected-duration": "100s"}),
        *m.gang("g", 2, cpu=4, at="1s"),
    ]
    change = m.patch("20s", "PodGroup", "g", metadata={"annotations": {key: "2000-01-01T00:00:00Z"}})
    plain = play(documents, config=RESERVING, until="50s")
    assert EXPECTED_START_DIGEST in annotations(plain, "PodGroup", "g")
    answer = play(documents, change, config=RESERVING, until="50s")
    assert annotations(answer, "PodGroup", "g") == annotations(plain, "PodGroup", "g")


# ---- admission


def test_s2_admission_strips_our_annotations_from_what_users_create() -> None:
    answer = simulate(NODES, evil(forged("reserve") | {"mine": "kept"}), until="1s")
    assert annotations(answer, "PodGroup", "evil", "a") == {"mine": "kept"}
    assert any("enbloc.dev/claim-reserve" in line and "removed" in line for line in answer.warnings())


def test_s2_n5_lint_strips_our_annotations_as_admission_does() -> None:
    linted = lint(evil(forged("reserve") | {"mine": "kept"}), m.pod("p", annotations={DECISION: "x", "mine": "kept"}))
    groups = [obj for obj in linted.objects if obj["kind"] == "PodGroup"]
    assert [obj["metadata"]["annotations"] for obj in (*groups, linted.objects[-1])] == [{"mine": "kept"}] * 2
    said = [warning.message for warning in linted.warnings]
    assert any("enbloc.dev/claim-reserve" in text and "removed" in text for text in said)
    assert any(DECISION in text and "removed" in text for text in said)


def test_s2_lint_leaves_our_annotations_on_the_objects_of_a_cluster() -> None:
    bound = m.pod("p", annotations={DECISION: "x"})
    bound["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    linted = lint(bound)
    assert linted.objects[-1]["metadata"]["annotations"] == {DECISION: "x"}
    assert not linted.warnings


def test_s2_admission_refuses_changes_of_our_annotations() -> None:
    change = m.patch("5s", "Pod", "g-1", metadata={"annotations": {COMMITTED: "9"}})
    answer = simulate(NODES, m.gang("g", 2), change)
    assert "enbloc.dev/committed" in answer.rejected("g-1")
    assert annotations(answer, "Pod", "g-1")[COMMITTED] == "2"


def test_s2_our_own_writes_are_admitted() -> None:
    answer = simulate(starving(), config=RESERVING)
    assert answer.lines("reserved")
    assert not answer.lines("rejected")
