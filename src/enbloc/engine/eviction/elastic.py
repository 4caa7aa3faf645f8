"""Surplus members of elastic gangs: who could leave without harm to a minimum, and what that would free (P1).

Kept by gang, as of its version, and summed up by queue and priority: a plan looks again only at gangs that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from enbloc.engine.eviction.evictable import Cell, may_leave
from enbloc.engine.state.state import State
from enbloc.engine.tables.resources import Ints, Request
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.model import GangKey


class _Part(NamedTuple):
    """What one gang has to spare."""

    gang: GangState
    version: int
    cell: Cell
    occupied: int
    cools: bool
    """Whether it may be another matter a moment later, though nothing happened."""
    tasks: list[Task]
    places: list[tuple[int, Request]]

    def holds(self, gang: GangState) -> bool:
        """Whether it is still so."""
        return self.gang is gang and self.version == gang.version and not self.cools


class ElasticMembers:
    def __init__(self, state: State, may_go: Callable[[Task], bool], doubts: Callable[[], bool]) -> None:
        """`may_go`: whether a task may leave now; `doubts`: whether that may change by itself."""
        self._state = state
        self._may_go = may_go
        self._doubts = doubts
        self._elastic: dict[GangKey, GangState] = {}
        self._parts: dict[GangKey, _Part] = {}
        self._cells: dict[Cell, Ints] = {}
        self._shape = (0, 0)
        self._moves = -1

    def see(self, gang: GangState) -> None:
        """A gang was read, or placed."""
        if gang.total_occupied > gang.spec.minimum:
            self._elastic[gang.key] = gang

    def forget(self, gang: GangState) -> None:
        """A gang is gone."""
        self._elastic.pop(gang.key, None)
        self._take(gang.key)

    def of(self, gang: GangState) -> list[Task]:
        """Members that can leave, the last in order first."""
        part = self._parts.get(gang.key)
        if part is None or part.gang is not gang or part.cools:
            return self._find(gang)
        if part.version == gang.version:
            return part.tasks
        left = [task for task in part.tasks if task.status is TaskStatus.BOUND]
        if len(part.tasks) - len(left) == part.occupied - gang.total_occupied:  # only of these some have left
            return left
        return self._find(gang)

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What all of these queues and priorities have to spare, column by row."""
        total = np.zeros(self._shape, np.int64)
        for cell in cells:
            found = self._cells.get(cell)
            if found is not None:
                total += found
        return total

    def is_in(self, cells: Iterable[Cell]) -> bool:
        """Whether they have any, as of now: from here on `freed` tells how much."""
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
            if by_role.get(task.role, 1) > 0 and may_leave(task) and self._may_go(task):
                found.append(task)
                if task.role in by_role:
                    by_role[task.role] -= 1
        return found

    def _refresh(self) -> None:
        nodes = self._state.nodes
        shape = (len(nodes.free), nodes.count)
        if self._shape != shape or self._moves != nodes.moves:
            self._parts, self._cells = {}, {}
            self._shape, self._moves = shape, nodes.moves
        for key, gang in list(self._elastic.items()):
            known = self._parts.get(key)
            if known is not None and known.holds(gang):
                continue
            self._take(key)
            if gang.total_occupied <= gang.spec.minimum:
                del self._elastic[key]
            else:
                self._put(gang)

    def _put(self, gang: GangState) -> None:
        tasks, rows = self._find(gang), self._state.nodes.rows
        places = [(rows[task.node], task.cls.request) for task in tasks if task.node in rows]
        cell = (gang.spec.queue, gang.priority)
        cools = bool(gang.spec.hints.cooldown_ns) or any(task.hints.cooldown_ns for task in gang.tasks.values())
        self._parts[gang.key] = _Part(
            gang, gang.version, cell, gang.total_occupied, cools or self._doubts(), tasks, places
        )
        self._add(cell, places, 1)

    def _take(self, key: GangKey) -> None:
        part = self._parts.pop(key, None)
        if part is not None:
            self._add(part.cell, part.places, -1)
            if not self._cells[part.cell].any():
                del self._cells[part.cell]

    def _add(self, cell: Cell, places: Iterable[tuple[int, Request]], by: int) -> None:
        counts = self._cells.get(cell)
        if counts is None:
            counts = self._cells[cell] = np.zeros(self._shape, np.int64)
        for row, request in places:
            for column, amount in request:
                counts[column, row] += by * amount
