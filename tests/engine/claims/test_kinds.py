"""What differs between kinds of claims: room that is taken, when they are used up, when they end."""

from __future__ import annotations

import msgspec
import pytest

from enbloc.engine.claims.claim import Claim, Slot
from enbloc.engine.claims.placeholders import make_placeholders
from enbloc.engine.claims.reservations import is_beyond_queue
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import Template
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
    (claim, _) = scene.claims.all(ClaimKind.RESERVE)
    task, claim.slots["g-0"].task = claim.slots["g-0"].task, None
    assert scene.claims.reservations.on("n")[cpu] == 3000, "a pod that is being recreated requests nothing"
    claim.slots["g-0"].task = task
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


@pytest.mark.parametrize(
    ("runs_s", "closed"),
    [
        pytest.param(None, {"n", "m"}, id="without a run time"),
        pytest.param(5, set(), id="it ends before any reservation is due"),
        pytest.param(10, set(), id="it ends as the first is due"),
        pytest.param(11, {"n"}, id="it ends before the second is due"),
        pytest.param(21, {"n", "m"}, id="it ends after both"),
    ],
)
def test_r8_a_pod_that_ends_before_a_reservation_is_due_may_use_its_node(runs_s: int | None, closed: set[str]) -> None:
    """`g` reserves `n`, due at 10 s, `h` reserves `m`, due at 20 s; and a node that is gone."""
    notes = {"enbloc.dev/expected-duration": f"{runs_s}s"} if runs_s is not None else {}
    others = [group("h", 1), pods_of("h", 1), m.pod("x", 1, annotations=notes)]
    scene = Scene(m.node("n"), m.node("m"), m.node("lost"), m.node("open"), group(), pods_of(), *others)
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="lost")
    scene.make(ClaimKind.RESERVE, "h", h_0="m")
    reservations, gang = scene.claims.reservations, scene.gang("x")
    reservations.due_ns = {scene.gang().key: 10 * SECOND_NS, scene.gang("h").key: 20 * SECOND_NS}
    scene.direct.delete("Node", "lost")
    scene.state.settle()
    found = reservations.closed_to(gang, scene.task("x"), 0)
    assert found is not None
    assert {name for name, row in scene.state.nodes.rows.items() if found[row]} == closed
    free = reservations.kept_from(gang, 0)
    assert int(free[scene.state.resources.names.index("cpu")]) == 4000 * len(closed)


def test_r5_best_effort_pods_and_the_gang_itself_may_use_reserved_nodes() -> None:
    scene = small(m.pod("tiny", None), m.pod("x", 1, priority=9))
    scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    reservations = scene.claims.reservations
    assert reservations.closed_to(scene.gang("tiny"), scene.task("tiny"), None) is None
    assert not reservations.kept_from(scene.gang("g"), 0).any()
    assert not reservations.kept_from(scene.gang("x"), 0).any(), "of lower priority"
    assert reservations.kept_from(scene.gang("tiny"), 0).any()


def test_r4_since_when_a_node_is_reserved() -> None:
    scene = Scene(m.node("n"), m.node("m"), group("g"), pods_of("g"), group("h"), pods_of("h"))
    for name, since_s in (("g", 7), ("h", 3)):
        claim = scene.claim(ClaimKind.RESERVE, name, **{f"{name}_0": "n"})
        claim.clock_ns = since_s * SECOND_NS
        assert scene.claims.make(claim, "Made", "")
    reservations, g, h = scene.claims.reservations, scene.gang("g").key, scene.gang("h").key
    ends = [reservations.since("n", frozenset(keys)) for keys in ((), (h,), (g,), (g, h))]
    assert ends == [3 * SECOND_NS, 7 * SECOND_NS, 3 * SECOND_NS, None]
    assert reservations.since("m", frozenset()) is None
    assert reservations.nodes_of_others(frozenset({g})) == {"n"}
    assert reservations.nodes_of_others(frozenset({g, h})) == set()
    assert {key.name for key in reservations.lower_than(1)} == {"g", "h"}
    assert reservations.lower_than(0) == frozenset()
    cpu = scene.state.resources.names.index("cpu")
    assert [reservations.on("n", frozenset(keys)).get(cpu, 0) for keys in ((), (h,), (g, h))] == [2000, 1000, 0]


