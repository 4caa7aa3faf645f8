"""Choosing a pattern for each node, so that every kind of task gets its number: a search that ends or gives up.

A pattern is what one node may hold, so many of each kind. Only full ones are looked at: more on a node never harms,
since what is too much is left out in the end. What is asked for is a vector of *lacks*: one for each kind, and one for
all of them together where some tasks are optional. It is met when none is above zero.

Whatever worth is given to a task of each kind, the nodes cannot hold more worth than their best patterns have. If that
is less than what lacks is worth, there is no way: this cuts the search short, and often proves at once that there is
none. Any worth makes a true bound; good ones are found by raising what lacks and lowering what abounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.tables.resources import Ints

Counts = tuple[int, ...]

_ROUNDS: Final = 24
_FINE: Final = 2**12
_WAYS: Final = 20_000
"""How many ways to fill nodes are looked at."""


class Wanted(NamedTuple):
    needed: Counts
    optional: Counts
    short: int
    """How many of the optional ones, of whatever kinds."""

    @property
    def total(self) -> int:
        return sum(self.needed) + self.short


class Choice(NamedTuple):
    """So many nodes of these node classes, which have the same patterns, hold this one."""

    classes: list[int]
    pattern: Counts
    nodes: int


class _Bin(NamedTuple):
    """Node classes with the same patterns."""

    numbers: list[int]
    patterns: list[Counts]
    nodes: int


class _Spot(NamedTuple):
    """Where a search stands: in a bin, with so many nodes left in it and some patterns tried through."""

    bin: int
    left: int
    open: int
    """Patterns that may still be used in this bin, as bits."""
    lacks: Counts
    """Of each kind. Below zero: so many optional ones more than were needed."""


class _Steps:
    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise _TooManyError


class _TooManyError(Exception):
    """The bound was reached before an answer."""


def search(
    room: Ints, requests: Sequence[Counts], most: Ints, nodes: Ints, wanted: Wanted, most_steps: int
) -> list[Choice] | None:
    """What every node holds; an empty list if there is no way, `None` if that was not found out within so many steps.
    Something must be wanted. Each column of `room` is a node class with so many `nodes`, of which one could hold `most`
    of each kind if it held nothing else."""
    bins = _bins(room, requests, most, nodes, wanted.total)
    if bins is None:
        return None
    try:
        return _Search(bins, requests, wanted, _Steps(most_steps)).run()
    except _TooManyError:
        return None


def _bins(room: Ints, requests: Sequence[Counts], most: Ints, nodes: Ints, total: int) -> list[_Bin] | None:
    """Node classes by their patterns, those first where there is least to choose; `None`: there are too many."""
    filled = _full(room, requests, most)
    if filled is None:
        return None
    of_class, patterns = filled
    ends = np.cumsum(np.bincount(of_class, minlength=room.shape[1])).tolist()
    found: dict[bytes, _Bin] = {}
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        held = patterns[start:end]
        key = held.tobytes()
        same = found.get(key)
        count = int(nodes[number])
        if same is None:
            found[key] = _Bin([number], [tuple(one) for one in held.tolist()], count)
        else:  # no more nodes than there are tasks are ever used
            found[key] = _Bin([*same.numbers, number], same.patterns, min(same.nodes + count, total))
    return sorted(found.values(), key=lambda of: (len(of.patterns), of.numbers[0]))


def _full(room: Ints, requests: Sequence[Counts], most: Ints) -> tuple[Ints, Ints] | None:
    """Every way to fill a node so that no further task goes on it, for all node classes at once: of each way its class,
    by which they are sorted, and how many it holds of each kind."""
    of_class = np.arange(room.shape[1])
    left = room
    held = np.zeros((0, len(of_class)), np.int64)
    for kind, request in enumerate(requests):
        fits = most[kind, of_class]
        for has, amount in zip(left, request, strict=True):
            if amount:
                fits = np.minimum(fits, has // amount)
        count = fits
        if kind < len(requests) - 1:  # none, one, … as many as fit; of the last kind all that fit
            ways = fits + 1
            if int(ways.sum()) > _WAYS:
                return None
            of_class, left, held = (np.repeat(of, ways, axis=-1) for of in (of_class, left, held))
            count = np.arange(len(of_class)) - np.repeat(np.cumsum(ways) - ways, ways)
        left = left - np.array(request, np.int64)[:, None] * count
        held = np.concatenate([held, count[None]])
    full = np.ones(len(of_class), np.bool_)
    for kind, request in enumerate(requests):
        more_goes = held[kind] < most[kind, of_class]
        for has, amount in zip(left, request, strict=True):
            more_goes &= has >= amount
        full &= ~more_goes
    return of_class[full], np.ascontiguousarray(held.T[full])


class _Search:
    def __init__(self, bins: list[_Bin], requests: Sequence[Counts], wanted: Wanted, steps: _Steps) -> None:
        self._bins = bins
        self._wanted = wanted
        self._steps = steps
        self._kinds = len(requests)
        self._worths = self._first_worths(requests)
        self._held: list[list[int]] = []
        """By worth and bin: what the best pattern is worth."""
        self._beyond: list[list[int]] = []
        """By worth and bin: what all nodes of the bins behind it can hold at most."""

    def run(self) -> list[Choice]:
        if not self._bins or not self._find_worths():
            return []
        for worth in self._worths:
            held = [max(_dot(worth, self._with_total(pattern)) for pattern in of.patterns) for of in self._bins]
            beyond = [0] * len(held)
            for number in range(len(held) - 2, -1, -1):
                beyond[number] = beyond[number + 1] + held[number + 1] * self._bins[number + 1].nodes
            self._held.append(held)
            self._beyond.append(beyond)
        return self._walk(self._next_bin(0, self._wanted.needed))

    # ---- worths

    def _with_total(self, counts: Counts) -> Counts:
        return (*counts, sum(counts))

    def _lacking(self, lacks: Counts) -> list[int]:
        """What lacks of each kind, and of all together."""
        return [*(max(0, lack) for lack in lacks), max(0, self._wanted.short + sum(lacks))]

    def _met(self, lacks: Counts) -> bool:
        return not any(self._lacking(lacks))

    def _first_worths(self, requests: Sequence[Counts]) -> list[Counts]:
        """A task is worth what it takes of a resource."""
        found: dict[Counts, None] = {}
        for column in zip(*requests, strict=True):
            top = max(column)
            if top:
                worth = column if top <= _FINE**2 else tuple(amount * _FINE // top for amount in column)
                found[(*worth, 0)] = None
        return list(found)

    def _find_worths(self) -> bool:
        """Looks for worths by which the nodes hold little more than what lacks. False: there is one by which they hold
        less, which proves that no choice exists."""
        table = np.array([self._with_total(p) for of in self._bins for p in of.patterns], np.int64)
        lengths = np.array([len(of.patterns) for of in self._bins])
        starts, places = np.cumsum(lengths) - lengths, np.arange(len(table))
        nodes = np.array([of.nodes for of in self._bins], np.int64)
        asked = np.array(self._lacking(self._wanted.needed), np.int64)
        firsts = [np.array(worth, np.int64) for worth in self._worths]
        for worth in firsts:
            if int(np.maximum.reduceat(table @ worth, starts) @ nodes) < int(worth @ asked):
                return False
        weights = np.where(asked > 0, 1 / np.maximum(asked, 1), 0.0)
        best: tuple[float, Counts] | None = None
        for turn in range(_ROUNDS):
            worth = np.rint(weights / weights.max() * _FINE).astype(np.int64)
            values = table @ worth
            best_of = np.maximum.reduceat(values, starts)
            ranked = np.where(values == np.repeat(best_of, lengths), places, len(table))
            chosen = np.minimum.reduceat(ranked, starts)
            has, wants = int(values[chosen] @ nodes), int(worth @ asked)
            if has < wants:
                return False
            if best is None or has / wants < best[0]:
                best = (has / wants, tuple(worth.tolist()))
            missing = np.clip((asked - nodes @ table[chosen]) / np.maximum(asked, 1), -1, 1)
            weights = weights * np.exp(missing / (1 + turn / 6))
        assert best is not None
        self._worths = list(dict.fromkeys([best[1], *self._worths]))
        return True

    def _hopeless(self, spot: _Spot) -> bool:
        lacking = self._lacking(spot.lacks)
        for worth, held, beyond in zip(self._worths, self._held, self._beyond, strict=True):
            if _dot(worth, lacking) > held[spot.bin] * spot.left + beyond[spot.bin]:
                return True
        return False

    # ---- the walk

    def _walk(self, start: _Spot) -> list[Choice]:
        """Depth first, on a stack of its own. Spots that led nowhere are not entered again."""
        if self._hopeless(start):
            return []
        nowhere: set[_Spot] = set()
        path = [(start, self._ways(start))]
        choices: list[Choice] = []
        while path:
            self._steps.take()
            step = next(path[-1][1], None)
            if step is None:
                nowhere.add(path.pop()[0])
                del choices[len(path) - 1 :]
                continue
            spot, choice = step
            if self._met(spot.lacks):
                return [one for one in [*choices, choice] if one.nodes]
            if spot.bin < len(self._bins) and spot not in nowhere and not self._hopeless(spot):
                path.append((spot, self._ways(spot)))
                choices.append(choice)
        return []

    def _next_bin(self, number: int, lacks: Counts) -> _Spot:
        if number == len(self._bins):
            return _Spot(number, 0, 0, lacks)
        following = self._bins[number]
        return _Spot(number, following.nodes, (1 << len(following.patterns)) - 1, lacks)

    def _ways(self, spot: _Spot) -> Iterator[tuple[_Spot, Choice]]:
        """What may be done with the nodes that are left in a bin: some of them get this pattern, and none of the others
        does; the pattern that is worth most first, on as many as possible first."""
        here = self._bins[spot.bin]
        gains = self._gains(spot)
        if not gains:
            yield self._next_bin(spot.bin + 1, spot.lacks), Choice(here.numbers, (), 0)
        still_open = sum(1 << pattern for pattern, _ in gains)
        optional = self._wanted.optional
        for pattern, gain in gains:
            still_open &= ~(1 << pattern)
            holds = here.patterns[pattern]
            of_use = max(
                -(-(lack + more) // held)
                for lack, more, held, adds in zip(spot.lacks, optional, holds, gain, strict=True)
                if adds
            )
            most = min(spot.left, of_use)
            # The last pattern goes wherever it is of use: to leave a node empty never helps.
            for count in range(most, 0, -1) if still_open else (most,):
                lacks = tuple(
                    max(lack - count * held, -more)
                    for lack, held, more in zip(spot.lacks, holds, optional, strict=True)
                )
                left = spot.left - count
                after = _Spot(spot.bin, left, still_open, lacks)
                if not left or not still_open:
                    after = self._next_bin(spot.bin + 1, lacks)
                yield after, Choice(here.numbers, holds, count)

    def _gains(self, spot: _Spot) -> list[tuple[int, Counts]]:
        """The open patterns and what each would add here, the worthiest first; none that adds no more than another."""
        wanted = [lack + more for lack, more in zip(spot.lacks, self._wanted.optional, strict=True)]
        found: dict[Counts, int] = {}
        for pattern, holds in enumerate(self._bins[spot.bin].patterns):
            if spot.open >> pattern & 1:
                gain = tuple(map(min, holds, wanted))
                if any(gain):
                    found.setdefault(gain, pattern)
        self._steps.take(len(found) // 2)
        worth = self._worths[0]
        sorted_ = sorted(found.items(), key=lambda item: (-_dot(worth, self._with_total(item[0])), item[1]))
        kept: list[tuple[int, Counts]] = []
        for gain, pattern in sorted_:
            if not any(all(map(int.__ge__, other, gain)) for _, other in kept):
                kept.append((pattern, gain))
        return kept


def _dot(worth: Counts, counts: Sequence[int]) -> int:
    return sum(map(int.__mul__, worth, counts))
