"""Nodes as rows: ranked by creation and natural name whatever the order they came in, with what is used on them."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.api.meta import Obj
from enbloc.engine.core.tables import nodes as table
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable, TaintFact
from enbloc.engine.core.tables.resources import CEILING, CPU, MEMORY, PODS, Resources
from enbloc.engine.facts import node_facts
from enbloc.units import NANO, natural_key


def node(name: str, created_ns: int = 0, cpu: int = 4000, **more: int) -> NodeFacts:
    """With so many thousandths of a CPU, and so many whole units of anything else."""
    room = {"cpu": cpu * 10**6, "pods": 110 * NANO, **{key: amount * NANO for key, amount in more.items()}}
    return NodeFacts(
        name, created_ns, labels={"host": name}, allocatable=room, taints=(), unschedulable=False, ready=True
    )


def settled(*facts: NodeFacts) -> NodeTable:
    found = NodeTable(Resources())
    for each in facts:
        found.put(each)
    found.settle(lambda name: {})
    return found


def in_order(nodes: NodeTable) -> list[str]:
    return [name for row, name in enumerate(nodes.names) if nodes.alive[row]]


# ---- rank


def test_rows_are_by_creation_then_by_natural_name() -> None:
    nodes = settled(node("n10"), node("z", created_ns=-1), node("n2"), node("a", created_ns=5), node("n1"))
    assert in_order(nodes) == ["z", "n1", "n2", "n10", "a"]
    assert [nodes.rows[name] for name in ("z", "n1", "n2", "n10", "a")] == [0, 1, 2, 3, 4]


names = st.lists(
    st.tuples(st.from_regex(r"\A[ab][0-9]{1,2}\Z"), st.integers(0, 2)),
    min_size=1,
    max_size=12,
    unique_by=lambda it: it[0],
)


@given(names, st.randoms(), st.data())
def test_rows_are_the_same_whatever_the_order_of_arrival(
    wanted: list[tuple[str, int]], chance: random.Random, data: st.DataObject
) -> None:
    """In batches, with use on some and removals in between: ranks, room and labels come out the same."""
    arriving = wanted[:]
    chance.shuffle(arriving)
    nodes = NodeTable(Resources())
    nodes.label("host")
    used: dict[str, int] = {}
    removed = set()
    while arriving:
        batch = data.draw(st.integers(1, len(arriving)))
        for name, created in arriving[:batch]:
            nodes.put(node(name, created))
        arriving = arriving[batch:]
        nodes.settle(lambda name: {})
        name = data.draw(st.sampled_from(sorted(nodes.rows) or [""]))
        if name and data.draw(st.booleans()):
            nodes.allocate(nodes.rows[name], ((CPU, 7), (PODS, 1)), 2)
            used[name] = used.get(name, 0) + 14
        elif name and data.draw(st.booleans()):
            nodes.remove(name)
            removed.add(name)
            used.pop(name, None)
    expected = sorted((it for it in wanted if it[0] not in removed), key=lambda it: (it[1], natural_key(it[0])))
    assert in_order(nodes) == [name for name, _ in expected]
    column = nodes.label("host")
    for name, _ in expected:
        row = nodes.rows[name]
        assert nodes.names[row] == name
        assert int(nodes.used(row)[CPU]) == used.get(name, 0)
        assert int(nodes.free[CPU, row]) == 4000 - used.get(name, 0)
        assert column.ids[row] == column.values[name]
        assert nodes.facts[row] is not None
    assert int(nodes.alive.sum()) == len(expected)


def test_a_node_that_ranks_last_renumbers_no_row_and_another_one_is_noticed() -> None:
    nodes = settled(node("n1"), node("n3"))
    moves, version = nodes.moves, nodes.version
    nodes.put(node("n4"))
    assert nodes.settle(lambda name: {})
    assert nodes.moves == moves
    nodes.put(node("n2"))
    assert nodes.settle(lambda name: {})
    assert nodes.moves == moves + 1
    assert nodes.version > version
    assert (nodes.stamp[: nodes.count] > version).all()  # all rows that are cached are out of date
    assert not nodes.settle(lambda name: {})


def test_what_is_used_on_a_node_before_it_is_known_counts_when_it_comes() -> None:
    nodes = settled(node("n1"), node("n3"))
    for late in ("n2", "n4"):  # in between, and at the end
        nodes.put(node(late))
        nodes.settle(lambda name: {CPU: 500, PODS: 1})
        assert int(nodes.free[CPU, nodes.rows[late]]) == 3500
    assert int(nodes.free[CPU, nodes.rows["n1"]]) == 4000


# ---- changes


def test_what_is_used_of_a_resource_that_no_node_has_counts_too() -> None:
    nodes = NodeTable(Resources())
    columns = [nodes.resources.column(f"example.com/{number}") for number in range(5)]
    nodes.put(node("a"))
    nodes.settle(lambda name: {columns[-1]: 3})
    assert nodes.used(0)[columns].tolist() == [0, 0, 0, 0, 3]


def test_what_is_used_stays_used_when_a_node_changes() -> None:
    nodes = settled(node("n1"))
    nodes.allocate(0, ((CPU, 3000), (PODS, 1)))
    nodes.put(node("n1", cpu=2000))
    assert int(nodes.free[CPU, 0]) == -1000  # more is used than there is: nothing fits, nothing is forgotten
    nodes.put(node("n1", cpu=8000))
    assert int(nodes.free[CPU, 0]) == 5000


def test_a_node_that_says_the_same_again_changes_nothing() -> None:
    nodes = settled(node("n1"))
    version = nodes.version
    nodes.put(node("n1"))
    assert nodes.version == version
    nodes.put(node("n1", cpu=1))
    assert nodes.static_version == nodes.version > version


def test_a_node_that_went_takes_nothing_and_may_come_again() -> None:
    nodes = settled(node("n1"), node("n2"))
    nodes.remove("n1")
    nodes.remove("unheard-of")
    assert not nodes.alive[0]
    assert (nodes.free[:, 0] < 0).all()
    assert nodes.totals()[CPU] == 4000
    nodes.put(node("n1"))
    nodes.settle(lambda name: {})
    assert in_order(nodes) == ["n1", "n2"]
    assert nodes.totals()[CPU] == 8000


def test_a_node_that_went_before_it_was_settled_never_was() -> None:
    nodes = NodeTable(Resources())
    nodes.put(node("n1"))
    nodes.remove("n1")
    assert not nodes.settle(lambda name: {})
    assert nodes.count == 0


def test_bulk_and_single_takes_are_the_same_and_are_given_back() -> None:
    request = ((CPU, 100), (PODS, 1))
    one, other = settled(node("a"), node("b")), settled(node("a"), node("b"))
    one.allocate_many(np.array([0, 1]), np.array([3, 1]), request)
    for row, count in ((0, 3), (1, 1)):
        other.allocate(row, request, count)
    assert (one.free == other.free).all()
    one.allocate_many(np.array([0, 1]), np.array([-3, -1]), request)
    assert (one.free == settled(node("a"), node("b")).free).all()


# ---- columns


def test_columns_that_are_heard_of_late() -> None:
    nodes = settled(node("a"), node("b"))
    late = [nodes.resources.column(f"example.com/r{number}") for number in range(20)]
    nodes.widen()
    assert (nodes.free[late, :2] == 0).all()
    assert (nodes.divisor[late, :2] == 1).all()
    nodes.put(node("a", **{"example.com/r19": 3}))
    assert int(nodes.free[late[-1], 0]) == 3
    assert int(nodes.free[CPU, 0]) == 4000
    assert int(nodes.totals()[late[-1]]) == 3
    nodes.allocate(0, ((PODS, 1), (late[-1], 2)))
    assert int(nodes.amounts(((PODS, 1), (late[-1], 2)))[late[-1], 0]) == 2
    nodes.put(node("0", created_ns=-1))
    nodes.settle(lambda name: {})
    assert int(nodes.free[late[-1], nodes.rows["a"]]) == 1


def test_columns_are_added_one_by_one() -> None:
    nodes = settled(node("n0"))
    for number in range(6):
        nodes.put(node(f"n{number + 1}", **{f"example.com/{number}": 3}))
        nodes.settle(lambda name: {})
        column = nodes.resources.column(f"example.com/{number}")
        assert nodes.free[column, : nodes.count].tolist() == [0] * (number + 1) + [3]
        assert (nodes.divisor[column, : nodes.count] == [1] * (number + 1) + [3]).all()


@pytest.mark.parametrize("stale", ["labels", "values", "taints", "rows"])
def test_stale_labels_taints_and_rows_are_dropped_and_what_is_used_stays(
    stale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more than two of them the next `settle` rewrites all rows, though no node was added."""
    monkeypatch.setattr(table, "_STALE_BOUND", 0)
    monkeypatch.setattr(table, "_DEAD_ROWS", 1)
    nodes = settled(node("a"), node("b", created_ns=5))
    nodes.allocate(nodes.rows["b"], ((CPU, 1000),))
    nodes.label("host")
    changed = 2 if stale == "rows" else 5
    for number in range(changed):
        match stale:
            case "labels":
                nodes.label(f"key{number}")
            case "values":
                nodes.put(msgspec.structs.replace(node("a"), labels={"host": str(number)}))
            case "taints":
                taints = (TaintFact(str(number), "", "NoSchedule"),)
                nodes.put(msgspec.structs.replace(node("a"), taints=taints))
            case _:
                nodes.put(node(f"z{number}", created_ns=9))
                nodes.settle(lambda name: {})
    for name in ("z0", "z1", "a") if stale == "rows" else ():
        nodes.remove(name)
    if stale == "labels":
        nodes.forget_unused()
    if stale == "rows":
        nodes.put(node("last", created_ns=10))
    assert (nodes.moves, nodes.settle(lambda name: {})) == (0, True)
    assert nodes.moves == 1
    assert not nodes.settle(lambda name: {})
    assert in_order(nodes) == (["b", "last"] if stale == "rows" else ["a", "b"])
    assert nodes.count == 2
    assert nodes.used(nodes.rows["b"])[CPU] == 1000
    assert len(nodes.taint_sets) <= 2
    assert len(nodes._labels) == 0


