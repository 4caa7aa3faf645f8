"""Placing in bulk is placing one by one: on random boards, whatever the scores do as a node fills (architecture, 3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.placement.kernels import place_bulk, place_one, place_plain
from enbloc.engine.core.state.candidates import Candidates, ScoreRows, ScoreVector
from enbloc.engine.core.tables.classes import ClassTable
from enbloc.engine.core.tables.headroom import PARTS, Headroom
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from enbloc.engine.core.tables.resources import CEILING, CPU, MEMORY, PODS, Bools, Ints, Resources
from enbloc.units import NANO


def cluster(*cpus: int, pods: int = 110, memory: int = 0) -> NodeTable:
    """Nodes with so many thousandths of a CPU, in that order."""
    nodes = NodeTable(Resources())
    for number, cpu in enumerate(cpus):
        room = {"cpu": cpu * 10**6, "pods": pods * NANO, "memory": memory * NANO}
        nodes.put(NodeFacts(f"n{number}", 0, {}, room, (), unschedulable=False, ready=True))
    nodes.settle(lambda name: {})
    return nodes


def candidates_of(
    nodes: NodeTable, score: ScoreRows, cpu: int = 1, passing: Bools | None = None, bonus: Ints | None = None
) -> Candidates:
    cls = ClassTable(nodes.resources).of("ns", {"containers": [{"resources": {"requests": {"cpu": f"{cpu}m"}}}]})
    checks = [] if passing is None else [Check("turned away", lambda rows: passing[rows])]
    return Candidates(
        cls,
        nodes,
        checks,
        ScoreVector(nodes, cls.request, score),
        None if bonus is None else lambda passes: bonus[: len(passes)],
    )


def one_by_one(nodes: NodeTable, candidates: Candidates, count: int, closed: Bools | None = None) -> list[int]:
    """The definition: again and again the best row by a fresh look at all of them, the lowest where several are."""
    found: list[int] = []
    taken = nodes.free.copy()
    while len(found) < count:
        keys = candidates.uncached_keys()
        if closed is not None:
            keys = np.where(closed[: len(keys)], -1, keys)
        if not len(keys) or keys.max() < 0:
            break
        found.append(int(keys.argmax()))
        nodes.allocate(found[-1], candidates.cls.request)
    nodes.free[:] = taken
    nodes.version += 1
    nodes.stamp[:] = nodes.version
    return found


# ---- by hand


def free_cpu(room: Headroom) -> Ints:
    return np.maximum(room.after(CPU), 0)


def used_cpu(room: Headroom) -> Ints:
    return room.allocatable(CPU) - np.maximum(room.after(CPU), 0)


def indifferent(room: Headroom) -> Ints:
    return room.after(CPU) * 0


@pytest.mark.parametrize(
    "score, cpus, count, rows",
    [
        (free_cpu, (3, 5, 4), 6, [1, 1, 2, 0, 1, 2]),  # the freest; on a tie the lowest row
        (used_cpu, (3, 5, 4), 6, [0, 0, 0, 1, 1, 1]),
        (indifferent, (2, 2, 2), 5, [0, 0, 1, 1, 2]),  # ties go to the lowest row
        (indifferent, (2, 0, 1), 9, [0, 0, 2]),  # fewer where there is no room for more
        (free_cpu, (0, 0), 3, []),
        (free_cpu, (), 3, []),
        (free_cpu, (3, 5, 4), 1, [1]),
    ],
)
def test_placed_by_hand(score: ScoreRows, cpus: tuple[int, ...], count: int, rows: list[int]) -> None:
    nodes = cluster(*cpus)
    assert place_bulk(candidates_of(nodes, score), count) == rows
    assert one_by_one(nodes, candidates_of(nodes, score), count) == rows


def test_the_number_of_pods_bounds_too() -> None:
    nodes = cluster(9, 9, pods=2)
    assert place_bulk(candidates_of(nodes, used_cpu), 9) == [0, 0, 1, 1]


def test_closed_rows_and_rows_that_do_not_pass_take_nothing() -> None:
    nodes = cluster(2, 2, 2, 2)
    closed = np.array([True, False, False, False] + [False] * 12)
    passing = np.array([True, True, False, True])
    assert place_bulk(candidates_of(nodes, indifferent, passing=passing), 9, closed) == [1, 1, 3, 3]


def test_placing_changes_nothing() -> None:
    nodes = cluster(3, 3)
    before, version = nodes.free.copy(), nodes.version
    candidates = candidates_of(nodes, free_cpu)
    assert place_bulk(candidates, 4) == place_bulk(candidates, 4)
    assert (nodes.free == before).all()
    assert nodes.version == version


def test_a_board_sees_what_was_taken_and_what_came() -> None:
    nodes = cluster(3, 5)
    candidates = candidates_of(nodes, free_cpu)
    assert place_bulk(candidates, 1) == [1]
    nodes.allocate_many(np.array([1]), np.array([4]), candidates.cls.request)
    assert place_bulk(candidates, 1) == [0]
    nodes.put(NodeFacts("n9", 0, {}, {"cpu": 10**7, "pods": NANO}, (), unschedulable=False, ready=True))
    nodes.settle(lambda name: {})
    assert place_bulk(candidates, 2) == [2, 0]
    nodes.remove("n0")
    assert place_bulk(candidates, 9) == [2, 1]


def test_a_board_sees_rows_that_were_renumbered() -> None:
    nodes = cluster(3, 5)
    candidates = candidates_of(nodes, free_cpu)
    assert place_bulk(candidates, 1) == [1]
    counts = candidates.counts.rows().tolist()
    assert counts == [3, 5]
    nodes.put(NodeFacts("first", -1, {}, {"cpu": 9 * 10**6, "pods": 9 * NANO}, (), unschedulable=False, ready=True))
    nodes.settle(lambda name: {})
    assert nodes.names == ["first", "n0", "n1"]
    assert place_bulk(candidates, 1) == [0]
    assert candidates.counts.rows().tolist() == [9, 3, 5]
    assert candidates.passing().tolist() == [True, True, True]


def test_one_task_that_looks_at_others() -> None:
    nodes = cluster(3, 5, 4)
    candidates = candidates_of(nodes, free_cpu)
    assert place_one(candidates, None, None) == [1]
    assert place_one(candidates, np.array([True, False, True]), None) == [2]
    assert place_one(candidates, np.array([False, False, False]), None) == []
    assert place_one(candidates, None, np.array([9, 0, 0]) << 24) == [0]
    assert place_one(candidates_of(nodes, free_cpu, cpu=9), None, np.array([9, 0, 0]) << 24) == []
    assert place_plain(candidates) == [1]


def test_figures_at_the_ceiling_do_not_wrap_around() -> None:
    """512 tasks of 16 Pi each are 2^63 and more: a row that holds two must not seem to hold the 1024th."""
    nodes = cluster(10**6, 10**6, memory=CEILING)
    spec = {"containers": [{"resources": {"requests": {"memory": str(CEILING // 2)}}}]}
    cls = ClassTable(nodes.resources).of("ns", spec)

    def score(room: Headroom) -> Ints:
        return room.free_part(MEMORY).clip(0)

    assert place_bulk(Candidates(cls, nodes, [], ScoreVector(nodes, cls.request, score), None), 5000) == [0, 1, 0, 1]


# ---- at random


def by_table(table: list[int]) -> ScoreRows:
    """A score that does as it likes while a node fills: by what is left, from a table."""
    values = np.array(table, np.int64)
    return lambda room: values[np.maximum(room.after(CPU), 0) % len(values)]


scores: st.SearchStrategy[ScoreRows] = st.one_of(
    st.sampled_from([free_cpu, used_cpu, indifferent]),
    st.lists(st.integers(0, 5), min_size=1, max_size=7).map(by_table),
)


@settings(max_examples=300)
@given(
    cpus=st.lists(st.integers(0, 12), max_size=10),
    cpu=st.integers(1, 3),
    pods=st.sampled_from([2, 110]),
    score=scores,
    count=st.integers(1, 60),
    data=st.data(),
)
def test_bulk_is_one_by_one(
    cpus: list[int], cpu: int, pods: int, score: ScoreRows, count: int, data: st.DataObject
) -> None:
    nodes = cluster(*cpus, pods=pods)
    flags = st.lists(st.booleans(), min_size=len(cpus), max_size=len(cpus)).map(np.array)
    passing = data.draw(st.none() | flags.map(lambda found: found.astype(np.bool_)))
    closed = data.draw(st.none() | flags.map(lambda found: np.pad(found.astype(np.bool_), (0, 16))))
    bonus = data.draw(
        st.none()
        | st.lists(st.integers(0, 6), min_size=len(cpus), max_size=len(cpus)).map(lambda it: np.array(it, np.int64))
    )
    candidates = candidates_of(nodes, score, cpu, passing, bonus)
    assert place_bulk(candidates, count, closed) == one_by_one(nodes, candidates, count, closed)
    assert place_bulk(candidates, count, closed) == one_by_one(
        nodes, candidates, count, closed
    )  # and again, with what it knows


# ---- room


def test_room_is_what_would_be_left_after_one_more() -> None:
    nodes = cluster(8, 2, memory=0)
    room = Headroom(nodes, np.array([0, 1]), ((CPU, 3), (PODS, 1)))
    assert room.after(CPU).tolist() == [5, -1]
    assert room.fits().tolist() == [True, False]
    assert room.allocatable(CPU).tolist() == [8, 2]
    assert room.free_part(CPU).tolist() == [5 * PARTS // 8, -PARTS // 2]
    assert room.free_parts(2)[CPU].tolist() == room.free_part(CPU).tolist()
    assert room.free_part(MEMORY).tolist() == [0, 0]  # no node has any
    late = room.column("example.com/gpu")
    assert room.after(late + 20).tolist() == [0, 0]
    assert room.free_part(late + 20).tolist() == [0, 0]


def test_room_for_several_on_one_row() -> None:
    nodes = cluster(8)
    room = Headroom(nodes, np.array([0, 0, 0]), ((CPU, 3), (PODS, 1)), np.array([1, 2, 3]))
    assert room.after(CPU).tolist() == [5, 2, -1]
    assert room.fits().tolist() == [True, True, False]


def test_only_what_is_asked_for_is_looked_at() -> None:
    nodes = cluster(8, memory=4)
    nodes.allocate(0, ((MEMORY, 9), (PODS, 1)))  # a pod of another scheduler: memory is overcommitted
    assert Headroom(nodes, np.array([0]), ((CPU, 1), (PODS, 1))).fits().tolist() == [True]
    assert Headroom(nodes, np.array([0]), ((MEMORY, 1), (PODS, 1))).fits().tolist() == [False]
