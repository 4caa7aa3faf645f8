"""Room for the later waves of a whole-job gang: placeholders, who takes their places, and when the claim ends (D5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.engine.claims.claim import Claim, Slot
from enbloc.engine.claims.placeholders import make_placeholders
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.state.transaction import Transaction
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import Template
from engine.claims.scenes import CANNOT_START, LACKS_MEMBERS, SECOND_NS, Scene, group, small
from support import manifests as m

TEMPLATE = Template(2, m.pod_spec(2))


def expect_wave(scene: Scene, template: Template = TEMPLATE) -> None:
    """The first wave was started; the role `late` has not begun."""
    gang = scene.gang()
    gang.covered = "2"
    gang.spec = msgspec.structs.replace(gang.spec, later={"late": template}, templates={"late": template})


def wave(scene: Scene, until_s: int = 60) -> Claim:
    """Room for two later pods of 2 cpu, on `n` and `m`."""
    expect_wave(scene)
    placeholders = make_placeholders(scene.state, scene.gang(), "late", TEMPLATE, 0, 2)
    slots = [Slot(one.name, node, one) for one, node in zip(placeholders, ("n", "m"), strict=True)]
    claim = Claim(scene.gang(), ClaimKind.WAVE, slots, until_s * SECOND_NS)
    assert scene.claims.make(claim, "ClaimMade", "")
    return claim


def test_d5_placeholders_have_their_room_and_are_recorded_by_role() -> None:
    scene = small()
    claim = wave(scene)
    assert (scene.free_cpu("n"), scene.free_cpu("m")) == (2, 2)
    assert claim.record().slots == {"late": {"n": 1, "m": 1}}
    assert scene.claims.waves.of(scene.gang()) == claim.tasks
    scene.claims.waves.release(scene.gang(), "Released", "")
    assert (scene.free_cpu("n"), scene.free_cpu("m")) == (4, 4)
    assert not [uid for uid in scene.state.tasks if uid.startswith("claim/")]


def test_d5_a_waves_claim_expires_at_its_deadline() -> None:
    scene = small()
    wave(scene, until_s=20)
    assert scene.claims.due() == 20 * SECOND_NS
    assert scene.begin(19.999) == []
    (decided,) = scene.begin(20)
    assert (decided.record, decided.reason) == (None, "ClaimExpired")


def test_d5_a_waves_claim_of_a_gang_that_did_not_start_ends() -> None:
    scene = small()
    wave(scene)
    scene.gang().covered = ""
    scene.state.touch(scene.gang())
    assert [one.message for one in scene.begin(1)] == ["its first wave was not started"]


@pytest.mark.parametrize(("obstacle", "ends"), [(LACKS_MEMBERS, False), (CANNOT_START, True)])
def test_d5_missing_pods_do_not_end_a_waves_claim(obstacle: Diagnosis, ends: bool) -> None:
    """They are created late (D2)."""
    scene = small()
    wave(scene)
    scene.obstacles["g"] = obstacle
    scene.state.touch(scene.gang())
    scene.begin(1)
    assert scene.claims.has(ClaimKind.WAVE) is not ends


def test_d5_a_waves_claim_ends_when_a_node_is_overdrawn() -> None:
    scene = small()
    wave(scene)
    scene.direct.put(m.node("m", 2))
    assert scene.begin(1) == []
    scene.direct.put(m.node("m", 1))
    assert [one.reason for one in scene.begin(2)] == ["ClaimDropped"]
    assert scene.free_cpu("n") == 4


@pytest.mark.parametrize("count", [2, 3, 10**6])
def test_d5_a_record_is_bounded_by_the_template(count: int) -> None:
    scene = small()
    expect_wave(scene)
    gang = scene.gang()
    scene.restart_registry()
    gang.assume(claims={ClaimKind.WAVE: Record(ClaimKind.WAVE, 60 * SECOND_NS, {"late": {"n": count}})})
    scene.state.touch(gang)
    scene.begin(1)
    assert len(scene.claims.waves.of(gang)) == 2
    assert scene.free_cpu("n") == 0


# ---- pods of later waves


def late_pods(count: int, **fields: Any) -> list[m.Obj]:
    return [m.pod(f"late-{index}", 2, group="g", role="late", **fields) for index in range(count)]


def test_d5_pods_for_which_a_placeholder_of_their_role_keeps_room_need_no_other() -> None:
    scene = small(late_pods(3))
    wave(scene)
    tasks = [scene.task(name) for name in ("g-0", "late-0", "late-1", "late-2")]
    assert [task.name for task in scene.claims.waves.without_room(scene.gang(), tasks)] == ["g-0", "late-2"]


@pytest.mark.parametrize(
    ("kept", "covered", "count"),
    [
        pytest.param(0, "", 2, id="before the first wave starts, all of them"),
        pytest.param(1, "", 1, id="those without room"),
        pytest.param(2, "", 0, id="all have room"),
        pytest.param(0, "2", 0, id="the first wave was started"),
    ],
)
def test_d5_pods_of_later_waves_that_room_is_looked_for(kept: int, covered: str, count: int) -> None:
    scene = small()
    expect_wave(scene)
    gang, waves = scene.gang(), scene.claims.waves
    gang.covered = ""
    placeholders = waves.later_tasks(gang)
    assert [task.role for task in placeholders] == ["late", "late"]
    if kept:
        assert waves.make_being_freed(waves.being_freed(gang, [(task, "n") for task in placeholders[:kept]], 0))
    gang.covered = covered
    found = waves.later_tasks(gang)
    assert len(found) == count
    assert not {task.uid for task in found} & {task.uid for task in placeholders[:kept]}, "names are not given twice"


def test_d5_a_waves_claim_lasts_until_its_deadline_from_now() -> None:
    scene = small()
    expect_wave(scene)
    scene.gang().covered = ""
    gang, waves = scene.gang(), scene.claims.waves
    assert waves.make_being_freed(
        waves.being_freed(gang, [(task, "n") for task in waves.later_tasks(gang)], 5 * SECOND_NS)
    )
    assert scene.claims.due() == 65 * SECOND_NS


def test_d5_placeholders_that_were_placed_with_the_first_wave_are_kept() -> None:
    scene = small()
    expect_wave(scene)
    gang, waves = scene.gang(), scene.claims.waves
    gang.covered = ""
    later = waves.later_tasks(gang)
    Transaction(scene.state).place(later, [scene.state.nodes.rows["n"]] * 2)
    assert waves.check_record(gang, later)
    waves.keep(gang, [], later, 5 * SECOND_NS)
    assert scene.decided[-1].message == "room for 2 pods of later waves is claimed on 1 node"
    assert all(scene.state.tasks.get(one.uid) is one for one in later)
    assert (scene.free_cpu("n"), scene.claims.due()) == (0, 65 * SECOND_NS)
    scene.state.validate()
    waves.release(gang, "Released", "")
    assert scene.free_cpu("n") == 4
    scene.state.validate()


@pytest.mark.parametrize(("taken", "left"), [(1, 1), (2, 0), (0, 2)], ids=["one", "all", "none"])
def test_d5_pods_that_took_their_room_leave_the_claim(taken: int, left: int) -> None:
    scene = small()
    claim = wave(scene)
    scene.decided.clear()
    gone = claim.tasks[:taken]
    for one in gone:
        scene.state.counts.remove(one)
        scene.state.queues.add_demand(scene.state.queue_of(one.gang), one.cls.request)
    scene.claims.waves.keep(scene.gang(), gone, [], 0)
    assert len(scene.claims.waves.of(scene.gang())) == left
    assert [one.reason for one in scene.decided] == (["ClaimUsed"] if taken else [])
    assert scene.claims.has(ClaimKind.WAVE) is bool(left)


@pytest.mark.parametrize(("cpu", "lacks"), [(4, False), (3, True)])
def test_d5_room_of_a_placeholder_that_is_overdrawn_is_lacking(cpu: int, lacks: bool) -> None:
    scene = Scene(m.node("n", 4), m.node("m", 2), group(), m.pod("g-0", group="g"))
    wave(scene)
    scene.direct.put(m.pod("other", 2, nodeName="n"))
    assert not scene.claims.waves.lacks_room(scene.gang())
    scene.direct.put(m.node("n", cpu))
    assert scene.claims.waves.lacks_room(scene.gang()) is lacks


# ---- records


@pytest.mark.parametrize(
    ("slots", "until_s", "kept", "ends_s"),
    [
        pytest.param({"late": {"n": 1, "m": 1}}, 30, 2, 30, id="as it was written"),
        pytest.param({"late": {"n": 1}}, 30, 1, 30, id="of one pod"),
        pytest.param({"late": {"n": 2}}, 10**6, 2, 65, id="no later than the deadline from now"),
        pytest.param({"late": {"n": 2, "m": 1}}, 30, 0, 0, id="more than the template"),
        pytest.param({"late": {"n": 1, "lost": 1}}, 30, 0, 0, id="on a node that is gone"),
        pytest.param({"other": {"n": 1}}, 30, 0, 0, id="of a role that is gone"),
        pytest.param({}, 30, 0, 0, id="of nothing"),
    ],
)
def test_d5_s2_which_records_are_adopted(
    slots: dict[str, dict[str, int]], until_s: int, kept: int, ends_s: int
) -> None:
    scene = small()
    expect_wave(scene)
    claim = scene.claims.waves.adopt(scene.gang(), Record(ClaimKind.WAVE, until_s * SECOND_NS, slots), 5 * SECOND_NS)
    assert (len(claim.slots), claim.until_ns) == (kept, ends_s * SECOND_NS) if claim is not None else kept == 0


# ---- when it ends


def started(scene: Scene, name: str) -> None:
    """A pod of the role `late` runs."""
    scene.direct.put(m.pod(name, 1, group="g", role="late", nodeName="m"))


@pytest.mark.parametrize(
    ("minimum", "bound", "kept"),
    [
        pytest.param(2, 1, 2, id="fewer than its minimum run"),
        pytest.param(2, 2, 0, id="its minimum runs"),
        pytest.param(1, 1, 0, id="a lower minimum runs"),
    ],
)
def test_d5_a_role_whose_minimum_is_bound_needs_no_room(minimum: int, bound: int, kept: int) -> None:
    """The role has begun: it is not among the later ones any more."""
    scene = Scene(m.node("n"), m.node("m", 8), group(), m.pod("g-0", group="g"))
    wave(scene)
    gang = scene.gang()
    for number in range(bound):
        started(scene, f"late-{number}")
    scene.state.settle()
    gang.spec = msgspec.structs.replace(gang.spec, later={}, minima={"late": minimum})
    gang.covered = "2"
    scene.claims.waves.review(claim := scene.claims.all(ClaimKind.WAVE)[0], SECOND_NS, None)
    assert len(claim.slots) == kept


def test_d5_a_role_that_has_not_begun_keeps_its_room() -> None:
    """Pods that run and are of its name do not end it."""
    scene = Scene(m.node("n"), m.node("m", 8), group(), m.pod("g-0", group="g"))
    claim = wave(scene)
    started(scene, "late-0")
    scene.state.settle()
    expect_wave(scene)
    assert scene.claims.waves.review(claim, SECOND_NS, None) is None
    assert len(claim.slots) == 2


@pytest.mark.parametrize(("running", "reason"), [(False, "its first wave was not started"), (True, "")])
def test_d5_a_wave_of_which_pods_run_has_started(running: bool, reason: str) -> None:
    scene = small()
    claim = wave(scene)
    if running:
        scene.direct.put(m.pod("g-0", group="g", nodeName="n"))
        scene.state.settle()
        expect_wave(scene)
    scene.gang().covered = ""
    ending = scene.claims.waves.review(claim, SECOND_NS, None)
    assert (ending.message if ending is not None else "") == reason