def test_few_stale_labels_and_rows_are_kept() -> None:
    nodes = settled(node("a"), node("b"), node("c"))
    nodes.label("host")
    nodes.forget_unused()
    nodes.remove("a")
    assert not nodes.settle(lambda name: {})
    nodes.put(node("d"))
    assert nodes.settle(lambda name: {})
    assert (nodes.moves, nodes.count, in_order(nodes)) == (0, 4, ["b", "c", "d"])


def test_a_row_whose_node_is_gone_has_no_label() -> None:
    nodes = settled(node("a"), node("b"), node("c"))
    nodes.remove("b")
    column = nodes.label("host")
    assert column.ids[:3].tolist() == [0, -1, 1]
    nodes.remove("c")
    nodes.put(node("d"))
    nodes.settle(lambda name: {})
    assert column.ids[nodes.rows["d"]] == column.values["d"]


def test_a_request_that_was_known_before_the_columns_grew() -> None:
    nodes = settled(node("a"))
    request = ((CPU, 5), (PODS, 1))
    assert len(nodes.amounts(request)) == len(nodes.free)
    for number in range(20):
        nodes.resources.column(f"r{number}")
    nodes.widen()
    assert len(nodes.amounts(request)) == len(nodes.free)
    nodes.allocate_many(np.array([0]), np.array([2]), request)
    assert int(nodes.free[CPU, 0]) == 3990


