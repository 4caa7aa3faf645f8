"""What differs between kinds of claims: room that is taken, when they are used up, when they end."""

from __future__ import annotations

import pytest

from enbloc.engine.claims.claim import Claim, Slot
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs.claim_records import ClaimKind, Record
from engine.claims.scenes import LACKS_MEMBERS, SECOND_NS, Scene, group, pods_of, small
from support import manifests as m


def cordon(scene: Scene, name: str) -> None:
    scene.direct.put(m.node(name, unschedulable=True))


# ---- claim


def test_a_claim_says_its_tasks_nodes_and_places() -> None:
    scene = small()
    claim = scene.claim(ClaimKind.RESERVE, g_1="m", g_0="n")
    assert claim.nodes == ["m", "n"]
    assert claim.places == {scene.task("g-0").uid: "n", scene.task("g-1").uid: "m"}
    claim.slots["g-0"].task = None
    assert [task.name for task in claim.tasks] == ["g-1"]
    assert claim.record() == Record(ClaimKind.RESERVE, 0, {"g-1": {"m": 1}, "g-0": {"n": 1}}), "its slot is kept"


def test_a_task_that_left_the_gang_is_no_member() -> None:
    scene = small()
    claim = scene.claim(ClaimKind.RESERVE, g_0="n", g_1="n")
    slot = claim.slots["g-1"]
    assert slot.is_for_member_of(scene.gang())
    assert slot.waits
    scene.delete_pod("g-1")
    assert [task.name for task in claim.members] == ["g-0"]
    assert not slot.is_for_member_of(scene.gang())


# ---- reservations


def test_r5_a_reservation_takes_no_room_and_closes_its_nodes_to_others() -> None:
    scene = Scene(m.node("n"), m.node("m"), group("g"), pods_of("g"), group("h"), pods_of("h"))
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    reservations, rows = scene.claims.reservations, scene.state.nodes.rows
    assert (scene.free_cpu("n"), reservations.nodes(), bool(reservations)) == (4, {"n"}, True)
    closed = reservations.closed_to(scene.gang("h"), scene.task("h-0"), None)
    assert closed is not None
    assert (bool(closed[rows["n"]]), bool(closed[rows["m"]])) == (True, False)
    own = reservations.closed_to(scene.gang(), scene.task("g-0"), None)
    assert own is None or not own.any()
    without = reservations.closed_to(scene.gang("h"), scene.task("h-0"), None, frozenset({scene.gang().key}))
    assert without is None or not without.any()


def test_r2_condition_ready_counts_reserved_tasks() -> None:
    scene = small()
    assert not scene.claims.reservations.condition_ready(scene.gang())
    scene.make(ClaimKind.RESERVE, g_0="n")
    assert not scene.claims.reservations.condition_ready(scene.gang())
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    assert scene.claims.reservations.condition_ready(scene.gang())


def test_r4_two_gangs_on_one_node_sum_up() -> None:
    scene = Scene(m.node("n"), group("g"), pods_of("g"), group("h"), pods_of("h"))
    scene.make(ClaimKind.RESERVE, "g", g_0="n", g_1="n")
    scene.make(ClaimKind.RESERVE, "h", h_0="n", h_1="n")
    cpu = scene.state.resources.names.index("cpu")
    assert scene.claims.reservations.on("n")[cpu] == 4000
    scene.claims.reservations.end(scene.gang("g"), "Ended", "")
    assert scene.claims.reservations.on("n")[cpu] == 2000
    assert scene.claims.reservations.nodes() == {"n"}


def test_r7_a_reservation_ends_with_the_capability_of_its_queue() -> None:
    scene = Scene(m.queue("q"), m.node("n"), group(queue="q"), pods_of())
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    scene.direct.put(m.queue("q", capability={"cpu": "2"}))
    assert scene.begin(1) == [], "as much as is reserved"
    scene.direct.put(m.queue("q", capability={"cpu": "1500m"}))
    (decided,) = scene.begin(2)
    assert decided.record is None


def test_r7_a_reservation_that_no_longer_reaches_the_minimum_ends() -> None:
    scene = Scene(m.node("n"), group(minimum=2), pods_of(count=3))
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    scene.direct.put(group(minimum=3))
    assert [one.record for one in scene.begin(1)] == [None]


# ---- nominations


def test_p3_a_nominated_task_has_its_room() -> None:
    scene = small()
    scene.make(ClaimKind.PREEMPT, g_0="n", g_1="n")
    assert scene.free_cpu("n") == 2
    assert {task.name for task in scene.claims.nominations.of(scene.gang())} == {"g-0", "g-1"}
    assert scene.task("g-0").status is TaskStatus.NOMINATED


