"""Chooses a pattern for each node so that every kind of task gets its number: branch and bound with a step limit.

A pattern is a number of tasks of each kind that one node can hold. Only maximal patterns are considered: surplus tasks
on a node do no harm, they are left out in the end. The search keeps a vector of *unmet* counts: one per kind, and one
for the total where some tasks are optional. The demand is met when none is above zero.

Bounds come from prices (a Lagrangian relaxation): for any price per kind, the nodes cannot hold more value than their
best patterns have. If the value of what is unmet is higher, no choice exists: this prunes the search, and often proves
infeasibility at once. Every price vector gives a valid bound; good ones are found by raising the prices of kinds that
are short and lowering those of kinds in excess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.core.tables.resources import Ints

Counts = tuple[int, ...]

_PRICE_ROUNDS: Final = 24
_PRICE_SCALE: Final = 2**12
_PATTERNS_BOUND: Final = 20_000
"""At most 20,000 patterns are enumerated; with more the search gives up: each costs memory and time."""


class ClassDemand(NamedTuple):
    """How many tasks are to be placed, by kind."""

    needed: Counts
    optional: Counts
    short: int
    """How many of the optional tasks, of any kind."""

    @property
    def total(self) -> int:
        return sum(self.needed) + self.short


class Choice(NamedTuple):
    """`nodes` nodes of these node classes, which have equal patterns, hold this one."""

    classes: list[int]
    pattern: Counts
    nodes: int


class _NodeGroup(NamedTuple):
    """Node classes with equal patterns."""

    numbers: list[int]
    patterns: list[Counts]
    nodes: int


class _SearchState(NamedTuple):
    """A node of the search tree."""

    group: int
    """The group of nodes that is being filled."""
    left: int
    """How many of its nodes have no pattern yet."""
    open: int
    """The patterns that may still be used in this group, as bits."""
    unmet: Counts
    """By kind. Below zero: optional tasks beyond the needed ones."""


class _StepLimit:
    def __init__(self, steps: int) -> None:
        self.left = steps

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise _StepLimitError


class _StepLimitError(Exception):
    """The limit was reached before the search ended."""


def search(
    room: Ints, requests: Sequence[Counts], most: Ints, nodes: Ints, demand: ClassDemand, steps: int
) -> list[Choice] | None:
    """The patterns of all nodes; an empty list if no choice exists, `None` if the search did not end within `steps`.
    The demand must not be empty. Each column of `room` is a node class of `nodes` nodes, each of which could hold
    `most` of each kind if it held nothing else."""
    groups = _node_groups(room, requests, most, nodes, demand.total)
    if groups is None:
        return None
    try:
        return _Search(groups, requests, demand, _StepLimit(steps)).run()
    except _StepLimitError:
        return None


def _node_groups(
    room: Ints, requests: Sequence[Counts], most: Ints, nodes: Ints, total: int
) -> list[_NodeGroup] | None:
    """Node classes grouped by their patterns, those with the fewest patterns first; `None`: there are too many."""
    enumerated = _maximal_patterns(room, requests, most)
    if enumerated is None:
        return None
    of_class, patterns = enumerated
    ends = np.cumsum(np.bincount(of_class, minlength=room.shape[1])).tolist()
    found: dict[bytes, _NodeGroup] = {}
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        held = patterns[start:end]
        key = held.tobytes()
        same = found.get(key)
        count = int(nodes[number])
        if same is None:
            found[key] = _NodeGroup([number], [tuple(one) for one in held.tolist()], count)
        else:  # at most as many nodes as tasks are ever used
            found[key] = _NodeGroup([*same.numbers, number], same.patterns, min(same.nodes + count, total))
    return sorted(found.values(), key=lambda of: (len(of.patterns), of.numbers[0]))


def _maximal_patterns(room: Ints, requests: Sequence[Counts], most: Ints) -> tuple[Ints, Ints] | None:
    """All patterns to which no task can be added, for all node classes at once: the class of each pattern, by which
    they are sorted, and its number of tasks by kind."""
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
            choices = fits + 1
            if int(choices.sum()) > _PATTERNS_BOUND:
                return None
            of_class, left, held = (np.repeat(of, choices, axis=-1) for of in (of_class, left, held))
            count = np.arange(len(of_class)) - np.repeat(np.cumsum(choices) - choices, choices)
        left = left - np.array(request, np.int64)[:, None] * count
        held = np.concatenate([held, count[None]])
    maximal = np.ones(len(of_class), np.bool_)
    for kind, request in enumerate(requests):
        one_more_fits = held[kind] < most[kind, of_class]
        for has, amount in zip(left, request, strict=True):
            one_more_fits &= has >= amount
        maximal &= ~one_more_fits
    return of_class[maximal], np.ascontiguousarray(held.T[maximal])


class _Search:
    def __init__(
        self, groups: list[_NodeGroup], requests: Sequence[Counts], demand: ClassDemand, steps: _StepLimit
    ) -> None:
        self._groups = groups
        self._demand = demand
        self._steps = steps
        self._prices = self._initial_prices(requests)
        self._best_value: list[list[int]] = []
        """By price vector and group: the value of the best pattern."""
        self._value_beyond: list[list[int]] = []
        """By price vector and group: the highest value that all nodes of later groups can hold."""

    def run(self) -> list[Choice]:
        if not self._groups or not self._adjust_prices():
            return []
        for price in self._prices:
            best = [max(_dot(price, self._with_total(pattern)) for pattern in of.patterns) for of in self._groups]
            beyond = [0] * len(best)
            for number in range(len(best) - 2, -1, -1):
                beyond[number] = beyond[number + 1] + best[number + 1] * self._groups[number + 1].nodes
            self._best_value.append(best)
            self._value_beyond.append(beyond)
        return self._depth_first(self._enter_group(0, self._demand.needed))

    # ---- prices

    def _with_total(self, counts: Counts) -> Counts:
        return (*counts, sum(counts))

    def _missing(self, unmet: Counts) -> list[int]:
        """How many tasks are missing of each kind, and in total."""
        return [*(max(0, count) for count in unmet), max(0, self._demand.short + sum(unmet))]

    def _is_met(self, unmet: Counts) -> bool:
        return not any(self._missing(unmet))

    def _initial_prices(self, requests: Sequence[Counts]) -> list[Counts]:
        """One price vector per resource: the price of a task is its request of it."""
        found: dict[Counts, None] = {}
        for column in zip(*requests, strict=True):
            top = max(column)
            if top:
                price = column if top <= _PRICE_SCALE**2 else tuple(amount * _PRICE_SCALE // top for amount in column)
                found[(*price, 0)] = None
        return list(found)

    def _adjust_prices(self) -> bool:
        """Searches for prices at which the nodes can hold little more value than is demanded. False: at some prices
        they hold less, which proves that no choice exists."""
        table = np.array([self._with_total(p) for of in self._groups for p in of.patterns], np.int64)
        lengths = np.array([len(of.patterns) for of in self._groups])
        starts, places = np.cumsum(lengths) - lengths, np.arange(len(table))
        nodes = np.array([of.nodes for of in self._groups], np.int64)
        demanded = np.array(self._missing(self._demand.needed), np.int64)
        for price in [np.array(price, np.int64) for price in self._prices]:
            if int(np.maximum.reduceat(table @ price, starts) @ nodes) < int(price @ demanded):
                return False
        weights = np.where(demanded > 0, 1 / np.maximum(demanded, 1), 0.0)
        best: tuple[float, Counts] | None = None
        for number in range(_PRICE_ROUNDS):
            price = np.rint(weights / weights.max() * _PRICE_SCALE).astype(np.int64)
            values = table @ price
            best_of = np.maximum.reduceat(values, starts)
            ranked = np.where(values == np.repeat(best_of, lengths), places, len(table))
            chosen = np.minimum.reduceat(ranked, starts)
            held, needed = int(values[chosen] @ nodes), int(price @ demanded)
            if held < needed:
                return False
            if best is None or held / needed < best[0]:
                best = (held / needed, tuple(price.tolist()))
            shortage = np.clip((demanded - nodes @ table[chosen]) / np.maximum(demanded, 1), -1, 1)
            weights = weights * np.exp(shortage / (1 + number / 6))
        assert best is not None
        self._prices = list(dict.fromkeys([best[1], *self._prices]))
        return True

    def _is_infeasible(self, state: _SearchState) -> bool:
        """Whether a bound proves that the rest of the nodes cannot hold what is missing."""
        missing = self._missing(state.unmet)
        for price, best, beyond in zip(self._prices, self._best_value, self._value_beyond, strict=True):
            if _dot(price, missing) > best[state.group] * state.left + beyond[state.group]:
                return True
        return False

    # ---- the search

    def _depth_first(self, start: _SearchState) -> list[Choice]:
        """On an explicit stack. States that failed are not entered again."""
        if self._is_infeasible(start):
            return []
        failed: set[_SearchState] = set()
        path = [(start, self._branches(start))]
        choices: list[Choice] = []
        while path:
            self._steps.take()
            step = next(path[-1][1], None)
            if step is None:
                failed.add(path.pop()[0])
                del choices[len(path) - 1 :]
                continue
            state, choice = step
            if self._is_met(state.unmet):
                return [one for one in [*choices, choice] if one.nodes]
            if state.group < len(self._groups) and state not in failed and not self._is_infeasible(state):
                path.append((state, self._branches(state)))
                choices.append(choice)
        return []

    def _enter_group(self, number: int, unmet: Counts) -> _SearchState:
        if number == len(self._groups):
            return _SearchState(number, 0, 0, unmet)
        group = self._groups[number]
        return _SearchState(number, group.nodes, (1 << len(group.patterns)) - 1, unmet)

    def _branches(self, state: _SearchState) -> Iterator[tuple[_SearchState, Choice]]:
        """The choices for the nodes that are left in a group: some of them get one pattern, and none of the others
        does. The pattern of the highest value first, on as many nodes as possible first."""
        group = self._groups[state.group]
        gains = self._gains(state)
        if not gains:
            yield self._enter_group(state.group + 1, state.unmet), Choice(group.numbers, (), 0)
        still_open = sum(1 << pattern for pattern, _ in gains)
        optional = self._demand.optional
        for pattern, gain in gains:
            still_open &= ~(1 << pattern)
            holds = group.patterns[pattern]
            useful = max(
                -(-(count + more) // held)
                for count, more, held, adds in zip(state.unmet, optional, holds, gain, strict=True)
                if adds
            )
            most = min(state.left, useful)
            # The last pattern goes to every node on which it is useful: leaving a node empty never helps.
            for nodes in range(most, 0, -1) if still_open else (most,):
                unmet = tuple(
                    max(count - nodes * held, -more)
                    for count, held, more in zip(state.unmet, holds, optional, strict=True)
                )
                left = state.left - nodes
                after = _SearchState(state.group, left, still_open, unmet)
                if not left or not still_open:
                    after = self._enter_group(state.group + 1, unmet)
                yield after, Choice(group.numbers, holds, nodes)

    def _gains(self, state: _SearchState) -> list[tuple[int, Counts]]:
        """The open patterns and the useful tasks in each, the highest value first; without dominated ones."""
        useful = [count + more for count, more in zip(state.unmet, self._demand.optional, strict=True)]
        found: dict[Counts, int] = {}
        for pattern, holds in enumerate(self._groups[state.group].patterns):
            if state.open >> pattern & 1:
                gain = tuple(map(min, holds, useful))
                if any(gain):
                    found.setdefault(gain, pattern)
        self._steps.take(len(found) // 2)
        price = self._prices[0]
        sorted_ = sorted(found.items(), key=lambda item: (-_dot(price, self._with_total(item[0])), item[1]))
        kept: list[tuple[int, Counts]] = []
        for gain, pattern in sorted_:
            if not any(all(map(int.__ge__, other, gain)) for _, other in kept):
                kept.append((pattern, gain))
        return kept


def _dot(prices: Counts, counts: Sequence[int]) -> int:
    return sum(map(int.__mul__, prices, counts))
