"""Packing: found if and only if it exists, never more on a row than fits, the same on every run."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enbloc.engine.core.placement.exact import packing, patterns
from enbloc.engine.core.placement.exact.packing import Failure, Failures, Kind, Packed, pack
from enbloc.engine.core.tables.resources import CEILING, Ints


def room(*nodes: tuple[int, ...] | int) -> Ints:
    """What is free, a node at a time."""
    return np.array([node if isinstance(node, tuple) else (node,) for node in nodes], np.int64).T


def kind(request: tuple[int, ...] | int, needed: int, optional: int = 0, where: str = "") -> Kind:
    """`where`: one letter a row, `x` where it may not go."""
    amounts = request if isinstance(request, tuple) else (request,)
    allowed = np.array([letter != "x" for letter in where]) if where else np.ones(64, np.bool_)
    return Kind(amounts, allowed, needed, optional)


def ask(free: Ints, kinds: list[Kind], short: int = 0, **how: int) -> Packed | Failure:
    return pack(free, [one._replace(allowed=one.allowed[: free.shape[1]]) for one in kinds], short, **how)


def held(free: Ints, kinds: list[Kind], short: int, found: Packed) -> None:
    """What a placement has to keep to."""
    left = np.maximum(free, 0)
    spare = 0
    for one, rows in zip(kinds, found.rows, strict=True):
        assert one.needed <= len(rows) <= one.needed + one.optional
        assert rows == sorted(rows)
        assert all(one.allowed[row] for row in rows)
        spare += len(rows) - one.needed
        for row in rows:
            left[:, row] -= one.request
    assert (left >= 0).all()
    assert spare >= short


# ---- by hand


@pytest.mark.parametrize(
    "free, kinds, rows",
    [
        (room(4, 4, 1), [kind(1, 1), kind(4, 2)], [[2], [0, 1]]),  # the launcher must not take a worker's core
        (room(5, 4), [kind(1, 1), kind(4, 2)], [[0], [0, 1]]),
        (room((4, 1), (1, 4)), [kind((3, 1), 1), kind((1, 3), 1)], [[0], [1]]),  # either would fit on no other node
        (room((4, 4), (4, 4)), [kind((3, 1), 2), kind((1, 3), 2)], [[0, 1], [0, 1]]),  # each with one that crosses it
        (room(2, 2), [kind(2, 1, where=" x"), kind(2, 1)], [[0], [1]]),  # who may go anywhere goes elsewhere
        (room(3, 3, 3), [kind(1, 2, where="  x"), kind(2, 2), kind(3, 1)], [[0, 1], [0, 1], [2]]),
        (room(9, 6), [kind(2, 3), kind(3, 3)], [[1, 1, 1], [0, 0, 0]]),
        (room(1999, 1000), [kind(1000, 2), kind(999, 1)], [[0, 1], [0]]),  # no common divisor
        (
            room((4, 1), (4, 4)),
            [kind((1, 1), 1), kind((3, 3), 1), kind((3, 0), 1)],
            [[1], [1], [0]],
        ),  # the least is left
        (room(-1, 1, 2), [kind(1, 1), kind(2, 1)], [[1], [2]]),  # what is overdrawn has nothing
        (room((-1, 2), (4, 1)), [kind((0, 1), 2), kind((4, 1), 1)], [[0, 0], [1]]),  # but for those who ask for others
    ],
)
def test_packs(free: Ints, kinds: list[Kind], rows: list[list[int]]) -> None:
    assert ask(free, kinds) == Packed(rows)


@pytest.mark.parametrize(
    "free, kinds, failure",
    [
        (room(4, 4), [kind(1, 1), kind(4, 2)], Failure.TOO_LITTLE),
        (room((9, 1), (9, 1)), [kind((1, 1), 1), kind((2, 1), 2)], Failure.TOO_LITTLE),  # of one resource
        (room(9, 1), [kind(2, 1, where="x "), kind(1, 1)], Failure.TOO_LITTLE),  # where one of them may go
        (room(9), [kind(1, 1), kind(2, 1, where="x")], Failure.TOO_LITTLE),
        (room(4, 4), [kind(2, 1), kind(3, 2)], Failure.NONE_EXISTS),
        (room(3, 3, 3), [kind(1, 1), kind(4, 1)], Failure.NONE_EXISTS),  # no node holds the larger one
        (room(*[(4, 4)] * 3), [kind((3, 1), 2), kind((2, 3), 2)], Failure.NONE_EXISTS),  # no two of them go together
        (room(5, 5, 5), [kind(3, 3), kind(4, 1)], Failure.NONE_EXISTS),
        (room(*[7] * 30), [kind(4, 30), kind(2, 31)], Failure.NONE_EXISTS),
        (room(CEILING, CEILING), [kind(CEILING + 1, 1), kind(1, 1)], Failure.NONE_EXISTS),
        (room(*[CEILING] * 60), [kind(CEILING, 60), kind(1, 1)], Failure.TOO_LITTLE),
    ],
)
def test_fails(free: Ints, kinds: list[Kind], failure: Failure) -> None:
    assert ask(free, kinds) is failure


def test_g3_optional_tasks_make_up_the_total_whatever_their_kind() -> None:
    kinds = [kind(1, 1, 4), kind(4, 1, 4)]
    assert ask(room(4, 4, 2), kinds, 2) == Packed([[1, 2, 2], [0]])
    assert ask(room(4, 4, 2), kinds, 5) is Failure.NONE_EXISTS
    assert ask(room(4, 4, 1), kinds, 5) is Failure.TOO_LITTLE


def test_a_bound_that_is_reached_is_no_answer() -> None:
    free, kinds = room(11, 6), [kind(3, 3), kind(4, 2)]
    assert ask(free, kinds) == Packed([[0, 1, 1], [0, 0]])
    assert ask(free, kinds, steps=0) is Failure.GAVE_UP


def test_beyond_some_size_only_the_quick_way_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [kind(1 + number, 1) for number in range(9)]
    ways = [kind((1000 + number, 1000 - number), 60) for number in range(4)]
    nodes = room(*[(60_499, 60_499)] * 4)
    assert isinstance(ask(room(45), kinds), Packed)
    assert isinstance(ask(nodes, ways), Packed)
    monkeypatch.setattr(packing, "_scarcest_first", lambda *facts: None)
    assert ask(room(45), kinds) is Failure.GAVE_UP
    assert ask(nodes, ways) is Failure.GAVE_UP


def test_g9_the_same_is_not_searched_for_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []
    real = packing._exactly
    monkeypatch.setattr(packing, "_exactly", lambda *facts: searches.append(facts) or real(*facts))
    failures = Failures()
    kinds = [kind(2, 1, where=" " * 3), kind(3, 2, where=" " * 3)]
    for free in (room(4, 4, 0), room(1, 4, 4), room(4, 0, 4)):  # where nothing fits makes no difference
        assert pack(free, kinds, 0, failures) is Failure.NONE_EXISTS
    assert len(searches) == 1
    assert pack(room(4, 4, 1), kinds, 0, failures) is Failure.NONE_EXISTS
    assert isinstance(pack(room(4, 4, 2), kinds, 0, failures), Packed)
    for count in range(3, 600):
        failures.put(str(count).encode(), Failure.GAVE_UP)
    assert len(failures._known) <= packing._FAILURES_BOUND


def test_rows_that_differ_in_what_no_kind_can_use_are_equal() -> None:
    free = np.array([[4300, 4999, 9000], [64, 100, 70]])
    kinds = [kind((4000, 1), 2), kind((1000, 1), 1)]
    most = np.array([[1, 1, 2], [1, 1, 1]])
    reduced, requests = packing._reduced(free, kinds, most)
    assert reduced.tolist() == [[4, 4, 9], [2, 2, 3]]
    assert requests == [(4, 1), (1, 1)]
    assert [found.tolist() for found in packing._group_equal(reduced)] == [[0, 2], [0, 0, 1], [2, 1]]


def test_a_hash_that_collides_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_MIX", np.zeros(3, np.uint64))
    found = packing._group_equal(np.array([[1, 2, 1, 3], [1, 1, 1, 1]]))
    assert [one.tolist() for one in found] == [[0, 1, 3], [0, 1, 0, 2], [2, 1, 1]]


# ---- by chance


@st.composite
def questions(draw: st.DrawFn) -> tuple[Ints, list[Kind], int]:
    nodes, columns = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    free = [[draw(st.integers(-1, 8)) for _ in range(nodes)] for _ in range(columns)]
    kinds = []
    for _ in range(draw(st.integers(1, 3))):
        request = tuple(draw(st.integers(0, 5)) for _ in range(columns - 1)) + (draw(st.integers(1, 5)),)
        allowed = np.array([draw(st.sampled_from([True, True, True, False])) for _ in range(nodes)])
        kinds.append(Kind(request, allowed, draw(st.integers(0, 3)), draw(st.sampled_from([0, 0, 1, 2]))))
    return np.array(free, np.int64), kinds, draw(st.integers(0, sum(one.optional for one in kinds)))


def exists(free: Ints, kinds: list[Kind], short: int) -> bool:
    """By trying everything, node after node: the numbers of tasks that the nodes so far can hold together."""
    bounds = [one.needed + one.optional for one in kinds]
    reached = {(0,) * len(kinds)}
    for node, room in enumerate(np.maximum(free, 0).T.tolist()):
        ranges = [range(bound * bool(one.allowed[node]) + 1) for bound, one in zip(bounds, kinds, strict=True)]
        fitting = maximal([held for held in product(*ranges) if fits(held, kinds, room)])
        reached = {tuple(map(min, map(int.__add__, before, held), bounds)) for before in reached for held in fitting}
    needed = [one.needed for one in kinds]
    return any(all(map(int.__ge__, held, needed)) and sum(held) >= sum(needed) + short for held in reached)


def maximal(counts: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those of which no other has as many of every kind."""
    return [one for one in counts if not any(other != one and all(map(int.__ge__, other, one)) for other in counts)]


