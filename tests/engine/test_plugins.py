"""Plugins that order gangs and score nodes, and where a config puts them (C, O2, G8)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest

from enbloc.config import parse
from enbloc.engine.core.ordering import Band, GangOrder
from enbloc.engine.core.plugins.gang_orders import RemainingFirst, Sla, remaining_ns
from enbloc.engine.core.plugins.plugin import load
from enbloc.engine.core.plugins.scores import Binpack, NodeOrder
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.headroom import Headroom
from enbloc.engine.core.tables.resources import CPU
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.features.admission.deadlines import Deadlines
from enbloc.gangs.hints import SchedulingHints
from engine import gang_states
from engine.scenes import Scene, group
from support import manifests as m

BOUND = TaskStatus.BOUND


def timed(run_time: int | None, *starts: int | None, status: TaskStatus = BOUND) -> GangState:
    """A gang with an expected run time, and pods that run since these times."""
    made = gang_states.gang(hints=SchedulingHints(run_time_ns=run_time))
    for number, since_ns in enumerate(starts):
        gang_states.task(made, f"p{number}", status=status, node="n", since_ns=since_ns)
    return made


# ---- srtf, srsf


@pytest.mark.parametrize(
    ("gang", "left"),
    [
        (timed(None, 0), None),
        (timed(100), 100),
        (timed(100, 30), 90),
        (timed(100, 35, 30), 90),  # the first pod that started counts
        (timed(100, None), 100),
        (timed(100, None, 30), 90),
        (timed(100, 30, status=TaskStatus.RELEASING), 100),
        (timed(5, 30), 0),
    ],
)
def test_what_is_left_of_a_gang_at_40(gang: GangState, left: int | None) -> None:
    assert remaining_ns(gang, 40) == left
    order = RemainingFirst(by_service=False)
    unknown = (2**127,)
    assert order.running_order(gang, 40) == (unknown if left is None else (left,))
    run_time = gang.run_time_ns
    assert order.gang_order(gang) == (unknown if run_time is None else (run_time,)), "of one that waits all is left"


@pytest.mark.parametrize(
    ("extra", "cpu", "units"),
    [
        ({}, 2, 4000),
        ({"nvidia.com/gpu": 3}, 2, 6),
        ({"nvidia.com/gpu": 1, "amd.com/gpu": 5}, 2, 10),
        ({}, None, 0),
    ],
)
def test_service_is_time_by_extended_resources_else_by_cpu(extra: dict[str, int], cpu: m.Quantity, units: int) -> None:
    pods = [m.pod(f"g-{number}", cpu, group="g", extra=extra) for number in range(2)]
    scene = Scene(m.node("n"), group(), pods)
    gang = scene.gang()
    gang.spec = gang_states.gang(hints=SchedulingHints(run_time_ns=10)).spec
    order = RemainingFirst(by_service=True)
    order.resources = scene.state.resources
    assert order.gang_order(gang) == (10 * units,)


# ---- sla


@pytest.mark.parametrize(
    ("own", "default", "deadline"), [(None, None, None), (None, 50, 57), (20, 50, 27), (20, None, 27), (0, 50, 7)]
)
def test_c_the_deadline_of_a_gang_created_at_7(own: int | None, default: int | None, deadline: int | None) -> None:
    gang = gang_states.gang()
    gang.spec = msgspec.structs.replace(gang.spec, created_ns=7, hints=SchedulingHints(sla_waiting_ns=own))
    sla = Sla(default)
    assert sla.deadline_ns(gang) == deadline
    assert sla.gang_order(gang) == ((1, 0) if deadline is None else (0, deadline))


class Waiting:
    """A gang with a deadline at 10 that is not enqueued."""

    def __init__(self, sla: Sla | None) -> None:
        self.touched: list[GangState] = []
        self.gang = gang_states.gang(hints=SchedulingHints(sla_waiting_ns=10))
        self.gang.assume(enqueued=False)
        known = SimpleNamespace(gangs={self.gang.key: self.gang}, touch=self.touched.append)
        self.known = known
        self.deadlines = Deadlines(cast(State, known), sla)
        self.deadlines.gang_read(self.gang)

    def begin(self, now_ns: int) -> tuple[bool, bool]:
        """Whether the gang is read in this cycle, and whether its deadline has passed."""
        self.touched.clear()
        self.deadlines.time_passes(now_ns)
        return bool(self.touched), self.deadlines.has_passed(self.gang)


def test_c_a_gang_is_read_when_its_deadline_passes() -> None:
    waiting = Waiting(Sla(None))
    assert waiting.deadlines.due() == 10
    assert waiting.begin(9) == (False, False)
    assert waiting.begin(10) == (True, True)
    assert waiting.deadlines.due() is None
    assert waiting.begin(11) == (False, True)
    waiting.deadlines.gang_read(waiting.gang)
    assert waiting.deadlines.due() is None, "it has passed"


@pytest.mark.parametrize("end", ["enqueued", "gone", "forgotten"])
def test_c_a_gang_that_is_enqueued_or_gone_has_no_deadline(end: str) -> None:
    waiting = Waiting(Sla(None))
    if end == "enqueued":
        waiting.gang.assume(enqueued=True)
        waiting.deadlines.gang_read(waiting.gang)
    elif end == "gone":
        waiting.deadlines.gang_gone(waiting.gang)
    else:
        waiting.known.gangs.clear()
    assert waiting.begin(10)[0] is False
    assert waiting.deadlines.has_passed(waiting.gang) is (end == "forgotten")


def test_c_another_deadline_counts_from_now_on() -> None:
    waiting = Waiting(Sla(None))
    waiting.gang.spec = gang_states.gang(hints=SchedulingHints(sla_waiting_ns=5)).spec
    waiting.gang.assume(enqueued=False)
    waiting.deadlines.gang_read(waiting.gang)
    assert waiting.deadlines.due() == 5
    assert waiting.begin(5) == (True, True)
    assert waiting.begin(10) == (False, True)


# ---- scores


def headroom(*nodes: m.Obj, pods: list[m.Obj] | None = None, cpu: int = 1, memory: str | None = "1Gi") -> Headroom:
    scene = Scene(list(nodes), pods or [], m.pod("p", cpu, memory=memory))
    rows = np.array([scene.state.nodes.rows[one["metadata"]["name"]] for one in nodes])
    return Headroom(scene.state.nodes, rows, scene.task("p").cls.request)


USED = [m.pod("r", 2, memory="1Gi", nodeName="used")]
NODES = [m.node("used", 4, memory="4Gi"), m.node("free", 4, memory="4Gi")]


@pytest.mark.parametrize(
    ("weights", "best"), [((1, 0, 0), "free"), ((0, 1, 0), "used"), ((0, 0, 1), "free"), ((1, 1, 0), "free")]
)
def test_c_nodes_are_scored_by_what_is_free_used_or_balanced(weights: tuple[int, int, int], best: str) -> None:
    """`used` has 2 of 4 cpu and 1 of 4 Gi in use: it is fuller, and less even. With equal weights the number of pods
    decides."""
    scores = NodeOrder(*weights).score(headroom(*NODES, pods=USED))
    assert ["used", "free"][int(np.argmax(scores))] == best
    assert (scores >= 0).all()
    assert scores[0] != scores[1]


@pytest.mark.parametrize(
    ("resources", "best"),
    [
        ({"cpu": 1}, "cpu"),
        ({"memory": 1}, "memory"),
        ({"cpu": 5, "memory": 1}, "cpu"),
        ({"cpu": 1, "memory": 5}, "memory"),
        ({"cpu": 0, "memory": 1}, "memory"),
        ({"example.com/none": 9, "cpu": 1}, "cpu"),
    ],
)
def test_c_binpack_prefers_nodes_where_the_weighted_resources_are_used(resources: dict[str, int], best: str) -> None:
    pods = [m.pod("r", 2, nodeName="cpu"), m.pod("s", None, memory="2Gi", nodeName="memory")]
    room = headroom(m.node("cpu", 4, memory="4Gi"), m.node("memory", 4, memory="4Gi"), pods=pods)
    scores = Binpack(1, resources).score(room)
    assert ["cpu", "memory"][int(np.argmax(scores))] == best
    assert (Binpack(3, resources).score(room) > scores).all()
    assert (scores <= 100 * 128).all()


def test_c_binpack_of_resources_that_a_task_does_not_request_says_nothing() -> None:
    room = headroom(*NODES, pods=USED, memory=None)
    assert Binpack(1, {"memory": 1}).score(room).tolist() == [0, 0]


# ---- where a config puts them


def tiers(*names: str, **flags: Any) -> dict[str, Any]:
    plugins = [{"name": name, **(flags if number == 0 else {})} for number, name in enumerate(names)]
    return {"tiers": [{"plugins": plugins}]}


def order_of(config: dict[str, Any] | None) -> list[str]:
    return [type(cast(Any, order).__self__).__name__ for order in load(parse(config)).gang_order]


@pytest.mark.parametrize(
    ("config", "orders"),
    [
        (None, ["Priority"]),
        (tiers("priority", "sla"), ["Priority", "Sla"]),
        (tiers("sla", "priority"), ["Sla", "Priority"]),
        (tiers("priority", "sla", "sjf"), ["Priority", "Sla", "ShortestFirst"]),
        (tiers("priority", "fair", "srtf"), ["Priority", "FairShare", "RemainingFirst"]),
        (tiers("priority", "srsf"), ["Priority", "RemainingFirst"]),
    ],
)
def test_c_the_order_of_the_plugins_that_order_gangs(config: dict[str, Any] | None, orders: list[str]) -> None:
    assert order_of(config) == orders


@pytest.mark.parametrize(
    ("config", "on"),
    [
        (None, {"predicates": True, "task_priority": True, "queue_order": True}),
        (tiers("priority", enableTaskOrder=False), {"task_priority": False, "queue_order": True}),
        (tiers("predicates", enablePredicate=False), {"predicates": False, "task_priority": True}),
        (tiers("proportion", enableQueueOrder=False), {"queue_order": False}),
        (tiers("capacity", enableQueueOrder=False), {"queue_order": False}),
    ],
)
def test_c_what_a_config_switches_off(config: dict[str, Any] | None, on: dict[str, bool]) -> None:
    found = load(parse(config))
    assert {name: getattr(found, name) for name in on} == on


def test_c_deadlines_only_where_sla_is_listed() -> None:
    assert load(parse(None)).deadlines is None
    assert load(parse(tiers("priority", "sla"))).deadlines is not None
    assert load(parse(None)).fair is None
    assert load(parse(tiers("fair"))).fair is not None
    assert len(load(parse(tiers("srtf"))).by_remaining) == 1


def test_c_scores_add_up_and_without_plugins_all_nodes_are_alike() -> None:
    room = headroom(*NODES, pods=USED)
    found = load(parse(None))
    one = lambda headroom: np.array([1, 2])  # noqa: E731
    assert found._replace(scores=[one, one]).score(room).tolist() == [2, 4]
    assert found._replace(scores=[]).score(room).tolist() == [0, 0]
    assert room.after(CPU).tolist() != [0, 0]


# ---- the order of gangs


@pytest.mark.parametrize(
    ("band", "satisfied", "in_turn", "is_last"),
    [
        (Band.MINIMA, False, False, False),
        (Band.MINIMA, True, False, False),
        (Band.SURPLUS, False, False, True),
        (Band.SURPLUS, True, False, True),
        (Band.SURPLUS, False, True, True),
        (Band.SURPLUS, True, True, False),
    ],
)
def test_g3_g7_surplus_comes_last_unless_it_is_left_over_and_its_dialect_serves_that_in_turn(
    band: Band, satisfied: bool, in_turn: bool, is_last: bool
) -> None:
    scene = Scene(m.node("n"))
    order = GangOrder(scene.state, load(parse(None)))
    made = gang_states.gang(leftovers_in_turn=in_turn, satisfied=satisfied)
    found = order(made, band)
    assert (found.is_last, found.band, found.is_whole) == (is_last, band, True)
    made.partial_since_ns = 3
    assert not order(made, band).is_whole
    assert order(made) < order(gang_states.gang()), "a partially bound gang is completed first (G11)"


def test_g12_gangs_of_different_accounts_are_of_different_levels() -> None:
    scene = Scene(m.node("n"))
    plain = GangOrder(scene.state, load(parse(None)))
    fair = GangOrder(scene.state, load(parse(tiers("fair"))))
    one, other = (gang_states.gang(hints=SchedulingHints(user=user)) for user in "ab")
    assert plain(one).level == plain(other).level
    assert fair(one).level != fair(other).level
    assert fair(one).account == "ns/a"
