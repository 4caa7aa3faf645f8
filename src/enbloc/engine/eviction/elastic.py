"""Surplus members of elastic gangs: tasks that can be evicted without violating a minimum, and what that frees (P1).

Cached by gang, as of its version, and summed by queue and priority: a plan recomputes only gangs that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from enbloc.engine.eviction.evictable import Cell, is_evictable
from enbloc.engine.state.state import State
from enbloc.engine.tables.resources import Ints, Request
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.model import GangKey


class _Surplus(NamedTuple):
    """The surplus of one gang, as of its version."""

    gang: GangState
    version: int
    cell: Cell
    occupied: int
    expires: bool
    """Whether it may change with time alone: a cooldown ends."""
    tasks: list[Task]
    places: list[tuple[int, Request]]

    def is_valid(self, gang: GangState) -> bool:
        return self.gang is gang and self.version == gang.version and not self.expires


class ElasticMembers:
    def __init__(self, state: State, may_evict: Callable[[Task], bool], may_change: Callable[[], bool]) -> None:
        """`may_evict`: whether a task may be evicted now; `may_change`: whether that may change with time alone."""
        self._state = state
        self._may_evict = may_evict
        self._may_change = may_change
        self._elastic: dict[GangKey, GangState] = {}
        self._surplus: dict[GangKey, _Surplus] = {}
        self._cells: dict[Cell, Ints] = {}
        self._shape = (0, 0)
        self._moves = -1

    def update(self, gang: GangState) -> None:
        """A gang changed, or was placed."""
        if gang.total_occupied > gang.spec.minimum:
            self._elastic[gang.key] = gang

    def remove(self, gang: GangState) -> None:
        """A gang was deleted."""
        self._elastic.pop(gang.key, None)
        self._drop(gang.key)

    def of(self, gang: GangState) -> list[Task]:
        """The surplus members, in reverse order of O2."""
        known = self._surplus.get(gang.key)
        if known is None or known.gang is not gang or known.expires:
            return self._find(gang)
        if known.version == gang.version:
            return known.tasks
        left = [task for task in known.tasks if task.status is TaskStatus.BOUND]
        if len(known.tasks) - len(left) == known.occupied - gang.total_occupied:  # only surplus members left
            return left
        return self._find(gang)

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What the surplus members of these queues and priorities would free, column by row."""
        total = np.zeros(self._shape, np.int64)
        for cell in cells:
            found = self._cells.get(cell)
            if found is not None:
                total += found
        return total

    def has_surplus(self, cells: Iterable[Cell]) -> bool:
        """Whether these queues and priorities have surplus members. Brings `freed` up to date."""
        self._refresh()
        return any(cell in self._cells and bool(self._cells[cell].any()) for cell in cells)

    def _find(self, gang: GangState) -> list[Task]:
        spare = gang.total_occupied - gang.spec.minimum
        if spare <= 0 or gang.spec.evict_as_unit:
            return []
        by_role = {role: gang.occupied.get(role, 0) - minimum for role, minimum in gang.spec.minima.items()}
        found: list[Task] = []
        for task in sorted(gang.tasks.values(), key=attrgetter("order"), reverse=True):
            if len(found) == spare:
                break
            if by_role.get(task.role, 1) > 0 and is_evictable(task) and self._may_evict(task):
                found.append(task)
                if task.role in by_role:
                    by_role[task.role] -= 1
        return found

    def _refresh(self) -> None:
        nodes = self._state.nodes
        shape = (len(nodes.free), nodes.count)
        if self._shape != shape or self._moves != nodes.moves:
            self._surplus, self._cells = {}, {}
            self._shape, self._moves = shape, nodes.moves
        for key, gang in list(self._elastic.items()):
            known = self._surplus.get(key)
            if known is not None and known.is_valid(gang):
                continue
            self._drop(key)
            if gang.total_occupied <= gang.spec.minimum:
                del self._elastic[key]
            else:
                self._put(gang)

    def _put(self, gang: GangState) -> None:
        tasks, rows = self._find(gang), self._state.nodes.rows
        places = [(rows[task.node], task.cls.request) for task in tasks if task.node in rows]
        cell = (gang.spec.queue, gang.priority)
        has_cooldown = bool(gang.spec.hints.cooldown_ns) or any(task.hints.cooldown_ns for task in gang.tasks.values())
        self._surplus[gang.key] = _Surplus(
            gang, gang.version, cell, gang.total_occupied, has_cooldown or self._may_change(), tasks, places
        )
        self._add(cell, places, 1)

    def _drop(self, key: GangKey) -> None:
        known = self._surplus.pop(key, None)
        if known is not None:
            self._add(known.cell, known.places, -1)
            if not self._cells[known.cell].any():
                del self._cells[known.cell]

    def _add(self, cell: Cell, places: Iterable[tuple[int, Request]], sign: int) -> None:
        """Adds requests by row to what a cell can free (1), or subtracts them (-1)."""
        counts = self._cells.get(cell)
        if counts is None:
            counts = self._cells[cell] = np.zeros(self._shape, np.int64)
        for row, request in places:
            for column, amount in request:
                counts[column, row] += sign * amount
