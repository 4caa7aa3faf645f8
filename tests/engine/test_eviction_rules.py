"""Which tasks the rules of preempt and reclaim allow to be evicted (P1, P2), and what a plan uses at least (P3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from enbloc.engine.eviction.evictable import Cell
from enbloc.engine.eviction.rules import ByPriority, ByShare, _at_least
from enbloc.engine.placement.request import PlacementRequest, request_of
from enbloc.engine.tables.resources import total
from enbloc.engine.tables.tasks import Task, pending_tasks
from engine.claims.scenes import Scene, group
from support import manifests as m

OTHER: Cell = ("other", 0)


# ---- what a plan uses at least


def pods(*cpus: int, **fields: Any) -> list[m.Obj]:
    return [m.pod(f"g-{number}", cpu, group="g", **fields) for number, cpu in enumerate(cpus)]


@pytest.mark.parametrize(
    ("cpus", "placed", "needed", "short", "cpu"),
    [
        pytest.param([1, 2], "", 2, 0, 3, id="all are needed"),
        pytest.param([1, 2, 4], "", 1, 0, 1, id="the rest is not"),
        pytest.param([4, 2, 1], "", 1, 1, 5, id="the smallest of the rest"),
        pytest.param([4, 2, 1, 3], "", 1, 2, 7, id="the smallest two of the rest"),
        pytest.param([1, 2], "0", 2, 0, 2, id="one that is placed is used already"),
        pytest.param([1, 2], "01", 2, 0, 0, id="all are placed"),
        pytest.param([4, 2, 1], "1", 1, 1, 4, id="one of the rest is placed: no more are short"),
        pytest.param([4, 2, 1, 3], "1", 1, 2, 5, id="one of the rest is placed: one more is short"),
    ],
)
def test_p3_what_a_plan_uses_at_least(cpus: list[int], placed: str, needed: int, short: int, cpu: int) -> None:
    members = pods(*cpus)
    for number in placed:
        members[int(number)]["spec"]["nodeName"] = "n"
    scene = Scene(m.node("n", 99), group(minimum=len(cpus)), members)
    tasks = [scene.task(f"g-{number}") for number in range(len(cpus))]
    column = scene.state.resources.names.index("cpu")
    found = _at_least([PlacementRequest(scene.gang(), tasks[:needed], tasks[needed:], short)])
    assert found.get(column, 0) == cpu * 1000


def test_p3_tasks_of_other_schedulers_use_nothing_of_the_queue() -> None:
    scene = Scene(m.node("n", 99), group(minimum=2), pods(1, 2))
    tasks = pending_tasks(scene.gang())
    for task in tasks:
        task.ours = False
    assert _at_least([PlacementRequest(scene.gang(), tasks[:1], tasks[1:], 1)]) == {}


# ---- by share: of 8 cpu, queues `own` and `other` deserve half each; a gang `g` of `own` waits


class Reclaiming:
    def __init__(self, cpu: int, other: int, queues: Sequence[m.Obj] = (m.queue("own"), m.queue("other"))) -> None:
        """The pod of `g` requests `cpu`; pods `r-0`, `r-1` … of `other` run."""
        demand = [*m.gang("b", 8, queue="own"), *m.gang("c", 8, queue="other")]
        running = m.gang("r", other, 1, queue="other", nodeName="n")
        waiting = [group("g", 1, queue="own"), m.pod("g-0", cpu, group="g")]
        self.scene = Scene(m.node("n", 8), list(queues), demand, running, waiting)
        self.request = request_of(self.scene.gang())
        asked = total(task.cls.request for task in self.request.everything)
        evictions = self.scene.direct.engine.parts.evictions
        self.rules = ByShare(self.scene.state, evictions, [self.scene.gang()], asked)

    def victims(self, count: int = 1) -> list[Task]:
        return [self.scene.task(f"r-{number}") for number in range(count)]


@pytest.mark.parametrize(
    ("cpu", "other", "cells", "bars"),
    [
        pytest.param(4, 5, [OTHER], False, id="within its share, the other above"),
        pytest.param(5, 5, [], False, id="above its share, the other too"),
        pytest.param(4, 4, [], False, id="within its share, the other too"),
        pytest.param(5, 4, [], True, id="above its share, the other within: it would take it back"),
    ],
)
def test_p2_p3_what_may_be_reclaimed(cpu: int, other: int, cells: list[Cell], bars: bool) -> None:
    """`cpu` is what is asked for, `other` what the other queue uses."""
    case = Reclaiming(cpu, other)
    assert list(case.rules.cells()) == cells
    assert case.rules.allows(case.victims()) is (other > 4)
    assert not case.rules.bars(case.victims())  # no plan has begun
    case.rules.begin([case.request])
    assert case.rules.bars(case.victims()) is bars
    assert list(case.rules.not_barred([OTHER])) == ([] if bars else [OTHER])


def test_p3_nothing_is_barred_for_gangs_of_several_queues() -> None:
    """What their queues use together is known when the plan is complete."""
    case = Reclaiming(5, 4)
    case.rules.begin([case.request, request_of(case.scene.gang("c"))])
    assert not case.rules.bars(case.victims())
    assert list(case.rules.not_barred([OTHER])) == [OTHER]


@pytest.mark.parametrize(
    ("other", "allowed"),
    [
        pytest.param(m.queue("other"), True, id="above its share"),
        pytest.param(m.queue("other", reclaimable=False), False, id="not reclaimable"),
        pytest.param(m.queue("other", guarantee={"cpu": "3"}), True, id="down to its guarantee"),
        pytest.param(m.queue("other", guarantee={"cpu": "4"}), False, id="below its guarantee"),
    ],
)
def test_p2_two_of_five_pods_of_a_queue_may_be_reclaimed(other: m.Obj, allowed: bool) -> None:
    case = Reclaiming(1, 5, [m.queue("own"), other])
    assert case.rules.allows(case.victims(2)) is allowed


@pytest.mark.parametrize("above", [[], [m.queue("org")]], ids=["below the root", "below another queue"])
def test_p2_a_queue_reclaims_nothing_from_itself(above: list[m.Obj]) -> None:
    own = m.queue("own", parent="org") if above else m.queue("own")
    case = Reclaiming(1, 5, [*above, own, m.queue("other")])
    assert case.rules.allows(case.victims())
    assert not case.rules.allows([case.scene.task("b-0")])


# ---- by priority


@pytest.mark.parametrize(
    ("best_effort_only", "victims", "allowed"),
    [(False, "a b", True), (True, "a b", False), (True, "a", False), (True, "b", True)],
)
def test_p1_for_best_effort_tasks_only_best_effort_tasks_are_evicted(
    best_effort_only: bool, victims: str, allowed: bool
) -> None:
    running = [m.pod("a", 1, nodeName="n"), m.pod("b", None, nodeName="n")]
    scene = Scene(m.node("n", 8), running, group("g", 1), m.pod("g-0", None, group="g"))
    evictions = scene.direct.engine.parts.evictions
    rules = ByPriority(evictions, [scene.gang()], 1, best_effort_only=best_effort_only)
    assert rules.allows([scene.task(name) for name in victims.split()]) is allowed


def test_p1_cells_of_lower_priority_in_the_same_queue_the_lowest_first() -> None:
    running = [m.pod(f"p{number}", 1, nodeName="n", priority=number) for number in (3, 1, 2, 0)]
    elsewhere = m.pod("e", 1, nodeName="n", queue="other")
    scene = Scene(m.node("n", 8), m.queue("other"), running, elsewhere, group("g", 1), m.pod("g-0", 1, group="g"))
    evictions = scene.direct.engine.parts.evictions
    rules = ByPriority(evictions, [scene.gang()], 2, best_effort_only=False)
    assert list(rules.cells()) == [("default", 0), ("default", 1)]


# ---- by share: plans as a whole, and the order of queues


def sharing(parents: Mapping[str, str] | None = None, **used: int) -> Scene:
    """Queue → the cpu that its pods use; pods of 1 cpu of every queue wait, such as `wait-own-0`. `parents`: queue →
    the one above it."""
    parents = parents or {}
    found = [m.queue(name) for name in sorted({*parents.values()} - {*used})]
    for queue, count in used.items():
        running = m.gang(f"run-{queue}", count, queue=queue, nodeName="n")
        placed = m.queue(queue, parent=parents[queue]) if queue in parents else m.queue(queue)
        found += [placed, *running, *m.gang(f"wait-{queue}", 8, 1, queue=queue)]
    return Scene(m.node("n", 8), found)


def by_share(scene: Scene) -> ByShare:
    gang = scene.gang("wait-own")
    asked = total([scene.task("wait-own-0").cls.request])
    return ByShare(scene.state, scene.direct.engine.parts.evictions, [gang], asked)


@pytest.mark.parametrize(
    ("own", "other", "accepted"),
    [
        pytest.param(4, 3, True, id="within its share"),
        pytest.param(5, 4, True, id="above its share, the other would be so, too"),
        pytest.param(5, 3, False, id="above its share, the other would take back a pod"),
    ],
)
def test_p3_a_plan_is_accepted_if_the_victims_would_not_take_it_back(own: int, other: int, accepted: bool) -> None:
    """With the plan carried out: a victim, of 1 cpu, is not counted in `other` any more."""
    scene = sharing(own=own, other=other)
    assert by_share(scene).accepts([scene.task("wait-other-0")]) is accepted


@pytest.mark.parametrize(
    ("used", "first"), [({"p": 3, "q": 5}, "q p"), ({"p": 5, "q": 3}, "p q"), ({"p": 4, "q": 4}, "p q")]
)
def test_p2_the_queue_furthest_above_its_share_gives_first(used: dict[str, int], first: str) -> None:
    assert [name for name, _ in by_share(sharing(own=0, **used)).cells()] == first.split()


def test_p2_of_two_branches_the_one_furthest_above_its_share_gives_first() -> None:
    """Branches are compared before the queues in them: `b1` is further above its share than `a1` and `a2`, which have
    more between them."""
    parents = {"a1": "a", "a2": "a", "b1": "b", "b2": "b", "own": "o"}
    scene = sharing(parents, own=0, a1=3, a2=2, b1=3, b2=0)
    cells = [name for name, _ in by_share(scene).cells()]
    assert cells[:2] == ["a1", "a2"]
    assert "b1" in cells


def test_p2_a_queue_below_another_is_not_among_those_that_give_to_it() -> None:
    scene = sharing({"own": "org"}, own=2, other=6)
    assert [name for name, _ in by_share(scene).cells()] == ["other"]


def test_p2_a_queue_above_its_share_of_another_resource_is_not_among_those_that_give_to_it() -> None:
    """`own` uses all memory and no cpu; a pod of it that requests cpu waits."""
    memory = m.gang("run-own", 1, cpu=None, memory="16Gi", queue="own", nodeName="n")
    cpu = m.gang("run-other", 8, queue="other", nodeName="n")
    demand = [one for name in ("own", "other") for one in m.gang(f"wait-{name}", 8, 1, memory="1Gi", queue=name)]
    scene = Scene(m.node("n", 8), m.queue("own"), m.queue("other"), memory, cpu, demand)
    assert scene.state.queues.above_share(scene.state.queues.get("own"))
    assert [name for name, _ in by_share(scene).cells()] == ["other"]


def test_p3_what_a_queue_above_us_gives_is_not_barred() -> None:
    """Only queues beside ours could take back what they give; `org` has its share with ours."""
    scene = sharing({"own": "org"}, org=1, own=3, other=4)
    rules = by_share(scene)
    rules.begin([request_of(scene.gang("wait-own"))._replace(needed=pending_tasks(scene.gang("wait-own")), rest=[])])
    assert rules.bars([scene.task("run-other-0")])
    assert not rules.bars([scene.task("run-org-0")])
    assert list(rules.not_barred([("org", 0), OTHER])) == [("org", 0)]