def fits(held: tuple[int, ...], kinds: list[Kind], room: list[int]) -> bool:
    requests = zip(*(one.request for one in kinds), strict=True)
    return all(sum(map(int.__mul__, held, amounts)) <= has for amounts, has in zip(requests, room, strict=True))


@settings(max_examples=300)
@given(questions(), st.booleans())
def test_found_if_and_only_if_it_exists(question: tuple[Ints, list[Kind], int], quick: bool) -> None:
    free, kinds, short = question
    before = free.copy()
    with pytest.MonkeyPatch.context() as patch:
        if not quick and sum(one.needed for one in kinds) + short:
            patch.setattr(packing, "_scarcest_first", lambda *facts: None)
        found = pack(free, kinds, short)
        assert pack(free, kinds, short) == found
    assert (free == before).all()
    assert found is not Failure.GAVE_UP
    assert isinstance(found, Packed) == exists(free, kinds, short)
    if isinstance(found, Packed):
        held(free, kinds, short, found)


@given(questions(), st.integers(0, 30))
def test_within_any_bound_what_is_said_is_true(question: tuple[Ints, list[Kind], int], steps: int) -> None:
    free, kinds, short = question
    found = pack(free, kinds, short, steps=steps)
    if isinstance(found, Packed):
        held(free, kinds, short, found)
    elif found is not Failure.GAVE_UP:
        assert not exists(free, kinds, short)