def test_p3_room_that_terminating_pods_leave_counts() -> None:
    leaving = m.pod("leaving", 4, nodeName="n")
    scene = Scene(m.node("n"), group(), pods_of(), leaving)
    scene.direct.put({**leaving, "metadata": {**leaving["metadata"], "deletionTimestamp": "1970-01-01T00:00:01Z"}})
    scene.make(ClaimKind.PREEMPT, g_0="n", g_1="n")
    assert scene.begin(1) == []
    assert scene.claims.has(ClaimKind.PREEMPT), "overdrawn until the pod is gone"
    scene.direct.put(m.pod("other", 3, nodeName="n"))
    assert [one.record for one in scene.begin(2)] == [None]


# ---- every kind that names nodes


@pytest.mark.parametrize("kind", [ClaimKind.RESERVE, ClaimKind.PREEMPT])
@pytest.mark.parametrize("event", ["deleted", "cordoned", "shrunk"])
def test_r7_p3_a_claim_ends_with_one_of_its_nodes(kind: ClaimKind, event: str) -> None:
    scene = small()
    scene.make(kind, g_0="n", g_1="m")
    if event == "deleted":
        scene.direct.delete("Node", "m")
    elif event == "cordoned":
        cordon(scene, "m")
    else:
        scene.direct.put(m.node("m", "500m"))
    assert [one.record for one in scene.begin(1)] == [None]
    assert scene.free_cpu("n") == 4


# ---- holds


def holding(*more: object) -> Scene:
    return Scene(m.node("n"), m.node("m"), m.koordinator_gang("g", 3, mode=m.NON_STRICT, wait="30s"), *more)


def held(scene: Scene, now_s: int = 0) -> None:
    """The first two of three pods are held on `n`."""
    group_of = scene.groups.of(scene.gang())
    assert group_of is not None
    tasks = [scene.task(name) for name in ("g-0", "g-1")]
    claim = Claim(scene.gang(), ClaimKind.HOLD, [Slot(one.name, "n", one) for one in tasks], (now_s + 30) * SECOND_NS)
    claim.clock_ns, claim.held = now_s * SECOND_NS, True
    scene.claims.extend(claim, "Held", "")


def test_k6_held_tasks_have_their_room_and_the_clock_runs() -> None:
    scene = holding()
    held(scene)
    holds, group_of = scene.claims.holds, scene.groups.of(scene.gang())
    assert group_of is not None
    assert {task.name for task in holds.of(scene.gang())} == {"g-0", "g-1"}
    assert holds.holders() == [group_of]
    assert (holds.clock(group_of), scene.claims.due()) == (0, 30 * SECOND_NS)
    assert scene.free_cpu("n") == 2
    holds.release(group_of, "Released", "")
    assert (scene.free_cpu("n"), holds.clock(group_of)) == (4, None)


def test_k6_only_slots_that_no_longer_help_are_released() -> None:
    scene = holding()
    held(scene)
    scene.claims.extend(scene.claim(ClaimKind.HOLD, g_2="m"), "Held", "")
    cordon(scene, "n")
    (decided,) = scene.begin(1)
    assert decided.record is not None
    assert set(decided.record.slots) == {"g-2"}
    assert scene.claims.due() == 30 * SECOND_NS, "the clock runs on"
    assert (scene.free_cpu("n"), scene.free_cpu("m")) == (4, 3)


def test_k6_an_obstacle_releases_every_slot_and_not_the_clock() -> None:
    scene = holding()
    held(scene)
    scene.obstacles["g"] = LACKS_MEMBERS
    scene.state.touch(scene.gang())
    (decided,) = scene.begin(1)
    assert decided.record is not None
    assert decided.record.slots == {}
    assert scene.claims.due() == 30 * SECOND_NS
    assert scene.free_cpu("n") == 4
    assert all(task.status is TaskStatus.PENDING for task in scene.gang().tasks.values())


def test_k8_holds_expire_at_their_instant() -> None:
    scene = holding()
    held(scene)
    assert scene.claims.holds.expire(30 * SECOND_NS - 1) == []
    (expired,) = scene.claims.holds.expire(30 * SECOND_NS)
    assert [name for _, name, _ in expired.pods] == ["g-0", "g-1", "g-2"]
    assert all(task.status is TaskStatus.TIMED_OUT for task in scene.gang().tasks.values())
    assert not scene.claims.has(ClaimKind.HOLD)


def test_k6_no_adopted_record_outlasts_the_waiting_time() -> None:
    scene = holding()
    scene.restart_registry()
    scene.gang().assume(claims={ClaimKind.HOLD: Record(ClaimKind.HOLD, 10**18, {"g-0": {"n": 1}})})
    scene.state.touch(scene.gang())
    scene.begin(5)
    claim = scene.claims.of(scene.gang(), ClaimKind.HOLD)
    assert claim is not None
    assert claim.until_ns == 35 * SECOND_NS
    assert [task.name for task in scene.claims.holds.of(scene.gang())] == ["g-0"]
