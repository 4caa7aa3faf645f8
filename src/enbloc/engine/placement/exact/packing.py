"""Whether tasks of several kinds fit together, and where: plain numbers in, rows out.

What greedy placement cannot answer. Rows that can hold the very same mixes are one node class with a multiplicity; what
one node may hold is a *pattern*, so many of each kind; the question is whether patterns can be chosen so that every
kind gets its number (see `patterns`). A quick way is tried first: the scarcest kind first, each where it leaves least.

Bounded in steps, never by a clock, so the answer is the same on every run. Who asks, for which tasks, and what is said
of the answer is `fitting`'s business.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.placement.exact.patterns import Choice, Counts, Wanted, search
from enbloc.engine.tables.resources import Bools, Ints

STEPS: Final = 700
"""How many steps a search may take: some ten milliseconds."""

_NODE_CLASSES: Final = 400
_KINDS: Final = 8
"""Beyond these only the quick way is tried."""

_REMEMBERED: Final = 256


class Kind(NamedTuple):
    """Tasks that ask for the same amounts and may go to the same rows."""

    request: tuple[int, ...]
    """Amounts, one for each column of the room."""
    allowed: Bools
    needed: int
    optional: int = 0
    """How many more of it there are."""


class Packed(NamedTuple):
    """A placement: for each kind the rows of its tasks, ascending, a row as often as it gets one. There may be more
    than are needed: any `short` of the optional ones among them will do."""

    rows: list[list[int]]


class Failure(Enum):
    TOO_LITTLE = "the free room does not hold it, all nodes together"
    NONE_EXISTS = "all nodes together would hold it, and no packing does"
    GAVE_UP = "no answer within the bound"


class Failures:
    """Searches that failed, by what was asked: the same is not searched twice, though a cluster that changes elsewhere
    wakes those who asked (G9). The oldest is forgotten first."""

    def __init__(self) -> None:
        self._known: dict[bytes, Failure] = {}

    def get(self, key: bytes) -> Failure | None:
        return self._known.get(key)

    def put(self, key: bytes, failure: Failure) -> None:
        if len(self._known) >= _REMEMBERED:
            del self._known[next(iter(self._known))]
        self._known[key] = failure


def pack(
    free: Ints, kinds: Sequence[Kind], short: int = 0, failures: Failures | None = None, steps: int = STEPS
) -> Packed | Failure:
    """Rows for what is needed of every kind, and for `short` of the optional ones, of whatever kinds. `free` has a row
    for each column of the requests, and a column for each node."""
    free = np.maximum(free, 0)
    if _too_little(free, kinds, short):
        return Failure.TOO_LITTLE
    most = np.stack([_most(free, kind) for kind in kinds])
    sums = most.sum(axis=1).tolist()
    spare = sum(min(has - kind.needed, kind.optional) for has, kind in zip(sums, kinds, strict=True))
    if any(has < kind.needed for has, kind in zip(sums, kinds, strict=True)) or spare < short:
        return Failure.NONE_EXISTS
    usable = np.flatnonzero(most.any(axis=0))
    most = most[:, usable]
    room, requests = _reduced(free[:, usable], kinds, most)
    first, group, counts = _alike(np.concatenate([room, most > 0]))
    key = _fingerprint((room[:, first], most[:, first] > 0, counts), requests, kinds, short, steps)
    known = failures.get(key) if failures is not None else None
    if known is not None:
        return known
    quick = _scarcest_first(room, requests, most, kinds, short)
    if quick is not None:
        return Packed([np.repeat(usable, placed).tolist() for placed in quick])
    wanted = Wanted(tuple(kind.needed for kind in kinds), tuple(kind.optional for kind in kinds), short)
    found = _exactly(room[:, first], requests, most[:, first], counts, wanted, steps)
    if not isinstance(found, Failure):
        return Packed(_spread_out(found, kinds, usable, group))
    if failures is not None:
        failures.put(key, found)
    return found


# ---- what there is


def _too_little(free: Ints, kinds: Sequence[Kind], short: int) -> bool:
    """Whether some resource is not there, were all nodes one; for each kind alone, and for all of them."""
    for column, amounts in enumerate(free):
        least = min((kind.request[column] for kind in kinds if kind.optional), default=0) * short
        open_to_any = np.zeros(len(amounts), np.bool_)
        for kind in kinds:
            amount = kind.request[column]
            if amount and kind.needed:
                least += amount * kind.needed
                if _total(amounts[kind.allowed]) < amount * kind.needed:
                    return True
            if amount:
                open_to_any |= kind.allowed
        if least and _total(amounts[open_to_any]) < least:
            return True
    return False


def _total(amounts: Ints) -> int:
    """The sum, in two halves: at the ceiling it would leave int64."""
    return (int((amounts >> 28).sum()) << 28) + int((amounts & (2**28 - 1)).sum())


def _most(free: Ints, kind: Kind) -> Ints:
    """How many of a kind each row could hold if it held nothing else."""
    most = np.where(kind.allowed, kind.needed + kind.optional, 0)
    for amounts, amount in zip(free, kind.request, strict=True):
        if amount:
            most = np.minimum(most, amounts // amount)
    return most


def _reduced(free: Ints, kinds: Sequence[Kind], most: Ints) -> tuple[Ints, list[Counts]]:
    """The room, less what no mix of the kinds could use, and the requests, both in the largest units that divide the
    requests. So most rows that differ only in what does not matter become equal."""
    room = np.empty_like(free)
    columns: list[Counts] = []
    for column, amounts in enumerate(free):
        unit = math.gcd(*(kind.request[column] for kind in kinds)) or 1
        # What is above a row's whole room is asked for nowhere: then it holds none of that kind (and 0 × it is 0).
        asked = tuple(min(kind.request[column] // unit, 2**56) for kind in kinds)
        used = np.zeros(len(amounts), np.int64)
        for amount, count in zip(asked, most, strict=True):
            used += amount * count
        room[column] = np.minimum(amounts // unit, used)
        columns.append(asked)
    return room, [tuple(asked[number] for asked in columns) for number in range(len(kinds))]


_MIX: Final = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)


def _alike(facts: Ints) -> tuple[Ints, Ints, Ints]:
    """Columns that are equal, as groups by first appearance: of each the first, of each column its group, and how many
    there are. By a hash, which is checked: sorting whole columns costs many times that."""
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
    asked = (requests, [(kind.needed, kind.optional) for kind in kinds], short, steps)
    digest = hashlib.blake2b(repr(asked).encode(), digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


# ---- the quick way


def _scarcest_first(
    room: Ints, requests: list[Counts], most: Ints, kinds: Sequence[Kind], short: int
) -> list[Ints] | None:
    """Kind by kind, those first that need most of what there is for them, each on the rows that it fills best. How many
    of each kind every row gets, or `None` if that leads nowhere."""
    left = room.copy()
    placed = [np.zeros(room.shape[1], np.int64) for _ in kinds]
    has = most.sum(axis=1).tolist()
    weights = [1 / max(1, int(column.max(initial=0))) for column in room]
    order = sorted(range(len(kinds)), key=lambda number: (-kinds[number].needed / max(1, has[number]), number))

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


# ---- the exact one


def _exactly(
    room: Ints, requests: list[Counts], most: Ints, counts: Ints, wanted: Wanted, steps: int
) -> list[Choice] | Failure:
    if room.shape[1] > _NODE_CLASSES or len(requests) > _KINDS:
        return Failure.GAVE_UP
    counts = np.minimum(counts, wanted.total)  # no more nodes are ever used
    kept = np.flatnonzero(_of_use(room, most > 0, counts, wanted.total))
    found = search(room[:, kept], requests, most[:, kept], counts[kept], wanted, steps)
    if found is None:
        return Failure.GAVE_UP
    return [one._replace(classes=kept[one.classes].tolist()) for one in found] or Failure.NONE_EXISTS


def _of_use(room: Ints, takes: Bools, counts: Ints, total: int) -> Bools:
    """Which node classes may be wanted: not where there are at least as many better nodes as there are tasks, since
    then one of those is always left to take its place."""
    better = np.ones((room.shape[1],) * 2, np.bool_)  # better[i, j]: j holds all that i holds
    for line in room:
        better &= line[:, None] <= line[None, :]
    for takes_kind in takes:
        better &= takes_kind[:, None] <= takes_kind[None, :]
    np.fill_diagonal(better, val=False)
    found: Bools = better @ counts < total
    return found


def _spread_out(found: list[Choice], kinds: Sequence[Kind], usable: Ints, group: Ints) -> list[list[int]]:
    """The rows of each kind, no more than there are tasks: of nodes that are alike the lowest rows first."""
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