@given(st.integers(0, 2**32 - 1))
def test_what_was_cut_to_measure_is_found(seed: int) -> None:
    """Nodes exactly as large as what is to go on them, with not a unit to spare."""
    random = np.random.default_rng(seed)
    requests = random.integers(1, 9, (3, 2))
    mixes = random.integers(0, 3, (12, 3))
    free = (mixes @ requests).T
    kinds = [
        Kind(tuple(request), np.ones(12, np.bool_), int(count))
        for request, count in zip(requests.tolist(), mixes.sum(axis=0), strict=True)
    ]
    found = pack(free, kinds, steps=10**6)
    assert isinstance(found, Packed)
    held(free, kinds, 0, found)


# ---- the exact search, without the heuristic before it


def close_question(seed: int) -> tuple[Ints, list[Kind], int]:
    """Nodes as large as what is to go on them, but for a unit here and there: a search has to go back and try again."""
    random = np.random.default_rng(seed)
    nodes, count, columns = (int(random.integers(*bounds)) for bounds in ((3, 8), (2, 4), (1, 4)))
    requests = random.integers(0, 8, (count, columns))
    requests[:, 0] += 1
    mixes = random.integers(0, 3, (nodes, count))
    free = (mixes @ requests).T
    for _ in range(int(random.integers(0, 3))):
        column, (source, target) = int(random.integers(columns)), random.integers(0, nodes, 2)
        moved = min(1, int(free[column, source]))
        free[column, source] -= moved
        free[column, target] += moved
    total = mixes.sum(axis=0)
    optional = np.minimum(random.integers(0, 3, count), total) * int(random.integers(0, 2))
    allowed = random.random((count, nodes)) < random.choice([1, 0.85])
    kinds = [
        Kind(tuple(request), rows, int(least), int(2 * more))
        for request, rows, least, more in zip(requests.tolist(), allowed, total - optional, optional, strict=True)
    ]
    return free, kinds, int(optional.sum())


