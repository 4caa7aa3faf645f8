"""Surplus members of elastic gangs: tasks that can be evicted without violating a minimum, and what that frees.

Any member of a gang above its minima may be spared, the last in order first; how many of them, `can_spare` says anew
after each eviction. Cached by gang, as of its version, and summed by queue and priority: a plan recomputes only gangs
that changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Ints, Request
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.features.evict.evictable import Cell, Immunity
from enbloc.gangs.model import GangKey


def can_spare(task: Task) -> bool:
    """Whether the minima of its gang are still met without a task."""
    gang, spec = task.gang, task.gang.spec
    if spec.evict_as_unit or gang.total_occupied <= gang.minima.total:
        return False
    return gang.occupied.get(task.role, 0) > gang.minima.by_role.get(task.role, 0)


class _Surplus(NamedTuple):
    """The members of one gang that could be spared, as of its version."""

    gang: GangState
    version: int
    cell: Cell
    expires: bool
    """Whether it may change though the gang does not: a cooldown ends, or its queue uses more."""
    places: list[tuple[int, Request]]
    positions: dict[str, int]
    """By uid: in reverse order of O2."""

    def is_valid(self, gang: GangState) -> bool:
        return self.gang is gang and self.version == gang.version and not self.expires


class ElasticMembers:
    def __init__(self, state: State, immunity: Immunity) -> None:
        self._state = state
        self._immunity = immunity
        self._elastic: dict[GangKey, GangState] = {}
        self._surplus: dict[GangKey, _Surplus] = {}
        self._cells: dict[Cell, Ints] = {}
        self._shape = (0, 0)
        self._moves = -1

    def update(self, gang: GangState) -> None:
        """A gang changed, or was placed."""
        if gang.total_occupied > gang.minima.total:
            self._elastic[gang.key] = gang

    def remove(self, gang: GangState) -> None:
        """A gang was deleted."""
        self._elastic.pop(gang.key, None)
        self._drop(gang.key)

    def position(self, task: Task) -> int:
        """How many surplus members of its gang come before it in eviction order (O2 in reverse)."""
        known = self._surplus.get(task.gang.key)
        return known.positions.get(task.uid, 0) if known is not None else 0

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What the surplus members of these queues and priorities would free at most, column by row."""
        total = np.zeros(self._shape, np.int64)
        for cell in cells:
            found = self._cells.get(cell)
            if found is not None:
                total += found
        return total

    def cells(self) -> Collection[Cell]:
        """The queues and priorities that have surplus members. Brings `freed` up to date."""
        self._refresh()
        return self._cells.keys()

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
            if gang.total_occupied <= gang.minima.total:
                del self._elastic[key]
            else:
                self._put(gang)

    def _put(self, gang: GangState) -> None:
        rows, immunity = self._state.nodes.rows, self._immunity
        spared = [task for task in gang.tasks.values() if immunity.is_evictable(task) and can_spare(task)]
        spared.sort(key=attrgetter("order"), reverse=True)
        positions = {task.uid: position for position, task in enumerate(spared)}
        places = [(rows[task.node], task.cls.request) for task in spared if task.node in rows and immunity.may_go(task)]
        cell = (gang.spec.queue, gang.priority)
        self._surplus[gang.key] = _Surplus(gang, gang.version, cell, immunity.varies(gang), places, positions)
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
