"""Room that evictions could free, by queue and priority: arrays, brought up to date row by row (P).

Made when it is first asked for, and from then on only rows that changed are counted anew: a plan on thousands of nodes
looks at single tasks only where it is about to evict some.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from enbloc.engine.resources import Ints
from enbloc.engine.state import State
from enbloc.engine.tasks import Stand, Task

SYSTEM_CRITICAL = 2_000_000_000
"""Priorities from here on are the system's own: never victims."""

Cell = tuple[str, int]
"""A queue, and the priority of the gangs in it."""


def may_leave(task: Task) -> bool:
    """Whether a task could be a victim of anybody (P2)."""
    gang = task.gang
    return (
        task.stand is Stand.BOUND
        and task.ours
        and not task.terms.protected
        and not gang.spec.terms.protected
        and task.namespace != "kube-system"
        and max(task.priority, gang.priority) < SYSTEM_CRITICAL
    )


class Ledger:
    """What could be freed on each row."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._cells: dict[Cell, Ints] = {}
        self._seen = -1
        self._moves = -1

    def cells(self) -> Iterable[Cell]:
        self._refresh()
        return self._cells.keys()

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What is used by these, column by row."""
        self._refresh()
        nodes = self._state.nodes
        total = np.zeros((len(nodes.free), nodes.count), np.int64)
        for cell in cells:
            found = self._cells.get(cell)
            if found is not None:
                total += found[:, : nodes.count]
        return total

    def _refresh(self) -> None:
        nodes = self._state.nodes
        if self._moves != nodes.moves:
            self._cells, self._seen, self._moves = {}, -1, nodes.moves
        if self._seen == nodes.clock:
            return
        shape = nodes.free.shape
        for cell, counts in self._cells.items():
            if counts.shape != shape:
                grown = np.zeros(shape, np.int64)
                grown[: counts.shape[0], : counts.shape[1]] = counts
                self._cells[cell] = grown
        stale = np.flatnonzero(nodes.stamp[: nodes.count] > self._seen)
        self._seen = nodes.clock
        for counts in self._cells.values():
            counts[:, stale] = 0
        for row in stale.tolist():
            for task in self._state.moving.residents(nodes.names[row]):
                if isinstance(task, Task) and may_leave(task):
                    counts = self._cell(task)
                    for column, amount in task.cls.request:
                        counts[column, row] += amount

    def _cell(self, task: Task) -> Ints:
        cell = (task.gang.spec.queue, task.gang.priority)
        found = self._cells.get(cell)
        if found is None:
            found = self._cells[cell] = np.zeros(self._state.nodes.free.shape, np.int64)
        return found