@pytest.fixture
def steps_taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Without the heuristic; the steps of every search, as it takes them."""
    monkeypatch.setattr(packing, "_scarcest_first", lambda *facts: None)
    taken: list[int] = []
    real = patterns._StepLimit.take

    def take(limit: patterns._StepLimit, count: int = 1) -> None:
        taken.append(count)
        real(limit, count)

    monkeypatch.setattr(patterns._StepLimit, "take", take)
    return taken


def test_the_search_decides_close_questions_within_its_limit(steps_taken: list[int]) -> None:
    """And in 14 steps on average: prices that bound badly, or states entered twice, cost several times that."""
    for seed in range(120):
        free, kinds, short = close_question(seed)
        found = pack(free, kinds, short)
        assert isinstance(found, Packed) == exists(free, kinds, short), seed
        assert found is not Failure.GAVE_UP, seed
        if isinstance(found, Packed):
            held(free, kinds, short, found)
    assert sum(steps_taken) < 14 * 120


@pytest.mark.parametrize("seed, steps", [(0, 33), (17, 46), (55, 134)])
def test_a_question_needs_the_same_steps_on_every_run(seed: int, steps: int, steps_taken: list[int]) -> None:
    free, kinds, short = close_question(seed)
    assert pack(free, kinds, short, steps=steps) is not Failure.GAVE_UP
    assert sum(steps_taken) == steps
    assert pack(free, kinds, short, steps=steps - 1) is Failure.GAVE_UP


@pytest.mark.parametrize("count, expected", [(255, Packed), (258, Failure)])
def test_amounts_in_bytes_are_priced_without_overflow(count: int, expected: type, steps_taken: list[int]) -> None:
    """257 nodes hold two tasks of half a node each, of either kind. Their sizes together are more than 2^63."""
    half, anywhere = CEILING // 2, " " * 257
    kinds = [kind(half - 1, 257, where=anywhere), kind(half - 2, count, where=anywhere)]
    assert isinstance(ask(room(*[CEILING] * 257), kinds), expected)


@pytest.mark.parametrize(
    "free, kinds, rows",
    [
        # Nodes of equal room, one of which the second kind may not use.
        (room(3, 3), [kind(1, 4), kind(2, 1, where="x ")], [[0, 0, 0, 1], [1]]),
        (room(3, 3), [kind(1, 4), kind(2, 1, where=" x")], [[0, 1, 1, 1], [0]]),
        (room(11, 6), [kind(3, 3), kind(4, 2)], [[0, 1, 1], [0, 0]]),
    ],
)
def test_the_search_packs(free: Ints, kinds: list[Kind], rows: list[list[int]], steps_taken: list[int]) -> None:
    assert ask(free, kinds) == Packed(rows)


def test_more_node_classes_than_the_bound_are_not_searched(
    steps_taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    free, kinds = room(11, 6, 5), [kind(3, 3), kind(4, 3)]
    for bound, expected in ((3, Packed), (2, Failure)):
        monkeypatch.setattr(packing, "_NODE_CLASSES", bound)
        assert isinstance(ask(free, kinds), expected)


@pytest.mark.parametrize(
    "free, takes, counts, total, useful",
    [
        (room(4, 5), [[1, 1]], [3, 3], 3, [False, True]),  # three nodes of 5 hold all that those of 4 could
        (room(4, 5), [[1, 1]], [3, 3], 4, [True, True]),
        (room(4, 5), [[1, 0]], [3, 3], 3, [True, True]),  # which may not go there
        (room(4, 5), [[0, 1]], [3, 3], 3, [False, True]),
        (room(4, 5), [[1, 1], [1, 0]], [3, 3], 3, [True, True]),
        (room((4, 2), (5, 1)), [[1, 1]], [3, 3], 3, [True, True]),
        (room((4, 2), (5, 2)), [[1, 1]], [3, 3], 3, [False, True]),
        (room(4, 5, 6), [[1, 1, 1]], [3, 2, 2], 3, [False, True, True]),
        (room(4, 5, 6), [[1, 1, 1]], [3, 2, 1], 2, [False, True, True]),
    ],
)
def test_nodes_that_enough_better_ones_replace_are_not_searched(
    free: Ints, takes: list[list[int]], counts: list[int], total: int, useful: list[bool]
) -> None:
    found = packing._is_useful(free, np.array(takes, np.bool_), np.array(counts), total)
    assert found.tolist() == useful


@pytest.mark.parametrize("bound, expected", [(6, Packed), (5, Failure)])
def test_more_patterns_than_the_bound_are_not_enumerated(
    bound: int, expected: type, steps_taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the first kind none, one or two fit on each of two nodes: six beginnings of patterns."""
    monkeypatch.setattr(patterns, "_PATTERNS_BOUND", bound)
    assert isinstance(ask(room(6, 8), [kind(2, 2), kind(3, 3)]), expected)
