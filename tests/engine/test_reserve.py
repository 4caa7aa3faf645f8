"""reserve: which nodes a plan chooses, what counts as claimed there, and when it is planned anew (R3, R4, R5, R6)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.actions.reserve import _facts, _higher_order_was_scheduled, _near, _Plan, _started_since, mend
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import CPU, MEMORY, PODS
from enbloc.engine.tables.tasks import TaskStatus
from enbloc.gangs.claim_records import ClaimKind
from engine.claims.scenes import SECOND_NS, group, pods_of
from engine.cycles import CycleScene
from support import manifests as m
from support.reservations import full, reserving

GPU = 7
"""A column beyond cpu, memory and pods."""


class Reserving(CycleScene):
    def __init__(self, *objects: Any, percent: int = 100, tiers: list[m.Obj] | None = None) -> None:
        super().__init__(*objects, config=reserving(percent=percent, tiers=tiers))

    def plan(self, *ignored: str, **options: Any) -> _Plan:
        return _Plan(self.cycle, frozenset(self.gang(name).key for name in ignored), **options)

    def places(self, gang: str = "g", plan: _Plan | None = None) -> str | None:
        """The nodes of its pods in order; `None`: there is no plan."""
        found = (plan or self.plan()).places([self.gang(gang)])
        return " ".join(self.cycle.state.nodes.names[row] for _, row in found) if found is not None else None

    def reserved(self, gang: str) -> dict[str, str]:
        claim = self.cycle.claims.of(self.gang(gang), ClaimKind.RESERVE)
        return {slot.name: slot.node for slot in claim.slots.values()} if claim is not None else {}


def started(second: int) -> m.Obj:
    return {"status": {"startTime": f"1970-01-01T00:00:{second:02}Z"}}


def nodes(**free: int) -> list[m.Obj]:
    """Nodes of 4 cpu, with so many of them free."""
    found: list[m.Obj] = []
    for name, idle in free.items():
        found += [m.node(name), full(4 - idle, on=name, name=f"on-{name}") | started(0)]
    return found


# ---- R6: nearness


@pytest.mark.parametrize(
    ("parts", "near"),
    [
        pytest.param({}, 10, id="nothing is asked for"),
        pytest.param({CPU: 1.0, MEMORY: 1.0}, 10, id="all is free"),
        pytest.param({CPU: 0.5, MEMORY: 1.0}, 7.5, id="half of the cpu"),
        pytest.param({CPU: 0.0, MEMORY: 0.5}, 2.5, id="half of the memory alone"),
        pytest.param({CPU: 0.5}, 7.5, id="memory is not asked for"),
        pytest.param({CPU: 0.5, PODS: 0.0}, 7.5, id="places among pods do not count"),
        pytest.param({CPU: 0.4, MEMORY: 0.4, GPU: 1.0}, 8, id="a scalar resource counts twice"),
        pytest.param({GPU: 0.0, GPU + 1: 1.0}, 20 / 3, id="several of them by their mean"),
        pytest.param({GPU: 0.0, GPU + 1: 1.0, GPU + 2: 0.5}, 20 / 3, id="three of them"),
    ],
)
def test_r6_how_near_a_node_is(parts: dict[int, float], near: float) -> None:
    assert _near(parts, 1.0) == pytest.approx(near)


@pytest.mark.parametrize(
    ("free", "pods", "expected"),
    [
        pytest.param({"a": 1, "b": 3, "c": 2}, [4], "b", id="the nearest"),
        pytest.param({"a": 2, "b": 2}, [4], "a", id="among equals the first"),
        pytest.param({"a": 4, "b": 1}, [2, 2], "a a", id="as long as it has the room"),
        pytest.param({"a": 2, "b": 1}, [2, 2], "a b", id="less what the plan reserves there"),
        pytest.param({"a": 2, "b": 0}, [2, 2, 2, 2], "a a b b", id="among nodes without room the first"),
        pytest.param({"a": 2, "b": 0}, [2] * 5, None, id="no more than they have"),
        pytest.param({"a": 2, "b": 0}, [5], None, id="no node is large enough"),
    ],
)
def test_r6_r4_which_nodes_are_chosen(free: dict[str, int], pods: list[int], expected: str | None) -> None:
    members = [m.pod(f"g-{number}", cpu, group="g") for number, cpu in enumerate(pods)]
    assert Reserving(nodes(**free), group("g", len(pods)), members).places() == expected


@pytest.mark.parametrize(("disabled", "expected"), [(False, "b"), (True, "a")])
def test_r6_nearness_can_be_disabled(disabled: bool, expected: str) -> None:
    plugin = {"name": "nodeorder", **({"enabledResourceNodeOrder": False} if disabled else {})}
    case = Reserving(nodes(a=1, b=3), group("g", 1), m.pod("g-0", 4, group="g"), tiers=[{"plugins": [plugin]}])
    assert case.places() == expected


@pytest.mark.parametrize(("percent", "limit", "found"), [(100, 4, True), (75, 3, True), (51, 3, True), (50, 2, False)])
def test_r6_no_more_nodes_than_may_be_reserved(percent: int, limit: int, found: bool) -> None:
    case = Reserving(nodes(a=0, b=0, c=0, d=0), group("g", 3), pods_of("g", 3, cpu=4), percent=percent)
    assert case.plan().limit == limit
    assert (case.places() is not None) is found
    assert case.places(plan=case.plan(percent=100)) is not None


def test_r6_nodes_that_are_reserved_already_count_and_may_be_shared() -> None:
    case = Reserving(nodes(a=0, b=3), group("h", 1), pods_of("h", 1), group("g", 1), pods_of("g", 1), percent=50)
    case.reserve("h", h_0="a")
    assert case.places() == "a", "`b` would be a second one"
    assert case.places(plan=case.plan("h")) == "b", "without that reservation"


# ---- R4: what is claimed on a node


def beside(cpu: int, **of_other: Any) -> Reserving:
    """Node `a` of 4 cpu: `h` reserves 2 of them since the 50th second, a pod `other` of 2 cpu runs, `g` wants some."""
    other = m.pod("other", 2, nodeName="a") | of_other
    case = Reserving(
        m.node("a"), group("h", 1), m.pod("h-0", 2, group="h"), group("g", 1), m.pod("g-0", cpu, group="g"), other
    )
    case.reserve("h", h_0="a")
    return case


@pytest.mark.parametrize(
    ("of_other", "most"),
    [
        pytest.param(started(49), 2, id="ran before the node was reserved"),
        pytest.param(started(50), 0, id="started as it was reserved"),
        pytest.param(started(55), 0, id="started since"),
        pytest.param({}, 0, id="has not reported its start yet"),
    ],
)
def test_r4_what_started_beside_a_reservation_counts(of_other: m.Obj, most: int) -> None:
    assert (beside(2, **of_other).places() is not None) is (most >= 2)
    case = beside(2, **of_other)
    assert case.places(plan=case.plan(with_started=False)) == "a"
    assert case.places(plan=case.plan("h")) == "a", "the reservation does not count"
    assert beside(3, **started(49)).places() is None, "within what the node has"


@pytest.mark.parametrize(
    ("since_s", "status", "expected"),
    [
        (4, TaskStatus.BOUND, False),
        (5, TaskStatus.BOUND, True),
        (6, TaskStatus.BOUND, True),
        (6, TaskStatus.RELEASING, False),
        (None, TaskStatus.BOUND, True),
        (None, TaskStatus.RELEASING, False),
    ],
)
def test_r4_started_since(since_s: int | None, status: TaskStatus, expected: bool) -> None:
    """The node was reserved in the course of the 5th second; times of pods are in whole seconds."""
    task = Reserving(m.node("n"), m.pod("a", nodeName="n")).task("a")
    task.status = status
    task.since_ns = since_s * SECOND_NS if since_s is not None else None
    assert _started_since(task, 5 * SECOND_NS + 1) is expected


@pytest.mark.parametrize(("cpu", "fits"), [(2, True), (3, False)])
def test_r4_room_that_is_freed_for_others_is_claimed(cpu: int, fits: bool) -> None:
    case = Reserving(
        m.node("a"), group("h", 1), m.pod("h-0", 2, group="h"), group("g", 1), m.pod("g-0", cpu, group="g")
    )
    case.nominate("h", h_0="a")
    assert (case.places() is not None) is fits


def test_r3_reservations_that_still_fit_beside_a_planned_one() -> None:
    """`g` takes 2 of the 4 cpu of `a`: one of two others, of 2 cpu each, keeps its node."""
    others = [one for name in "hk" for one in (group(name, 1), m.pod(f"{name}-0", 2, group=name))]
    case = Reserving(m.node("a"), others, group("g", 1), m.pod("g-0", 2, group="g"))
    case.reserve("h", h_0="a")
    case.reserve("k", k_0="a")
    plan = case.plan("h", "k")
    assert plan.places([case.gang("g")]) is not None
    assert [plan.try_keeping([case.gang(name)]) for name in "hkh"] == [True, False, False]


# ---- V4: a queue that may not use more


@pytest.mark.parametrize(("capability", "reserves"), [(None, True), (4, True), (3, False)])
def test_r4_nothing_is_reserved_for_what_its_queue_may_not_use(capability: int | None, reserves: bool) -> None:
    queue = m.queue("q", capability={"cpu": str(capability)}) if capability else m.queue("q")
    case = Reserving(nodes(a=0), queue, group("g", 2, queue="q"), pods_of("g", 2, cpu=2))
    assert (case.places() is not None) is reserves


# ---- R3: in which cycle


@pytest.mark.parametrize(
    ("queue", "priority", "deferred"),
    [
        pytest.param("default", 9, True, id="a higher one of its queue"),
        pytest.param("default", 0, False, id="a later one of its queue"),
        pytest.param("light", 0, True, id="of a queue that comes first"),
        pytest.param("heavy", 9, False, id="of a queue that comes later"),
    ],
)
def test_r3_deferred_if_a_gang_of_higher_order_was_scheduled(queue: str, priority: int, deferred: bool) -> None:
    """`heavy` uses more of its share than the default queue, `light` less."""
    used = [full(1, on="a", name="on-a"), full(3, on="b", name="on-b", queue="heavy")]
    waiting = [group("g", 1), m.pod("g-0", 4, group="g", priority=5)]
    scheduled = [group("s", 1, queue=queue), m.pod("s-0", 1, group="s", priority=priority)]
    queues = [m.queue("light"), m.queue("heavy")]
    demand = [one for name in ("light", "heavy") for one in (group(f"d-{name}", 1, queue=name),)]
    case = Reserving(m.node("a"), m.node("b"), queues, used, demand, waiting, scheduled)
    cycle = case.cycle
    assert not _higher_order_was_scheduled(cycle, case.gang("g"))
    cycle.served.append((queue, cycle.order(case.gang("s"))))
    assert _higher_order_was_scheduled(cycle, case.gang("g")) is deferred


# ---- R5: mended


def takes(case: Reserving, node: str) -> None:
    """The pod of `g` is placed there, and reservations of lower priority are mended."""
    Transaction(case.cycle.state).place([case.task("g-0")], [case.cycle.state.nodes.rows[node]])
    mend(case.cycle, frozenset({case.gang("h").key}), [case.gang("g")])


@pytest.mark.parametrize(
    ("other", "percent", "expected"),
    [
        pytest.param([m.node("c")], 100, {"h-0": "a", "h-1": "c"}, id="a slot moves to another node"),
        pytest.param([], 100, {"h-0": "a", "h-1": "b"}, id="there is none: it waits for the same node"),
        pytest.param([m.node("c")], 33, {}, id="no second node may be reserved: the reservation ends"),
    ],
)
def test_r5_slots_on_nodes_that_a_higher_gang_took_are_reserved_elsewhere(
    other: list[m.Obj], percent: int, expected: dict[str, str]
) -> None:
    case = Reserving(
        m.node("a"), m.node("b"), other, group("h", 2), pods_of("h", 2, cpu=4),
        group("g", 1), m.pod("g-0", 4, group="g", priority=9), percent=percent,
    )  # fmt: skip
    case.reserve("h", h_0="a", h_1="b")
    takes(case, "b")
    assert case.reserved("h") == expected


def test_r5_a_reservation_on_other_nodes_stays_as_it_is() -> None:
    case = Reserving(
        m.node("a"), m.node("b"), group("h", 1), pods_of("h", 1, cpu=4), group("g", 1), m.pod("g-0", 4, group="g")
    )
    case.reserve("h", h_0="a")
    claim = case.cycle.claims.of(case.gang("h"), ClaimKind.RESERVE)
    takes(case, "b")
    assert case.cycle.claims.of(case.gang("h"), ClaimKind.RESERVE) is claim


# ---- G9: a failed plan is not tried again while nothing that decides it changed


@pytest.mark.parametrize(
    ("percent", "cpus", "why", "changes"),
    [
        pytest.param(100, [4, 4], "", False, id="any node may be reserved: what is free does not decide"),
        pytest.param(50, [4, 4], "", True, id="the nearest ones are chosen"),
        pytest.param(100, [4, 2], "", True, id="tasks differ"),
        pytest.param(100, [4, 4], "capability", True, id="its queue has a limit"),
        pytest.param(100, [4, 4], "guarantee", True, id="a queue has a guarantee"),
        pytest.param(100, [4, 4], "claim", True, id="others have claims"),
        pytest.param(100, [4, 4], "ports", True, id="pods bear on each other"),
    ],
)
def test_g9_when_a_bound_pod_is_a_reason_to_plan_anew(percent: int, cpus: list[int], why: str, changes: bool) -> None:
    limits: m.Obj = {"capability": {"cpu": "9"}} if why == "capability" else {}
    other: m.Obj = {"guarantee": {"cpu": "1"}} if why == "guarantee" else {}
    members = [m.pod(f"g-{number}", cpu, group="g") for number, cpu in enumerate(cpus)]
    for one in members if why == "ports" else []:
        one["spec"]["containers"][0]["ports"] = [{"hostPort": 80, "containerPort": 80}]
    queues = [m.queue("q", **limits), m.queue("other", **other)]
    case = Reserving(
        nodes(a=1), queues, group("h", 1), pods_of("h", 1), group("g", 2, queue="q"), members, percent=percent
    )
    if why == "claim":
        case.reserve("h", h_0="a")
    before = _facts(case.cycle, [case.gang()])
    assert _facts(case.cycle, [case.gang()]) == before
    case.direct.put(m.pod("new", 1, nodeName="a"))
    case.cycle.state.settle()
    assert (_facts(case.cycle, [case.gang()]) != before) is changes
    case.direct.put(m.node("b"))
    case.cycle.state.settle()
    assert _facts(case.cycle, [case.gang()]) != before, "a node has come"
