"""Vector bin packing: whether tasks of several kinds fit on the nodes together, and where. Numbers in, rows out.

Rows that can hold the same combinations of tasks form one node class with a multiplicity; a *pattern* is a number of
tasks of each kind that one node can hold; `patterns` searches for a choice of patterns that gives every kind its
number. A heuristic is tried first: the scarcest kind first, each task where it leaves the least room.

Limited in steps, not by a clock, so that the result is the same on every run. Which tasks are packed, and how a failure
is reported, is decided in `fitting`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.core.placement.exact.patterns import Choice, ClassDemand, Counts, search
from enbloc.engine.core.tables.resources import Bools, Ints

STEPS: Final = 700
"""At most 700 steps per search: about ten milliseconds."""

_NODE_CLASSES: Final = 400
_KINDS: Final = 8
"""With more node classes or kinds only the heuristic is tried."""

_FAILURES_BOUND: Final = 256
"""At most 256 failed searches are remembered; the oldest is dropped."""


class Kind(NamedTuple):
    """Tasks with equal requests that may go to the same rows."""

    request: tuple[int, ...]
    """Amounts, one for each column of `free`."""
    allowed: Bools
    needed: int
    optional: int = 0
    """How many more tasks of the kind exist."""


class Packed(NamedTuple):
    """A placement: for each kind the rows of its tasks, ascending, a row once per task. There may be more than needed:
    any `short` of the optional tasks suffice."""

    rows: list[list[int]]


class Failure(Enum):
    TOO_LITTLE = "the nodes together do not have enough free resources"
    NONE_EXISTS = "enough free resources in total, but no assignment of tasks to nodes exists"
    GAVE_UP = "no result within the step limit"


class Failures:
    """Failed searches, by a fingerprint of their input: gangs are woken by changes elsewhere in the cluster (G9), and
    the same search is not repeated."""

    def __init__(self) -> None:
        self._known: dict[bytes, Failure] = {}

    def get(self, key: bytes) -> Failure | None:
        return self._known.get(key)

    def put(self, key: bytes, failure: Failure) -> None:
        if len(self._known) >= _FAILURES_BOUND:
            del self._known[next(iter(self._known))]
        self._known[key] = failure


def pack(
    free: Ints, kinds: Sequence[Kind], short: int = 0, failures: Failures | None = None, steps: int = STEPS
) -> Packed | Failure:
    """Rows for the needed tasks of every kind, and for `short` of the optional ones, of any kind. `free` has a row for
    each resource of the requests, and a column for each node."""
    free = np.maximum(free, 0)
    if _too_little(free, kinds, short):
        return Failure.TOO_LITTLE
    most = np.stack([_most_per_row(free, kind) for kind in kinds])
    sums = most.sum(axis=1).tolist()
    spare = sum(min(fits - kind.needed, kind.optional) for fits, kind in zip(sums, kinds, strict=True))
    if any(fits < kind.needed for fits, kind in zip(sums, kinds, strict=True)) or spare < short:
        return Failure.NONE_EXISTS
    usable = np.flatnonzero(most.any(axis=0))
    most = most[:, usable]
    room, requests = _reduced(free[:, usable], kinds, most)
    first, group, counts = _group_equal(np.concatenate([room, most > 0]))
    key = _fingerprint((room[:, first], most[:, first] > 0, counts), requests, kinds, short, steps)
    known = failures.get(key) if failures is not None else None
    if known is not None:
        return known
    heuristic = _scarcest_first(room, requests, most, kinds, short)
    if heuristic is not None:
        return Packed([np.repeat(usable, placed).tolist() for placed in heuristic])
    demand = ClassDemand(tuple(kind.needed for kind in kinds), tuple(kind.optional for kind in kinds), short)
    found = _exactly(room[:, first], requests, most[:, first], counts, demand, steps)
    if not isinstance(found, Failure):
        return Packed(_spread_out(found, kinds, usable, group))
    if failures is not None:
        failures.put(key, found)
    return found


# ---- reduction


def _too_little(free: Ints, kinds: Sequence[Kind], short: int) -> bool:
    """Whether some resource is insufficient even if all nodes were one; for each kind alone, and for all together."""
    for column, amounts in enumerate(free):
        least = min((kind.request[column] for kind in kinds if kind.optional), default=0) * short
        allowed_for_any = np.zeros(len(amounts), np.bool_)
        for kind in kinds:
            amount = kind.request[column]
            if amount and kind.needed:
                least += amount * kind.needed
                if _total(amounts[kind.allowed]) < amount * kind.needed:
                    return True
            if amount:
                allowed_for_any |= kind.allowed
        if least and _total(amounts[allowed_for_any]) < least:
            return True
    return False


def _total(amounts: Ints) -> int:
    """The sum, in two halves: at the ceiling it would overflow int64."""
    return (int((amounts >> 28).sum()) << 28) + int((amounts & (2**28 - 1)).sum())


def _most_per_row(free: Ints, kind: Kind) -> Ints:
    """By row, how many tasks of a kind fit if it holds nothing else."""
    most = np.where(kind.allowed, kind.needed + kind.optional, 0)
    for amounts, amount in zip(free, kind.request, strict=True):
        if amount:
            most = np.minimum(most, amounts // amount)
    return most


def _reduced(free: Ints, kinds: Sequence[Kind], most: Ints) -> tuple[Ints, list[Counts]]:
    """The free amounts, without what no combination of the kinds can use, and the requests, both in the largest units
    that divide the requests: so most rows that differ irrelevantly become equal."""
    room = np.empty_like(free)
    columns: list[Counts] = []
    for column, amounts in enumerate(free):
        unit = math.gcd(*(kind.request[column] for kind in kinds)) or 1
        requested = tuple(kind.request[column] // unit for kind in kinds)
        used = np.zeros(len(amounts), np.int64)
        for amount, count in zip(requested, most, strict=True):
            used += amount * count
        room[column] = np.minimum(amounts // unit, used)
        columns.append(requested)
    return room, [tuple(column[number] for column in columns) for number in range(len(kinds))]


_MIX: Final = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


def _group_equal(facts: Ints) -> tuple[Ints, Ints, Ints]:
    """Groups of equal columns, by first appearance: the first column of each group, the group of each column, and the
    sizes. By a hash that is verified: sorting whole columns costs many times that."""
    mixed = np.zeros(facts.shape[1], np.uint64)
    for line in facts.astype(np.uint64):
        mixed = (mixed ^ line) * _MIX[0]
        mixed = (mixed ^ (mixed >> np.uint64(29))) * _MIX[1]
        mixed = (mixed ^ (mixed >> np.uint64(32))) * _MIX[2]
    _, first, group, counts = np.unique(mixed, return_index=True, return_inverse=True, return_counts=True)
    if not (facts == facts[:, first[group]]).all():
        _, first, group, counts = np.unique(facts, axis=1, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[group.reshape(-1)], counts[order]


def _fingerprint(
    arrays: tuple[Ints | Bools, ...], requests: list[Counts], kinds: Sequence[Kind], short: int, steps: int
) -> bytes:
    question = (requests, [(kind.needed, kind.optional) for kind in kinds], short, steps)
    digest = hashlib.blake2b(repr(question).encode(), digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


# ---- the heuristic


def _scarcest_first(
    room: Ints, requests: list[Counts], most: Ints, kinds: Sequence[Kind], short: int
) -> list[Ints] | None:
    """Kind by kind, those first whose need is the largest part of what fits, each on the rows that it fills best. By
    kind, how many tasks every row gets; `None` if that does not place all."""
    left = room.copy()
    placed = [np.zeros(room.shape[1], np.int64) for _ in kinds]
    fitting = most.sum(axis=1).tolist()
    weights = [1 / max(1, int(column.max(initial=0))) for column in room]
    order = sorted(range(len(kinds)), key=lambda number: (-kinds[number].needed / max(1, fitting[number]), number))

    def place(number: int, count: int) -> int:
        request = requests[number]
        fits = np.where(most[number] > 0, count, 0)
        for column, amount in enumerate(request):
            if amount:
                fits = np.minimum(fits, left[column] // amount)
        rows = np.flatnonzero(fits)
        waste = np.zeros(len(rows))
        for column, amount in enumerate(request):
            waste += (left[column, rows] - fits[rows] * amount) * weights[column]
        rows = rows[np.argsort(waste, kind="stable")]
        given = fits[rows]
        given = np.clip(count - (np.cumsum(given) - given), 0, given)
        placed[number][rows] += given
        for column, amount in enumerate(request):
            left[column, rows] -= given * amount
        return int(given.sum())

    for number in order:
        if place(number, kinds[number].needed) < kinds[number].needed:
            return None
    for number in reversed(order):
        if short:
            short -= place(number, min(short, kinds[number].optional))
    return None if short else placed


# ---- the exact search


def _exactly(
    room: Ints, requests: list[Counts], most: Ints, counts: Ints, demand: ClassDemand, steps: int
) -> list[Choice] | Failure:
    if room.shape[1] > _NODE_CLASSES or len(requests) > _KINDS:
        return Failure.GAVE_UP
    counts = np.minimum(counts, demand.total)  # no more nodes are ever used
    useful = np.flatnonzero(_is_useful(room, most > 0, counts, demand.total))
    found = search(room[:, useful], requests, most[:, useful], counts[useful], demand, steps)
    if found is None:
        return Failure.GAVE_UP
    return [one._replace(classes=useful[one.classes].tolist()) for one in found] or Failure.NONE_EXISTS


def _is_useful(room: Ints, takes: Bools, counts: Ints, total: int) -> Bools:
    """Which node classes the search needs: not those with at least as many better nodes as there are tasks, since then
    one of the better ones is always free instead."""
    better = np.ones((room.shape[1],) * 2, np.bool_)  # better[i, j]: j can hold all that i can
    for line in room:
        better &= line[:, None] <= line[None, :]
    for takes_kind in takes:
        better &= takes_kind[:, None] <= takes_kind[None, :]
    np.fill_diagonal(better, val=False)
    found: Bools = better @ counts < total
    return found


def _spread_out(found: list[Choice], kinds: Sequence[Kind], usable: Ints, group: Ints) -> list[list[int]]:
    """The rows of each kind, at most one per task; among equal nodes the lowest rows first."""
    classes = {choice.classes[0]: choice.classes for choice in found}
    by_class = np.split(usable[np.argsort(group, kind="stable")], np.cumsum(np.bincount(group))[:-1])
    left = {
        first: sorted(np.concatenate([by_class[number] for number in alike]).tolist())
        for first, alike in classes.items()
    }
    rows: list[list[int]] = [[] for _ in kinds]
    for choice in found:
        alike = left[choice.classes[0]]
        for row in alike[: choice.nodes]:
            for kind, held in enumerate(choice.pattern):
                rows[kind] += [row] * held
        del alike[: choice.nodes]
    return [sorted(of)[: kind.needed + kind.optional] for of, kind in zip(rows, kinds, strict=True)]
