"""The registry: one claim of a kind a gang, one record a gang and kind, slots that follow their pods."""

from __future__ import annotations

import msgspec
import pytest

from enbloc.engine.claims.claim import RECREATION_NS, Claim, Slot
from enbloc.engine.claims.placeholders import make_placeholders
from enbloc.engine.events import EventKind
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs.claim_records import SLOTS, ClaimKind, Record
from enbloc.gangs.model import Template
from engine.claims.scenes import (
    CANNOT_START,
    LACKS_MEMBERS,
    SECOND_NS,
    Scene,
    group,
    name_of,
    pods_of,
    recreated,
    small,
)
from support import manifests as m

KINDS = [ClaimKind.RESERVE, ClaimKind.PREEMPT]


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_is_stored_and_its_record_decided(kind: ClaimKind) -> None:
    scene = small()
    made = scene.make(kind, g_0="n", g_1="m")
    assert scene.claims.of(scene.gang(), kind) is made
    assert scene.claims.all(kind) == [made]
    assert list(scene.claims.every()) == [made]
    record = Record(kind, 0, {"g-0": {"n": 1}, "g-1": {"m": 1}})
    assert [(one.kind, one.record, one.reason) for one in scene.decided] == [(kind, record, "Made")]
    assert scene.record(kind) == record, "assumed before the API confirms it"
    assert scene.begin(1) == [], "nothing changed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_has_at_most_one_claim_of_a_kind(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="n")
    second = scene.make(kind, g_0="m", g_1="m")
    assert scene.claims.all(kind) == [second]
    assert scene.free_cpu("n") == 4, "the first gave its room back"
    assert scene.claims.reservations.nodes() == ({"m"} if kind is ClaimKind.RESERVE else set())
    assert scene.free_cpu("m") == (4 if kind is ClaimKind.RESERVE else 2)


def test_two_kinds_do_not_overwrite_each_others_record() -> None:
    scene = small()
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    scene.make(ClaimKind.PREEMPT, g_0="m", g_1="m")
    assert set(scene.gang().status.claims) == {ClaimKind.RESERVE, ClaimKind.PREEMPT}
    assert scene.claims.end(scene.gang(), ClaimKind.PREEMPT, "Ended", "for a test")
    assert set(scene.gang().status.claims) == {ClaimKind.RESERVE}
    assert scene.claims.of(scene.gang(), ClaimKind.RESERVE) is not None


def test_a_claim_whose_record_would_be_too_long_is_not_made() -> None:
    scene = small()
    claim = scene.claim(ClaimKind.RESERVE, g_0="n")
    claim.slots |= {
        str(index): next(iter(claim.slots.values())).__class__(str(index), "n", None) for index in range(SLOTS)
    }
    assert not scene.claims.make(claim, "Made", "for a test")
    assert not scene.claims.has(ClaimKind.RESERVE)
    assert not scene.decided


def test_extend_adds_slots_to_the_claim() -> None:
    scene = small()
    scene.claims.extend(scene.claim(ClaimKind.PREEMPT, g_0="n"), "Made", "")
    scene.claims.extend(scene.claim(ClaimKind.PREEMPT, g_1="m"), "Made", "")
    (claim,) = scene.claims.all(ClaimKind.PREEMPT)
    assert {name: slot.node for name, slot in claim.slots.items()} == {"g-0": "n", "g-1": "m"}
    assert (scene.free_cpu("n"), scene.free_cpu("m")) == (3, 3)
    assert scene.decided[-1].record == claim.record()


