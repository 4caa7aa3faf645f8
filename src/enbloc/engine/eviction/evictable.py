"""Room that evictions could free, by queue and priority: arrays, brought up to date row by row (P).

Made when it is first asked for, and from then on only rows that changed are counted anew: a plan on thousands of nodes
looks at single tasks only where it is about to evict some. There may be thousands of queues and priorities, so what
each of them could free is kept by row; sums over all rows are made for those that somebody asks about.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from enbloc.engine.state.state import State
from enbloc.engine.tables.nodes import Rows
from enbloc.engine.tables.resources import Ints
from enbloc.engine.tables.tasks import Task, TaskStatus

SYSTEM_CRITICAL = 2_000_000_000
"""Priorities from here on are the system's own: never victims."""

SUMS = 32
"""So many sums are kept up to date; the one that was not asked for longest goes first."""

Cell = tuple[str, int]
"""A queue, and the priority of the gangs in it."""


def may_leave(task: Task) -> bool:
    """Whether a task could be a victim of anybody (P2)."""
    gang = task.gang
    return (
        task.status is TaskStatus.BOUND
        and task.ours
        and not task.hints.protected
        and not gang.spec.hints.protected
        and task.namespace != "kube-system"
        and max(task.priority, gang.priority) < SYSTEM_CRITICAL
    )


class _Sum:
    """What some cells could free, column by row."""

    __slots__ = ("freed", "seen")

    def __init__(self, freed: Ints, seen: int) -> None:
        self.freed = freed
        self.seen = seen


class Evictable:
    """What could be freed on each row."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._rows: list[dict[Cell, dict[int, int]]] = []
        """By row: cell → column → amount."""
        self._spread: dict[Cell, int] = {}
        """On how many rows each cell is."""
        self._sums: dict[frozenset[Cell], _Sum] = {}
        self._seen = -1
        self._shape = (-1, 0, 0)

    def cells(self) -> Iterable[Cell]:
        self._refresh()
        return self._spread.keys()

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What is used by these, column by row: to be read, and only until anything changes."""
        self._refresh()
        clock, asked = self._state.nodes.clock, frozenset(cells)
        known = self._sums.pop(asked, None)
        if known is None:
            known = _Sum(self._add_up(asked), clock)
            if len(self._sums) >= SUMS:
                del self._sums[next(iter(self._sums))]
        self._sums[asked] = known
        if known.seen != clock:
            stale = self._stale(known.seen)
            known.freed[:, stale] = 0
            for row in stale.tolist():
                for cell, amounts in self._rows[row].items():
                    if cell in asked:
                        for column, amount in amounts.items():
                            known.freed[column, row] += amount
            known.seen = clock
        return known.freed

    def _add_up(self, cells: frozenset[Cell]) -> Ints:
        columns: list[int] = []
        rows: list[int] = []
        found: list[int] = []
        for row, on_row in enumerate(self._rows):
            for cell, amounts in on_row.items():
                if cell in cells:
                    columns += amounts.keys()
                    found += amounts.values()
                    rows += [row] * len(amounts)
        nodes = self._state.nodes
        total = np.zeros((len(nodes.free), nodes.count), np.int64)
        if found:
            np.add.at(total, (columns, rows), found)
        return total

    def _stale(self, seen: int) -> Rows:
        nodes = self._state.nodes
        return np.flatnonzero(nodes.stamp[: nodes.count] > seen)

    def _refresh(self) -> None:
        nodes = self._state.nodes
        shape = (nodes.moves, len(nodes.free), nodes.count)
        if self._shape != shape:
            self._sums = {}
            if self._shape[0] != nodes.moves:
                self._rows, self._spread, self._seen = [], {}, -1
                self._state.watched = True  # from now on every task that could leave is known
            self._rows += [{} for _ in range(nodes.count - len(self._rows))]
            self._shape = shape
        if self._seen != nodes.clock:
            stale = self._stale(self._seen)
            self._seen = nodes.clock
            for row in stale.tolist():
                self._count(row)

    def _count(self, row: int) -> None:
        found: dict[Cell, dict[int, int]] = {}
        for task in self._state.stateful.assigned_to(self._state.nodes.names[row]):
            if may_leave(task):
                amounts = found.setdefault((task.gang.spec.queue, task.gang.priority), {})
                for column, amount in task.cls.request:
                    amounts[column] = amounts.get(column, 0) + amount
        for cell in self._rows[row]:
            self._spread[cell] -= 1
            if not self._spread[cell]:
                del self._spread[cell]
        for cell in found:
            self._spread[cell] = self._spread.get(cell, 0) + 1
        self._rows[row] = found
