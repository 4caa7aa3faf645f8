"""Eviction plans as a whole: who leaves, where the gang goes, and that the state is as before (P1, P2)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.eviction.planner import Plan, Planner, _first
from enbloc.engine.eviction.rules import ByPriority, ByShare, Rules
from enbloc.engine.placement.constraints import UNCONSTRAINED
from enbloc.engine.placement.request import request_of
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import total
from engine.claims.scenes import Scene, group
from engine.evictions import leaves, member, runs, wants
from support import manifests as m


def plan_of(*objects: Any, by_share: bool = False, suffices: bool = True) -> Plan | None:
    scene = Scene(*objects)
    parts, gang = scene.direct.engine.parts, scene.gang("q")
    request = request_of(gang)
    for other in scene.state.gangs.values():
        parts.evictions.gang_read(other)
    rules: Rules = ByPriority(parts.evictions, [gang], 9, best_effort_only=False)
    if by_share:
        rules = ByShare(scene.state, parts.evictions, [gang], total(task.cls.request for task in request.minimum))
    planner = Planner(scene.state, parts.placer, parts.evictions, rules, UNCONSTRAINED, scene.groups)
    before = scene.state.nodes.free.copy()
    found = planner.find([request], lambda transaction: None, None if suffices else lambda: False)
    assert (scene.state.nodes.free == before).all(), "nothing was evicted, only planned"
    scene.state.validate()
    return found


def victims(*objects: Any, **options: bool) -> str | None:
    """Names of the victims; `None`: there is no plan."""
    plan = plan_of(*objects, **options)
    return " ".join(sorted(task.name for task in plan.victims)) if plan is not None else None


NODES = [m.node("n", 4), m.node("o", 4)]


@pytest.mark.parametrize("by_role", [False, True])
@pytest.mark.parametrize(
    ("running", "pods", "expected"),
    [
        pytest.param([], [(4, ""), (4, "")], "", id="there is room"),
        pytest.param([leaves(runs("a", 4, "n"))], [(4, ""), (4, "")], "", id="terminating pods are gone by then"),
        pytest.param([runs("a", 4, "n")], [(4, "")], "", id="there is room elsewhere"),
        pytest.param([runs("a", 4, "n"), runs("b", 1, "o")], [(4, "")], "b", id="the later of two"),
        pytest.param([runs("a", 1, "n"), runs("b", 4, "o")], [(4, "n")], "a", id="where it has to go"),
        pytest.param([runs("a", 1, "n"), runs("b", 4, "o")], [(4, ""), (4, "")], "a b", id="both"),
        pytest.param([runs("a", 2, "n"), runs("b", 2, "n"), runs("c", 4, "o")], [(4, "")], "c", id="one, not two"),
        pytest.param([runs("a", 1, "n"), runs("b", 3, "n"), runs("c", 4, "o")], [(3, "n")], "b", id="which suffices"),
        pytest.param([runs("a", 4, "n", priority=9), runs("b", 4, "o")], [(4, ""), (4, "")], None, id="not of its own"),
        pytest.param([runs("a", 4, "n")], [(5, "")], None, id="no node is large enough"),
        pytest.param([runs("a", 4, "n")], [(4, "n"), (4, "n")], None, id="not all of it would fit"),
        pytest.param(
            [runs("a", 3, "n", priority=1), runs("b", 4, "o")], [(4, "")], "b", id="the lowest priority, though larger"
        ),
        pytest.param(
            [runs("a", 1, "n"), runs("b", 3, "n", priority=1), runs("c", 4, "o", priority=2)], [(3, "n")], "b",
            id="none of a lower priority in vain",
        ),
        pytest.param(
            [runs("a", 1, "n"), runs("b", 3, "n", priority=1)], [(4, "n")], "a b", id="of two priorities together"
        ),
    ],
)  # fmt: skip
def test_p1_who_leaves(running: list[m.Obj], pods: list[Any], expected: str | None, by_role: bool) -> None:
    assert victims(NODES, running, wants(*pods, by_role=by_role)) == expected


def test_p1_the_plan_says_where_each_pod_goes() -> None:
    plan = plan_of(NODES, runs("a", 4, "n"), runs("b", 4, "o"), wants((1, "o"), (2, "o"), (3, "n")))
    assert plan is not None
    assert [(task.name, node) for task, node in plan.places] == [("q-0", "o"), ("q-1", "o"), ("q-2", "n")]


# ---- members beyond the minimum


@pytest.mark.parametrize(
    ("minimum", "expected"),
    [
        pytest.param(1, "a", id="the first pod needs one victim"),
        pytest.param(2, "a b", id="both need one each"),
    ],
)
def test_p1_no_pod_is_evicted_for_members_beyond_the_minimum(minimum: int, expected: str) -> None:
    """Pods of 4 and 3 cpu, on nodes of 4 cpu; the second may go to either."""
    running = [runs("b", 4, "o"), runs("a", 4, "n")]
    assert victims(NODES, running, wants((4, "n"), (3, ""), minimum=minimum)) == expected


# ---- surplus of other gangs

D, D2 = m.podgroup("d", 1), m.podgroup("d", 2)


@pytest.mark.parametrize(
    ("running", "pods", "expected"),
    [
        pytest.param([D, member("d-0", 4, "n"), member("d-1", 4, "o")], [(4, "")], "d-1", id="the last in order"),
        pytest.param([D, member("d-0", 4, "n"), member("d-1", 4, "o")], [(4, "n")], "d-0", id="the one of use"),
        pytest.param([D, member("d-0", 4, "n"), member("d-1", 4, "o")], [(4, ""), (4, "")], "d-0 d-1", id="then all"),
        pytest.param(
            [runs("a", 4, "n"), D, member("d-0", 2, "o"), member("d-1", 1, "o")], [(2, "")], "d-1", id="before a gang"
        ),
        pytest.param(
            [D, member("d-0", 2, "o"), member("d-1", 2, "o"), runs("a", 4, "n", priority=1)], [(4, "")], "d-0 d-1",
            id="a gang of lower priority before any of a higher one",
        ),
        pytest.param(
            [D2, member("d-0", 1, "n"), member("d-1", 1, "o"), member("d-2", 2, "n"), runs("a", 3, "o")], [(4, "o")],
            "a d-1", id="a gang, and one member of another that has one to spare",
        ),
    ],
)  # fmt: skip
def test_p1_surplus_leaves_before_whole_gangs(running: list[m.Obj], pods: list[Any], expected: str) -> None:
    assert victims(NODES, running, wants(*pods)) == expected


def test_p1_no_gang_leaves_where_other_surplus_would_suffice() -> None:
    """Without the last of `d`, `b` would have to leave too; without its first, two pods fit where that was."""
    nodes = [m.node("k", 2), m.node("n", 4), m.node("o", 3)]
    running = [D, member("d-0", 3, "n"), member("d-1", 3, "o"), runs("b", 2, "k")]
    assert victims(nodes, running, wants((2, ""), (2, ""))) == "d-0"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([("n", 4), ("o", 3)], "b d-0", id="not the last, whose node is too small"),
        pytest.param([("n", 4), ("p", 4), ("o", 3)], "b d-1", id="of two that suffice the last in order"),
        pytest.param([("n", 4), ("p", 4), ("o", 4)], "b d-2", id="the last of all"),
    ],
)
def test_p1_the_surplus_that_suffices_leaves_in_place_of_its_gang(nodes: list[tuple[str, int]], expected: str) -> None:
    """`b` has to leave its node in any case. `d` has one pod of 3 cpu on each other node, and can spare one of them:
    two pods of 2 cpu go to where it was."""
    running = [member(f"d-{number}", 3, name) for number, (name, _) in enumerate(nodes)]
    given = [m.node("k", 2), *(m.node(name, cpu) for name, cpu in nodes)]
    group_of = m.podgroup("d", len(nodes) - 1)
    assert victims(given, group_of, running, runs("b", 2, "k"), wants((2, ""), (2, ""), (2, "k"))) == expected


# ---- what must hold besides


def test_k7_p1_no_pod_is_evicted_where_it_would_not_suffice() -> None:
    assert victims(NODES, runs("a", 4, "n"), wants((4, "n")), suffices=False) is None
    assert victims(NODES, wants((4, "n")), suffices=False) is None, "nothing has to be evicted"


# ---- by share: of 8 cpu, queues `own` and `other` deserve half each


def shared(*running: m.Obj, pods: int = 1) -> list[Any]:
    queues = [m.queue("own"), m.queue("other")]
    demand = [*m.gang("c", 8, queue="other"), *m.gang("e", 8, queue="own")]
    waiting = [group("q", pods, queue="own"), *(m.pod(f"q-{number}", 1, group="q") for number in range(pods))]
    return [m.node("n", 4), m.node("o", 4), queues, demand, *running, waiting]


def of_other(name: str, cpu: int, node: str) -> m.Obj:
    return runs(name, cpu, node, queue="other")


@pytest.mark.parametrize(
    ("running", "pods", "expected"),
    [
        pytest.param([("a", 4, "n"), ("b", 4, "o")], 4, "b", id="one of two"),
        pytest.param([("a", 4, "n"), ("b", 4, "o")], 5, None, id="no more than its share"),
        pytest.param([("a", 3, "n"), ("b", 1, "n"), ("c1", 4, "o")], 1, "c1", id="among equals the last in order"),
        pytest.param([("a", 4, "n")], 4, "", id="the other is within its share, and there is room"),
        pytest.param([("a", 4, "n"), ("b", 3, "o")], 4, "b", id="down to its share and below"),
    ],
)
def test_p2_what_is_reclaimed(running: list[tuple[str, int, str]], pods: int, expected: str | None) -> None:
    assert victims(*shared(*(of_other(*one) for one in running), pods=pods), by_share=True) == expected


# ---- the first step that has a plan


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (0, 7), (3, 8)])
def test_the_first_number_for_which_it_holds(low: int, high: int) -> None:
    for first in range(low, high + 1):
        asked: list[int] = []

        def holds(number: int, first: int = first, asked: list[int] = asked) -> bool:
            asked.append(number)
            return number >= first

        assert _first(holds, low, high) == first
        assert all(low <= number < high for number in asked)
        assert len(asked) <= 5, "by halves"


def test_what_is_prepared_is_undone_with_the_plan() -> None:
    scene = Scene(NODES, runs("a", 4, "n"), runs("b", 4, "o"), wants((4, "")))
    parts, gang = scene.direct.engine.parts, scene.gang("q")
    rules = ByPriority(parts.evictions, [gang], 9, best_effort_only=False)
    planner = Planner(scene.state, parts.placer, parts.evictions, rules, UNCONSTRAINED, scene.groups)

    def prepare(transaction: Transaction) -> None:
        transaction.evict(scene.task("a"))

    plan = planner.find([request_of(gang)], prepare)
    assert plan is not None
    assert ([task.name for task in plan.victims], [node for _, node in plan.places]) == ([], ["n"])
    assert scene.free_cpu("n") == 0
