"""What becomes free when, from known run times: the releases of tasks, and how much is free on every row over time.

Times of a profile are ends of tasks and starts and ends of plans; between two of them nothing changes. At most `STEPS`
times are kept: tasks that end in between count as ending later, so that no plan relies on room that is not there yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.run_times import ENDLESS, end_of
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.gangs.model import GangKey

STEPS: Final = 256
ALL: Final = slice(None)


class Releases(NamedTuple):
    """What tasks release when they end, in the order of their ends; one element or column a task."""

    ends_ns: Ints
    step: Ints
    """Tasks of one gang that end at one time are released in one step."""
    rows: Ints
    amounts: Ints

    @property
    def steps(self) -> int:
        return int(self.step[-1]) + 1 if len(self.step) else 0

    def until(self, step: int) -> Releases:
        """The releases up to a step, inclusive."""
        count = int(np.searchsorted(self.step, step, side="right"))
        return Releases(self.ends_ns[:count], self.step[:count], self.rows[:count], self.amounts[:, :count])

    def add_to(self, free: Ints, chosen: Bools | slice = ALL) -> None:
        """Counts what is released as free, column by row."""
        for column, amounts in enumerate(self.amounts):
            np.add.at(free[column], self.rows[chosen], amounts[chosen])


def releases_of(state: State, now_ns: int) -> Releases:
    """Of all tasks with a known end."""
    nodes, stateful = state.nodes, state.stateful
    found: list[tuple[int, GangKey, int, Task]] = []
    for name, row in nodes.rows.items():
        for task in stateful.assigned_to(name):
            end_ns = end_of(task, now_ns)
            if end_ns != ENDLESS:
                found.append((end_ns, task.gang.key, row, task))
    found.sort(key=itemgetter(0, 1))
    step = np.zeros(len(found), np.int64)
    for number in range(1, len(found)):
        step[number] = step[number - 1] + (found[number][:2] != found[number - 1][:2])
    amounts = np.zeros((len(nodes.free), len(found)), np.int64)
    for number, (_, _, _, task) in enumerate(found):
        for column, amount in task.cls.request:
            amounts[column, number] = amount
    ends_ns = np.array([end_ns for end_ns, _, _, _ in found], np.int64)
    return Releases(ends_ns, step, np.array([row for _, _, row, _ in found], np.int64), amounts)


def forecast_request(gang: GangState) -> PlacementRequest:
    """What the minima of a gang need, as far as its pods exist: lost members may not exist again yet (G7)."""
    request = request_of(gang)
    return request._replace(short=min(request.short, len(request.rest)))


@contextmanager
def with_more_free(state: State, more: Ints) -> Iterator[None]:
    """While the context lasts, this much more is free, column by row; what is taken meanwhile stays taken. Only the
    caller's rows change: both ways the nodes' version shows it."""
    rows = np.flatnonzero(more.any(axis=0))
    _change(state, rows, more[:, rows])
    try:
        yield
    finally:
        _change(state, rows, -more[:, rows])


def _change(state: State, rows: Ints, more: Ints) -> None:
    nodes = state.nodes
    nodes.free[:, rows] += more
    nodes.version += 1
    nodes.stamp[rows] = nodes.version


class FreeProfile:
    def __init__(self, free: Ints, releases: Releases, now_ns: int) -> None:
        """`free`: what is free now, column by row."""
        # A task that has overrun ends at any moment, not now.
        ends_ns = np.maximum(releases.ends_ns, now_ns + 1)
        kept = np.unique(ends_ns)
        if len(kept) > STEPS:
            kept = kept[np.linspace(0, len(kept) - 1, STEPS).round().astype(np.int64)]
        self._times_ns: list[int] = [now_ns, *kept.tolist()]
        self._free: list[Ints] = [free.copy()]
        steps = np.searchsorted(kept, ends_ns)
        for number in range(len(kept)):
            more = self._free[-1].copy()
            releases.add_to(more, steps == number)
            self._free.append(more)
        self._totals: list[Ints] = [one.sum(axis=1) for one in self._free]

    def free_now(self) -> Ints:
        """What is free on every row at the beginning."""
        return self._free[0]

    def between(self, start_ns: int, run_time_ns: int | None) -> Ints:
        """What is free on every row from a time on, for so long."""
        first, last = self._steps(start_ns, run_time_ns)
        found: Ints = np.min(self._free[first:last], axis=0)
        return found

    def slots(self, asked: Ints, run_time_ns: int | None) -> Iterator[int]:
        """The times at which as much as this, by column, is free in all, for so long: the earliest first."""
        enough = [bool((total >= asked).all()) for total in self._totals]
        for number, time_ns in enumerate(list(self._times_ns)):
            if enough[number]:
                _, last = self._steps(time_ns, run_time_ns)
                if all(enough[number:last]):
                    yield time_ns

    def take(self, start_ns: int, run_time_ns: int | None, amounts: Ints) -> None:
        """Room that is used from a time on, for so long."""
        if run_time_ns is not None:
            self._split(start_ns + run_time_ns)
        first, last = self._steps(start_ns, run_time_ns)
        for number in range(first, last):
            self._free[number] = self._free[number] - amounts
            self._totals[number] = self._free[number].sum(axis=1)

    def _steps(self, start_ns: int, run_time_ns: int | None) -> tuple[int, int]:
        first = max(0, bisect_right(self._times_ns, start_ns) - 1)
        last = len(self._times_ns) if run_time_ns is None else bisect_left(self._times_ns, start_ns + run_time_ns)
        return first, max(last, first + 1)

    def _split(self, time_ns: int) -> None:
        number = bisect_left(self._times_ns, time_ns)
        if time_ns < ENDLESS and (number == len(self._times_ns) or self._times_ns[number] != time_ns):
            self._times_ns.insert(number, time_ns)
            self._free.insert(number, self._free[number - 1])
            self._totals.insert(number, self._totals[number - 1])
