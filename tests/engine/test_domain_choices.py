"""T7: the domains that could be freed or reserved; T1: whether what is placed is together; T0: units of the surplus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from enbloc.engine.core.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.core.placement.domain_choices import domain_choices, is_together
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.features.sub_groups import sub_groups
from enbloc.gangs.gang_tree import Vertex
from enbloc.gangs.topology import TopologyConstraint
from engine.gang_states import gang, members, racks
from support import manifests as m
from support import racks as r
from support.direct_scheduler import knowing

RACK, BLOCK = TopologyConstraint("kueue/dc", r.RACK), TopologyConstraint("kueue/dc", r.BLOCK)


def choices(
    state: State, of: GangState, tasks: list[Task], most: int = 9, constraints: Constraints = UNCONSTRAINED
) -> list[str]:
    """The nodes that each choice leaves open to the last task."""
    names = state.nodes.names
    found = []
    for one in domain_choices(state, [PlacementRequest(of, tasks)], constraints, most):
        closed = one.closed_rows(tasks[-1])
        open_rows = range(len(names)) if closed is None else np.flatnonzero(~closed).tolist()
        found.append(" ".join(names[row] for row in open_rows))
    return found


def three_racks() -> State:
    """Rack a has room for 1 of 4 pods of 1 cpu, b for all 4, c is too small for 4."""
    state = racks(a=1, b=1, c=[3])
    state.nodes.allocate(state.nodes.rows["a-0"], members(state, gang(), 3)[0].cls.request)
    return state


@pytest.mark.parametrize(
    ("constraint", "cpus", "most", "found"),
    [
        (RACK, [1] * 4, 9, ["b-0", "a-0"]),  # the most room now first; c is too small even if it were empty
        (RACK, [1] * 4, 1, ["b-0"]),
        (RACK, [1] * 3, 9, ["b-0", "c-0", "a-0"]),
        (RACK, [4, 1], 9, ["b-0", "a-0"]),  # each class by itself
        (RACK, [1] * 5, 9, []),
        (BLOCK, [1] * 5, 9, ["a-0 b-0 c-0"]),
        (None, [1] * 5, 9, ["a-0 b-0 c-0"]),
        (TopologyConstraint("kueue/dc", preferred=r.RACK), [1] * 5, 9, ["a-0 b-0 c-0"]),
        (TopologyConstraint("kai/none", "x"), [1], 9, []),
    ],
)
def test_t7_domains_that_would_hold_the_gang_if_they_were_empty(
    constraint: TopologyConstraint | None, cpus: list[int], most: int, found: list[str]
) -> None:
    state = three_racks()
    of = gang(topology=constraint)
    assert choices(state, of, members(state, of, *cpus), most) == found


def test_t7_closed_nodes_are_not_freed() -> None:
    state = three_racks()
    of = gang(topology=RACK)
    closed = Constraints(lambda one: [("reserved", np.array([False, True, False]))])
    assert choices(state, of, members(state, of, *[1] * 4), constraints=closed) == ["a-0"]


def test_t4_only_the_domain_of_the_members_that_are_placed_is_freed() -> None:
    state = three_racks()
    of = gang(topology=RACK, occupied={"": 1})
    placed, *tasks = members(state, of, *[1] * 3)
    placed.node, placed.status = "a-0", TaskStatus.BOUND
    assert choices(state, of, tasks) == ["a-0"]


def test_t7_a_part_is_freed_within_the_domain_of_its_gang() -> None:
    nodes = [*r.nodes({"a": 1, "b": 1}, "x"), *r.nodes({"c": 1}, "y")]
    state = knowing(r.topology("dc", r.BLOCK, r.RACK), *nodes).engine.state
    of = gang(topology=BLOCK, topology_of_role={"w": RACK})
    tasks = [*members(state, of, 1, role="m"), *members(state, of, 1, 1, role="w")]
    assert choices(state, of, tasks) == ["a-0", "b-0", "c-0"]
    assert choices(state, of, tasks, most=2) == ["a-0", "b-0"]


# ---- together


@pytest.mark.parametrize(
    ("constraint", "nodes", "together"),
    [
        (RACK, "", True),
        (RACK, "a-0", True),
        (RACK, "a-0 a-1", True),
        (RACK, "a-0 b-0", False),
        (RACK, "bare-0", False),
        (RACK, "a-0 bare-0", False),
        (RACK, "a-0 gone", True),  # a node that is gone is in no rack, and says nothing
        (RACK, "gone a-0 b-0", False),
        (BLOCK, "a-0 b-0", True),
        (TopologyConstraint("kueue/dc", preferred=r.RACK), "a-0 b-0", True),
        (TopologyConstraint("kai/none", "x"), "a-0", False),
        (None, "a-0 b-0", True),
    ],
)
def test_t1_whether_tasks_that_are_placed_are_together(
    constraint: TopologyConstraint | None, nodes: str, together: bool
) -> None:
    tree = [r.topology("dc", r.BLOCK, r.RACK), *r.nodes({"a": 2, "b": 1}, "x"), m.node("bare-0")]
    state = knowing(*tree).engine.state
    of = gang(topology=constraint)
    for one, name in zip(members(state, of, *[1] * 3), nodes.split(), strict=False):
        one.node, one.status = name, TaskStatus.BOUND
    assert is_together(state, of) == together


def test_t1_roles_are_each_together_for_themselves() -> None:
    state = racks(a=1, b=1)
    of = gang(topology_of_role={"m": RACK, "w": RACK})
    first, second = members(state, of, 1, role="m"), members(state, of, 1, role="w")
    for one, name in ((first[0], "a-0"), (second[0], "b-0")):
        one.node, one.status = name, TaskStatus.HELD
    assert is_together(state, of)


# ---- units of the surplus


TREE = Vertex(
    "root",
    1,
    (
        Vertex("a", 2),
        Vertex("b", 2),
        Vertex("x", 2, (Vertex("c", 1), Vertex("d", 2))),
    ),
)


@pytest.mark.parametrize(
    ("placed", "waiting", "units", "singles", "lacking"),
    [
        ({"a": 2}, {"a": 1, "b": 2}, ["b0 b1"], "a0", {}),  # a has started: its pods come one by one
        ({"a": 2}, {"b": 3}, ["b0 b1"], "", {}),
        ({"a": 2}, {"b": 1}, [], "", {"b": 1}),
        ({"a": 2, "b": 1}, {"b": 1}, ["b0"], "", {}),  # what it lacks
        ({"a": 2}, {"b": 2, "c": 1, "d": 2}, ["b0 b1", "c0 d0 d1"], "", {}),
        ({"a": 2}, {"c": 1, "d": 1}, [], "", {"d": 1}),
        ({"a": 2}, {"c": 1}, [], "", {"c": 0}),  # complete itself, and d beside it is not
        ({"a": 2, "c": 1, "d": 2}, {"c": 1, "d": 1}, [], "c0 d0", {}),
        ({"a": 2}, {"other": 1}, [], "other0", {}),  # of no sub-group
    ],
)
def test_t0_sub_groups_of_the_surplus_start_as_a_whole_and_then_grow(
    placed: dict[str, int], waiting: dict[str, int], units: list[str], singles: str, lacking: dict[str, int]
) -> None:
    state = racks(a=1)
    of = gang(2, {"a": 2}, tree=TREE, occupied=placed, pending=waiting)
    tasks: list[Any] = []
    for role, count in waiting.items():
        for number, one in enumerate(members(state, of, *[1] * count, role=role)):
            one.name = f"{role}{number}"
            tasks.append(one)
    found = sub_groups(of, tasks)
    assert [" ".join(one.name for one in unit) for unit in found.units] == units
    assert " ".join(one.name for one in found.singles) == singles
    assert found.lacking == lacking