@pytest.mark.parametrize("kind", KINDS)
def test_end_releases_the_room_and_withdraws_the_record(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    assert scene.claims.end(scene.gang(), kind, "Ended", "for a test")
    assert not scene.claims.has(kind)
    assert scene.free_cpu("n") == scene.free_cpu("m") == 4
    assert (scene.decided[-1].record, scene.decided[-1].reason) == (None, "Ended")
    assert scene.record(kind) is None
    assert all(task.status is TaskStatus.PENDING for task in scene.gang().tasks.values())
    assert not scene.claims.end(scene.gang(), kind, "Ended", "again"), "it has none"


# ---- records


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_from_before_a_restart_is_adopted_once(kind: ClaimKind) -> None:
    scene = small()
    made = scene.claim(kind, g_0="n", g_1="m")
    made.clock_ns = SECOND_NS if kind is ClaimKind.RESERVE else 0  # a reservation knows since when it is there (R4)
    assert scene.claims.make(made, "Made", "for a test")
    places = made.places
    for task in scene.gang().tasks.values():
        if task.status is TaskStatus.NOMINATED:
            scene.state.unreserve(task)
    scene.restart_registry()
    scene.state.touch(scene.gang())
    assert scene.begin(5) == [], "it is as it was written"
    adopted = scene.claims.of(scene.gang(), kind)
    assert adopted is not None
    assert adopted.places == places
    assert scene.claims.end(scene.gang(), kind, "Ended", "")
    scene.gang().assume(claims={kind: made.record()})  # an echo of what was written before
    scene.state.touch(scene.gang())
    assert scene.begin(6) == []
    assert not scene.claims.has(kind), "memory counts from the first look on"


@pytest.mark.parametrize("kind", [*KINDS, ClaimKind.HOLD, ClaimKind.WAVE])
def test_a_record_that_no_longer_holds_is_withdrawn(kind: ClaimKind) -> None:
    scene = small()
    scene.restart_registry()
    scene.gang().assume(claims={kind: Record(kind, 0, {"gone": {"lost": 1}})})
    scene.state.touch(scene.gang())
    (decided,) = scene.begin(1)
    assert (decided.kind, decided.record) == (kind, None)
    assert not scene.claims.has(kind)
    assert scene.record(kind) is None


@pytest.mark.parametrize("kind", KINDS)
def test_refused_leaves_no_claim_and_no_room_taken(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    scene.claims.refused(scene.gang().key, kind, scene.record(kind))
    assert not scene.claims.has(kind)
    assert scene.free_cpu("n") == scene.free_cpu("m") == 4
    assert scene.gang().key in scene.state.dirty, "it is attempted again"
    assert len(scene.decided) == 1, "nothing more is written"


def test_refused_of_a_gang_that_is_gone_does_nothing() -> None:
    scene = small()
    key = scene.gang().key
    scene.claims.refused(key._replace(name="unknown"), ClaimKind.RESERVE, None)
    assert not scene.decided


@pytest.mark.parametrize("kind", KINDS)
def test_r7_a_record_whose_removal_was_refused_is_removed_again_and_not_adopted(kind: ClaimKind) -> None:
    scene = small()
    record = scene.make(kind, g_0="n", g_1="m").record()
    scene.claims.end(scene.gang(), kind, "Ended", "for a test")
    scene.gang().assume(claims={kind: record})  # the object still carries it
    assert scene.begin(1) == [], "its removal is under way"
    scene.claims.refused(scene.gang().key, kind, None)
    assert [(one.kind, one.record) for one in scene.begin(2)] == [(kind, None)]
    assert not scene.claims.has(kind), "it has ended all the same"


@pytest.mark.parametrize("kind", KINDS)
def test_s2_a_record_counts_again_whose_replacement_was_refused(kind: ClaimKind) -> None:
    """The object still carries the first record, and no other gang may use what it says."""
    scene = small()
    first = scene.make(kind, g_0="n", g_1="n").record()
    second = scene.make(kind, g_0="m", g_1="m").record()
    scene.claims.refused(scene.gang().key, kind, second)
    assert not scene.claims.has(kind)
    scene.gang().assume(claims={kind: first})
    scene.state.touch(scene.gang())
    assert all(one.record is not None for one in scene.begin(1)), "it is adopted, and not removed"
    (claim,) = scene.claims.all(kind)
    assert claim.nodes == ["n"]


@pytest.mark.parametrize("kind", KINDS)
def test_s2_a_record_that_was_refused_does_not_count(kind: ClaimKind) -> None:
    """It is the first of its gang: one that appears was not written by this scheduler."""
    scene = small()
    record = scene.make(kind, g_0="n", g_1="n").record()
    scene.claims.refused(scene.gang().key, kind, record)
    scene.gang().assume(claims={kind: record})
    scene.state.touch(scene.gang())
    assert [(one.kind, one.record) for one in scene.begin(1)] == [(kind, None)]
    assert not scene.claims.has(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refusal_of_an_earlier_write_changes_nothing(kind: ClaimKind) -> None:
    scene = small()
    first = scene.make(kind, g_0="n", g_1="n").record()
    second = scene.make(kind, g_0="m", g_1="m")
    scene.claims.refused(scene.gang().key, kind, first)
    assert scene.claims.of(scene.gang(), kind) is second


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_removal_does_not_end_the_claim_that_was_made_since(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    scene.claims.end(scene.gang(), kind, "Ended", "for a test")
    made = scene.make(kind, g_0="m", g_1="n")
    scene.claims.refused(scene.gang().key, kind, None)
    assert scene.claims.of(scene.gang(), kind) is made
    assert scene.begin(1) == [], "its own record is under way"


@pytest.mark.parametrize("kind", KINDS)
def test_a_gang_that_is_gone_takes_its_claims_along(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    gang = scene.gang()
    scene.decided.clear()
    scene.claims.gang_gone(gang)
    assert not scene.claims.has(kind)
    assert not scene.decided, "there is no object to write to"
    assert scene.free_cpu("n") == scene.free_cpu("m") == 4
    assert scene.claims.reservations.nodes() == set()


def test_a_record_moves_when_the_pod_that_carries_it_is_gone() -> None:
    scene = Scene(m.node("n"), m.koordinator_gang("g", 3, 2))
    scene.make(ClaimKind.RESERVE, g_1="n", g_2="n")
    home = scene.gang().status.claim_home
    assert home == scene.task("g-0").uid
    scene.delete_pod("g-0")
    (decided,) = scene.begin(1)
    assert (decided.reason, decided.record) == (
        "ClaimChanged",
        Record(ClaimKind.RESERVE, 0, {"g-1": {"n": 1}, "g-2": {"n": 1}}),
    )
    assert scene.gang().status.claim_home == scene.task("g-1").uid
    assert scene.begin(2) == [], "written once"


# ---- review


@pytest.mark.parametrize("kind", KINDS)
def test_r7_p3_a_claim_ends_when_the_gang_cannot_start(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    scene.obstacles["g"] = CANNOT_START
    scene.state.touch(scene.gang())
    (decided,) = scene.begin(1)
    assert decided.record is None
    assert CANNOT_START.message in decided.message
    assert not scene.claims.has(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_r7_p3_claims_of_gangs_that_start_together_end_together(kind: ClaimKind) -> None:
    both = ["default/a", "default/b"]
    scene = Scene(m.node("n"), m.koordinator_gang("a", 1, groups=both), m.koordinator_gang("b", 1, groups=both))
    scene.make(kind, "a", a_0="n")
    scene.make(kind, "b", b_0="n")
    scene.obstacles["b"] = CANNOT_START
    scene.state.touch(scene.gang("b"))
    assert {one.gang.name for one in scene.begin(1)} == {"a", "b"}
    assert not scene.claims.has(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_claim_is_not_reviewed(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    scene.begin(1)
    scene.obstacles["g"] = CANNOT_START
    assert scene.begin(2) == [], "no event, nothing to look at (G9)"
    assert scene.claims.has(kind)


# ---- slots follow their pods


@pytest.mark.parametrize("kind", KINDS)
def test_r7_the_slot_of_a_pod_that_is_recreated_stays_five_seconds(kind: ClaimKind) -> None:
    scene = recreated()
    scene.make(kind, g_0="n", g_1="m")
    assert scene.claims.due() is None
    scene.obstacles["g"] = LACKS_MEMBERS
    scene.delete_pod("g-1")
    scene.begin(10)
    assert scene.claims.due() == 10 * SECOND_NS + RECREATION_NS
    claim = scene.claims.of(scene.gang(), kind)
    assert claim is not None
    assert set(claim.slots) == {"g-0", "g-1"}
    assert claim.slots["g-1"].task is None
    scene.begin(14.999)
    assert scene.claims.has(kind)
    decided = scene.begin(15)
    assert [one.record for one in decided] == [None]
    assert not scene.claims.has(kind)
    assert scene.claims.due() is None
    assert scene.free_cpu("n") == scene.free_cpu("m") == 4


@pytest.mark.parametrize("kind", KINDS)
def test_r7_a_pod_that_is_recreated_in_time_takes_its_slot(kind: ClaimKind) -> None:
    scene = recreated()
    old = scene.direct.known["Pod", "g-1"]
    scene.make(kind, g_0="n", g_1="m")
    scene.delete_pod("g-1")
    scene.begin(10)
    scene.direct.put(old)
    scene.begin(12)
    claim = scene.claims.of(scene.gang(), kind)
    assert claim is not None
    assert claim.slots["g-1"].task is scene.task("g-1")
    assert claim.slots["g-1"].absent_since_ns is None
    assert scene.claims.due() is None
    assert scene.free_cpu("m") == (4 if kind is ClaimKind.RESERVE else 3), "a nominated pod has its room again"
    scene.begin(20)
    assert scene.claims.has(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_r7_the_slot_of_a_pod_that_no_controller_of_ours_recreates_goes_at_once(kind: ClaimKind) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    scene.obstacles["g"] = LACKS_MEMBERS
    scene.delete_pod("g-1")
    (decided,) = scene.begin(10)
    assert decided.record is None
    assert not scene.claims.has(kind)
    assert scene.claims.due() is None


def test_r7_another_obstacle_ends_the_claim_while_a_pod_is_recreated() -> None:
    scene = recreated()
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="m")
    scene.delete_pod("g-1")
    scene.obstacles["g"] = CANNOT_START
    scene.begin(10)
    assert not scene.claims.has(ClaimKind.RESERVE)
    assert scene.claims.due() is None


def test_due_is_the_first_of_all_ends() -> None:
    scene = Scene(m.node("n"), group("g"), pods_of("g"), group("h"), pods_of("h"))
    assert scene.claims.due() is None
    scene.make(ClaimKind.PREEMPT, "g", 30, g_0="n", g_1="n")
    scene.make(ClaimKind.PREEMPT, "h", 20, h_0="n", h_1="n")
    assert scene.claims.due() == 20 * SECOND_NS
    scene.claims.end(scene.gang("h"), ClaimKind.PREEMPT, "Ended", "")
    assert scene.claims.due() == 30 * SECOND_NS


def test_s2_records_that_appear_while_it_runs_are_all_removed() -> None:
    """A record of any kind that this scheduler did not write, and that is not there at its start."""
    scene = small()
    scene.begin(1)
    records = {kind: Record(kind, 0, {"g-0": {"n": 1}}) for kind in KINDS}
    scene.gang().assume(claims=records)
    scene.state.touch(scene.gang())
    removed = scene.begin(2)
    assert [(one.kind, one.record, one.reason) for one in removed] == [(kind, None, "RecordRemoved") for kind in KINDS]
    assert not list(scene.claims.every())


# ---- what gangs say of claims that they do not have


def test_r6_k12_what_a_gang_says_of_claims_that_it_does_not_have() -> None:
    scene = small()
    gang, claims = scene.gang(), scene.claims
    assert claims.notes_of(gang) == []
    assert claims.note(gang, ClaimKind.RESERVE, "no nodes")
    assert not claims.note(gang, ClaimKind.RESERVE, "no nodes"), "it said so before"
    assert claims.note(gang, ClaimKind.HOLD, "released")
    assert claims.notes_of(gang) == ["no nodes", "released"]
    scene.obstacles["g"] = CANNOT_START
    assert claims.notes_of(gang) == ["released"], "nodes would not be reserved for it"
    scene.obstacles.clear()
    assert claims.note(gang, ClaimKind.RESERVE, "")
    assert not claims.note(gang, ClaimKind.RESERVE, "")
    assert claims.notes_of(gang) == ["released"]
    claims.drop_notes(gang)
    assert claims.notes_of(gang) == []
    claims.note(gang, ClaimKind.HOLD, "released")
    claims.gang_gone(gang)
    assert claims.notes_of(gang) == []


@pytest.mark.parametrize("kind", [ClaimKind.HOLD, ClaimKind.RESERVE, ClaimKind.PREEMPT, ClaimKind.EVICTED])
def test_room_is_set_aside_by_every_kind_but_the_record_of_evictions(kind: ClaimKind) -> None:
    scene = small()
    assert not scene.claims.has_any(scene.gang())
    scene.make(kind, g_0="n", g_1="n")
    assert scene.claims.has_any(scene.gang()) is (kind is not ClaimKind.EVICTED)
    assert bool(list(scene.claims.every())) is (kind is not ClaimKind.EVICTED)


def test_r5_nodes_are_open_again_when_the_priority_of_a_claim_falls() -> None:
    scene = Scene(m.node("n"), group(), pods_of(priority=5))
    claim = scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    for priority, reopened in ((5, False), (7, False), (6, True), (6, False)):
        scene.gang().priority = priority
        scene.claims._review(claim, 0)
        assert scene.state.events.any_of(frozenset({EventKind.NODES_REOPENED})) is reopened
        assert claim.priority == priority
        scene.state.events.clear()


def test_the_end_of_a_wave_is_not_that_of_the_gangs_that_it_starts_with() -> None:
    """Reservations and nominations end together; a deadline is each gang's own."""
    together = ["default/g0", "default/g1"]
    scene = Scene(m.node("n"), *(m.koordinator_gang(f"g{number}", 1, groups=together) for number in range(2)))
    for number in range(2):
        gang = scene.gang(f"g{number}")
        gang.covered = "1"
        template = Template(1, m.pod_spec(1))
        gang.spec = msgspec.structs.replace(gang.spec, later={"late": template}, templates={"late": template})
        (placeholder,) = make_placeholders(scene.state, gang, "late", template, 0, 1)
        ends_ns = (10 + number) * SECOND_NS
        assert scene.claims.make(Claim(gang, ClaimKind.WAVE, [Slot("late", "n", placeholder)], ends_ns), "Made", "")
    scene.begin(10)
    assert [name_of(claim.gang) for claim in scene.claims.all(ClaimKind.WAVE)] == ["g1"]