@pytest.mark.parametrize(("covered", "names"), [("", {"g-0", "g-1", "late"}), ("2", {"g-0", "g-1"})])
def test_d5_an_adopted_reservation_is_for_later_waves_until_the_first_has_started(
    covered: str, names: set[str]
) -> None:
    scene = small()
    gang, template = scene.gang(), Template(1, m.pod_spec(1))
    gang.spec = msgspec.structs.replace(gang.spec, later={"late": template}, templates={"late": template})
    (placeholder,) = make_placeholders(scene.state, gang, "late", template, 0, 1)
    slots = {"g-0": {"n": 1}, "g-1": {"m": 1}, placeholder.name: {"m": 1}}
    gang.covered = covered
    claim = scene.claims.reservations.adopt(gang, Record(ClaimKind.RESERVE, 0, slots), 9 * SECOND_NS)
    assert claim is not None
    assert {"late" if name == placeholder.name else name for name in claim.slots} == names
    assert claim.clock_ns == 9 * SECOND_NS, "a record without a clock counts from now"


@pytest.mark.parametrize(("clock_s", "since_s"), [(3, 3), (50, 9)])
def test_r4_an_adopted_reservation_is_not_younger_than_now(clock_s: int, since_s: int) -> None:
    scene = small()
    record = Record(ClaimKind.RESERVE, 0, {"g-0": {"n": 1}}, clock_ns=clock_s * SECOND_NS)
    claim = scene.claims.reservations.adopt(scene.gang(), record, 9 * SECOND_NS)
    assert claim is not None
    assert claim.clock_ns == since_s * SECOND_NS


def test_r7_a_reservation_of_a_gang_that_has_finished_ends() -> None:
    scene = small()
    claim = scene.make(ClaimKind.RESERVE, g_0="n", g_1="n")
    assert scene.claims.reservations.review(claim, 0, None) is None
    scene.gang().assume(finished=True)
    assert scene.claims.reservations.review(claim, 0, None) is not None


@pytest.mark.parametrize("kind", [ClaimKind.RESERVE, ClaimKind.PREEMPT])
def test_r7_p3_a_claim_of_a_pod_that_was_bound_elsewhere_ends(kind: ClaimKind) -> None:
    scene = Scene(m.node("n"), m.node("m"), group(minimum=2), pods_of(count=2))
    scene.make(kind, g_0="n", g_1="n")
    scene.direct.put(m.pod("g-1", group="g", nodeName="m"))
    (decided,) = scene.begin(1)
    assert decided.record is None or set(decided.record.slots) == {"g-0"}
    assert scene.free_cpu("m") == 3


def test_r4_a_reservation_ends_with_the_room_of_a_node_that_two_gangs_reserve() -> None:
    """Each alone would fit."""
    scene = Scene(m.node("n"), group("g"), pods_of("g"), group("h"), pods_of("h"))
    claim = scene.make(ClaimKind.RESERVE, "g", g_0="n", g_1="n")
    scene.make(ClaimKind.RESERVE, "h", h_0="n", h_1="n")
    assert scene.claims.reservations.review(claim, 0, None) is None
    scene.direct.put(m.node("n", 3))
    scene.state.settle()
    assert scene.claims.reservations.review(claim, 0, None) is not None


# ---- what a queue could ever use


@pytest.mark.parametrize(
    ("limits", "asked", "beyond"),
    [
        pytest.param({}, 8, False, id="no limit"),
        pytest.param({"q": {"capability": {"cpu": "3"}}}, 3, False, id="as much as its capability"),
        pytest.param({"q": {"capability": {"cpu": "3"}}}, 4, True, id="more than its capability"),
        pytest.param({"top": {"capability": {"cpu": "3"}}}, 4, True, id="more than that of the queue above"),
        pytest.param({"other": {"capability": {"cpu": "3"}}}, 4, False, id="another queue's capability"),
        pytest.param({"other": {"guarantee": {"cpu": "5"}}}, 3, False, id="beside what others are guaranteed"),
        pytest.param({"other": {"guarantee": {"cpu": "5"}}}, 4, True, id="more than others leave"),
        pytest.param({"other": {"guarantee": {"memory": "1Gi"}}}, 8, False, id="another resource is guaranteed"),
        pytest.param({"q": {"guarantee": {"cpu": "5"}}}, 8, False, id="what is guaranteed to itself"),
    ],
)
def test_v4_what_a_queue_could_use_if_it_used_nothing_else(limits: dict[str, m.Obj], asked: int, beyond: bool) -> None:
    """The cluster has 8 cpu, 3 of them used by `q`."""
    queues = [m.queue("top", **limits.get("top", {})), m.queue("other", **limits.get("other", {}))]
    used = [m.pod("used", 3, nodeName="n", queue="q")]
    scene = Scene(m.node("n", 8), queues, m.queue("q", parent="top", **limits.get("q", {})), used, group(queue="q"))
    column = scene.state.resources.names.index("cpu")
    assert is_beyond_queue(scene.state, scene.gang(), {column: asked * 1000}) is beyond