def test_amounts_are_rounded_up_and_capacities_down_both_within_the_ceiling() -> None:
    resources = Resources()
    assert resources.amounts({"cpu": 1, "memory": 1}) == {CPU: 1, MEMORY: 1}
    assert resources.capacity({"cpu": 10**6 - 1, "memory": NANO - 1}) == {CPU: 0, MEMORY: 0}
    huge = {"memory": 2**62 * NANO}
    assert resources.capacity(huge) == {MEMORY: CEILING}
    assert resources.amounts(huge) == {MEMORY: CEILING + 1}  # so it fits nowhere
    assert resources.capacity({"cpu": -5 * NANO}) == {CPU: 0}
    assert resources.request({"cpu": 0}) == ((PODS, 1),)


# ---- reading


@pytest.mark.parametrize(
    "change, field, value",
    [
        ({}, "ready", True),
        ({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "ready", False),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "ready", False),
        ({"status": {"conditions": [{"type": "DiskPressure", "status": "True"}]}}, "ready", True),
        ({"status": {"capacity": {"cpu": "2"}}}, "allocatable", {"cpu": 2 * NANO}),
        ({"status": {"capacity": {"cpu": "2"}, "allocatable": {"cpu": "1"}}}, "allocatable", {"cpu": NANO}),
        ({"status": {"capacity": {"cpu": "2"}, "allocatable": {}}}, "allocatable", {}),
        ({"status": None}, "allocatable", {}),
        ({"spec": {"unschedulable": True}}, "unschedulable", True),
        ({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}, "taints", (("k", "", "NoSchedule"),)),
        ({"metadata": {"name": "n"}}, "created_ns", 0),
        ({"metadata": {"name": "n", "creationTimestamp": "1970-01-01T00:00:07Z"}}, "created_ns", 7 * NANO),
    ],
)
def test_a_node_as_it_is_read(change: Obj, field: str, value: object) -> None:
    obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, **change}
    assert getattr(node_facts(obj), field) == value
