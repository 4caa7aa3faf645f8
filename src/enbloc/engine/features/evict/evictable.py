"""Resources that evictions could free, by queue and priority: arrays, updated row by row (P).

Computed on first use; from then on only rows that changed are recounted, so that a plan over thousands of nodes visits
single tasks only where it may evict some. There may be thousands of queues and priorities: what each of them could free
is kept by row, and sums over queues and priorities are cached for the sets that plans use.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.nodes import Rows
from enbloc.engine.core.tables.resources import Ints, Request, total
from enbloc.engine.core.tables.tasks import Task, TaskStatus
from enbloc.engine.features.evict.immunity import Immunity

SYSTEM_CRITICAL = 2_000_000_000
"""Pods of this priority or higher are system-critical: never victims."""

CACHED_SUMS = 32
"""At most 32 sums are cached; the least recently used is dropped."""

Cell = tuple[str, int]
"""A queue and a priority: of the gangs that share both."""

_Columns = tuple[int, ...]
"""The columns of a request."""


def is_evictable(task: Task, immunity: Immunity) -> bool:
    """Whether a task may be a victim at all (P2)."""
    gang = task.gang
    return (
        task.status is TaskStatus.BOUND
        and task.ours
        and not immunity.always_exempts(task)
        and task.namespace != "kube-system"
        and max(task.priority, gang.priority) < SYSTEM_CRITICAL
    )


class _Sum:
    """What a set of cells could free, column by row, as of a value of the nodes' version."""

    __slots__ = ("freed", "version")

    def __init__(self, freed: Ints, version: int) -> None:
        self.freed = freed
        self.version = version


class Evictable:
    """What evictions could free on each row."""

    def __init__(self, state: State, immunity: Immunity) -> None:
        self._state = state
        self._immunity = immunity
        self._rows: list[dict[Cell, dict[int, int]]] = []
        """By row: cell → column → amount."""
        self._row_counts: dict[Cell, int] = {}
        """By cell: on how many rows it has tasks."""
        self._row_kinds: list[dict[Cell, frozenset[_Columns]]] = []
        """By row and cell: the columns that each kind of task requests."""
        self._kinds: dict[Cell, dict[_Columns, int]] = {}
        """By cell: the same of all rows, and on how many of them."""
        self._sums: dict[frozenset[Cell], _Sum] = {}
        self._counted_at = -1
        """`nodes.version` as of the last recount."""
        self._shape = (-1, 0, 0)
        """Renumberings, columns and rows of the node table that the rest is valid for."""

    def cells(self) -> Iterable[Cell]:
        self._refresh()
        return self._row_counts.keys()

    def kinds(self, cell: Cell) -> Iterable[_Columns]:
        """The columns that tasks of a cell request, each set once."""
        self._refresh()
        return self._kinds.get(cell, {}).keys()

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What evicting all of these would free, column by row. Read-only, and valid until the next change."""
        self._refresh()
        version, key = self._state.nodes.version, frozenset(cells)
        known = self._sums.pop(key, None)
        if known is None:
            known = _Sum(self._sum(key), version)
            if len(self._sums) >= CACHED_SUMS:
                del self._sums[next(iter(self._sums))]
        self._sums[key] = known
        if known.version != version:
            stale = self._changed_since(known.version)
            known.freed[:, stale] = 0
            for row in stale.tolist():
                for cell, amounts in self._rows[row].items():
                    if cell in key:
                        for column, amount in amounts.items():
                            known.freed[column, row] += amount
            known.version = version
        return known.freed

    def _sum(self, cells: frozenset[Cell]) -> Ints:
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
        freed = np.zeros((len(nodes.free), nodes.count), np.int64)
        if found:
            np.add.at(freed, (columns, rows), found)
        return freed

    def _changed_since(self, version: int) -> Rows:
        nodes = self._state.nodes
        return np.flatnonzero(nodes.stamp[: nodes.count] > version)

    def _refresh(self) -> None:
        nodes = self._state.nodes
        shape = (nodes.moves, len(nodes.free), nodes.count)
        if self._shape != shape:
            self._sums = {}
            if self._shape[0] != nodes.moves:
                self._rows, self._row_counts, self._counted_at = [], {}, -1
                self._row_kinds, self._kinds = [], {}
                self._state.watched = True  # from now on every change of what is evictable touches its row
            self._row_kinds += [{} for _ in range(nodes.count - len(self._rows))]
            self._rows += [{} for _ in range(nodes.count - len(self._rows))]
            self._shape = shape
        if self._counted_at != nodes.version:
            stale = self._changed_since(self._counted_at)
            self._counted_at = nodes.version
            for row in stale.tolist():
                self._recount(row)

    def _recount(self, row: int) -> None:
        requests: dict[Cell, list[Request]] = {}
        for task in self._state.stateful.assigned_to(self._state.nodes.names[row]):
            if is_evictable(task, self._immunity):
                requests.setdefault((task.gang.spec.queue, task.gang.priority), []).append(task.cls.request)
        found = {cell: total(of_cell) for cell, of_cell in requests.items()}
        for cell in self._rows[row]:
            self._row_counts[cell] -= 1
            if not self._row_counts[cell]:
                del self._row_counts[cell]
        for cell in found:
            self._row_counts[cell] = self._row_counts.get(cell, 0) + 1
        self._rows[row] = found
        for cell, kinds in self._row_kinds[row].items():
            _count(self._kinds, cell, kinds, -1)
        self._row_kinds[row] = {
            cell: frozenset(tuple(column for column, _ in request) for request in of_cell)
            for cell, of_cell in requests.items()
        }
        for cell, kinds in self._row_kinds[row].items():
            _count(self._kinds, cell, kinds, 1)


def _count(counts: dict[Cell, dict[_Columns, int]], cell: Cell, kinds: Iterable[_Columns], by: int) -> None:
    of_cell = counts.setdefault(cell, {})
    for kind in kinds:
        of_cell[kind] = of_cell.get(kind, 0) + by
        if not of_cell[kind]:
            del of_cell[kind]
    if not of_cell:
        del counts[cell]