# ---- nominations


@pytest.mark.parametrize(
    ("finished", "waiting", "ends"), [(False, True, False), (True, True, True), (False, False, True)]
)
def test_p3_a_nomination_ends_when_no_pod_waits_for_the_room(finished: bool, waiting: bool, ends: bool) -> None:
    scene = small()
    claim = scene.make(ClaimKind.PREEMPT, g_0="n", g_1="n")
    scene.gang().assume(finished=finished)
    if not waiting:
        for task in list(scene.gang().tasks.values()):
            scene.state.unreserve(task)
    ending = scene.claims.nominations.review(claim, 0, None)
    message = "no pod of the gang waits for the room"
    assert (ending.message if ending is not None else "") == (message if ends else "")


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
    (claim,) = scene.claims.all(ClaimKind.HOLD)
    claim.clock_ns = 1
    assert (claim.record().until_ns, claim.record().clock_ns) == (0, 1), "the end follows from the clock"
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


@pytest.mark.parametrize(
    ("record", "clock_s", "is_held"),
    [
        pytest.param(Record(ClaimKind.HOLD, 0, {}, clock_ns=3 * SECOND_NS, held=True), 3, True, id="all pods are lost"),
        pytest.param(Record(ClaimKind.HOLD, 0, {}, clock_ns=3 * SECOND_NS), 3, False, id="of a Strict group"),
        pytest.param(Record(ClaimKind.HOLD, 32 * SECOND_NS, {"g-0": {"n": 1}}), 2, True, id="before there were clocks"),
        pytest.param(Record(ClaimKind.HOLD, 0, {}, clock_ns=99 * SECOND_NS), 5, False, id="a clock that is ahead"),
    ],
)
def test_k8_the_clock_of_an_adopted_hold(record: Record, clock_s: int, is_held: bool) -> None:
    scene = holding()
    claim = scene.claims.holds.adopt(scene.gang(), record, 5 * SECOND_NS)
    assert claim is not None
    assert (claim.clock_ns, claim.until_ns) == (clock_s * SECOND_NS, (clock_s + 30) * SECOND_NS)
    assert claim.held is is_held
    scene.gang().satisfied = True
    assert scene.claims.holds.adopt(scene.gang(), record, 5 * SECOND_NS) is None


def test_k6_pods_are_held_where_they_were_placed_and_the_claim_counts_them() -> None:
    scene = holding()
    held(scene)
    group_of = scene.groups.of(scene.gang())
    assert group_of is not None
    transaction = Transaction(scene.state)
    third = scene.task("g-2")
    transaction.place([third], [scene.state.nodes.rows["m"]])
    scene.claims.holds.hold(group_of, scene.gang(), [third], 9 * SECOND_NS)
    assert scene.decided[-1].message == "3 pods are held until the other members fit"
    assert third.status is TaskStatus.HELD
    assert scene.claims.due() == 30 * SECOND_NS, "the first one started the clock"
    assert (scene.free_cpu("n"), scene.free_cpu("m")) == (2, 3)


@pytest.mark.parametrize(
    ("mode", "running", "starts"),
    [
        pytest.param("Strict", False, True, id="a Strict group"),
        pytest.param("Strict", True, False, id="its clock runs"),
        pytest.param(m.NON_STRICT, False, False, id="a NonStrict group: with the first held pod"),
    ],
)
def test_k8_the_clock_of_a_strict_group_starts_though_nothing_is_held(mode: str, running: bool, starts: bool) -> None:
    together = ["default/g", "default/h"]
    scene = Scene(m.node("n"), *(m.koordinator_gang(name, 1, mode=mode, groups=together) for name in "gh"))
    group_of = scene.groups.of(scene.gang())
    assert group_of is not None
    if running:
        scene.claims.holds.start_clock(group_of, scene.gang("h"), 2 * SECOND_NS)
    scene.decided.clear()
    scene.claims.holds.start_clock(group_of, scene.gang(), 5 * SECOND_NS)
    assert bool(scene.decided) is starts
    assert scene.claims.holds.clock(group_of) == (5 * SECOND_NS if starts else 2 * SECOND_NS if running else None)
    assert scene.claims.holds.holders() == [], "nothing is held"
