"""Which tasks may be evicted now, and what that would free (P2, S6).

What could be freed is kept in arrays, by queue and priority. Computed on first use; from then on only rows that changed
are recounted, so that a plan over thousands of nodes visits single tasks only where it may evict some. There may be
thousands of queues and priorities: what each of them could free is kept by row, and sums over queues and priorities are
cached for the sets that plans use.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.nodes import Rows
from enbloc.engine.core.tables.resources import Ints, Request, total
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.decisions import Decision, Evict
from enbloc.engine.events import EventKind
from enbloc.units import SECOND

SYSTEM_CRITICAL = 2_000_000_000
"""Pods of this priority or higher are system-critical: never victims."""

REFUSED_FOR_NS = 30 * SECOND
"""A refused eviction is not retried for 30 s."""

CACHED_SUMS = 32
"""At most 32 sums are cached; the least recently used is dropped."""

Cell = tuple[str, int]
"""A queue and a priority: of the gangs that share both."""

_Columns = tuple[int, ...]
"""The columns of a request."""


class Immunity(Feature):
    """Which tasks `preemptable`, `cooldown-time` and refusals of the API exempt from eviction."""

    def __init__(self, state: State, longest_cooldown_ns: int | None) -> None:
        self._state = state
        self._longest_cooldown_ns = longest_cooldown_ns
        self._now_ns = 0
        self._refused_until_ns: dict[str, int] = {}
        """UIDs of tasks whose eviction was refused → when it may be retried."""
        self._ends_ns: int | None = None
        """When the next cooldown ends."""
        self.ended = 0
        """How many times cooldowns have ended."""

    def cycle_begins(self, now_ns: int) -> None:
        self._now_ns = now_ns
        if self._ends_ns is not None and self._ends_ns <= now_ns:
            self.ended += 1
            self._ends_ns = None
        self._refused_until_ns = {uid: until for uid, until in self._refused_until_ns.items() if until > now_ns}

    def due(self) -> int | None:
        return self._ends_ns

    def refused(self, decision: Decision, uid: str) -> None:
        """The API refused an eviction: plans exclude this task for `REFUSED_FOR_NS`."""
        if uid and isinstance(decision, Evict):
            self._refused_until_ns[uid] = self._now_ns + REFUSED_FOR_NS
            self._state.unevict(uid)
            self._state.events.add(EventKind.VICTIMS_CHANGED)

    def look_again_at(self, time_ns: int) -> None:
        """Plans are tried again at that time: a task may be evicted then that may not be now."""
        self._ends_ns = time_ns if self._ends_ns is None else min(self._ends_ns, time_ns)

    def is_evictable(self, task: Task) -> bool:
        """Whether a task may be a victim at all, whatever its queue uses."""
        gang = task.gang
        return (
            task.status is TaskStatus.BOUND
            and task.ours
            and not (_is_protected(task) and not self._ends_at_share(gang))
            and task.namespace != "kube-system"
            and max(task.priority, gang.priority) < SYSTEM_CRITICAL
        )

    def may_go(self, task: Task) -> bool:
        """Whether a task is not immune, its cooldown is over, and its eviction was not refused in `REFUSED_FOR_NS`."""
        if _is_protected(task) and self._counts(task.gang):
            return False
        until_ns = self._refused_until_ns.get(task.uid, 0)
        cooldown_ns = self._cooldown_ns(task)
        if cooldown_ns:
            until_ns = max(until_ns, (task.since_ns if task.since_ns is not None else self._now_ns) + cooldown_ns)
        if until_ns <= self._now_ns:
            return True
        self.look_again_at(until_ns)
        return False

    def varies(self, gang: GangState) -> bool:
        """Whether it may change with time, or with what its queue uses, though the gang does not change."""
        hints = [gang.spec.hints, *(task.hints for task in gang.tasks.values())]
        if self._refused_until_ns or any(one.cooldown_ns for one in hints):
            return True
        return any(one.protected for one in hints) and self._ends_at_share(gang)

    def _cooldown_ns(self, task: Task) -> int:
        """How long it must have run before it may be evicted."""
        longest_ns = self._longest_cooldown_ns
        found = max(task.hints.cooldown_ns, task.gang.spec.hints.cooldown_ns)
        if not found or not self._counts(task.gang):
            return 0
        return found if longest_ns is None else min(found, longest_ns)

    def _ends_at_share(self, gang: GangState) -> bool:
        """Whether immunity counts only while the queue of a gang is within its share: it, or an ancestor, says so."""
        return any(place.facts.immune_within_share for place in self._state.queue_of(gang).ancestors)

    def _counts(self, gang: GangState) -> bool:
        if not self._ends_at_share(gang):
            return True
        queues = self._state.queues
        queues.update_deserved(self._state.foreign_room.shared())
        return not queues.above_share(self._state.queue_of(gang))


def _is_protected(task: Task) -> bool:
    """Whether it, or its gang, says `preemptable: "false"`."""
    return task.hints.protected or task.gang.spec.hints.protected


class _OnRow(NamedTuple):
    """Of the tasks of a cell on one row."""

    amounts: dict[int, int]
    """By column, what evicting all of them would free."""
    kinds: frozenset[_Columns]
    """The columns that each kind of them requests."""


class Evictable:
    """What evictions could free on each row."""

    def __init__(self, state: State, immunity: Immunity) -> None:
        self._state = state
        self._immunity = immunity
        self._rows: list[dict[Cell, _OnRow]] = []
        self._kinds: dict[Cell, dict[_Columns, int]] = {}
        """By cell: the columns that each kind of task requests, and on how many rows."""
        self._sums: dict[frozenset[Cell], tuple[int, Ints]] = {}
        """What a set of cells could free, column by row, as of a value of the nodes' version."""
        self._counted_at = -1
        """`nodes.version` as of the last recount."""
        self._shape = (-1, 0, 0)
        """Renumberings, columns and rows of the node table that the rest is valid for."""

    def cells(self) -> Iterable[Cell]:
        self._refresh()
        return self._kinds.keys()

    def kinds(self, cell: Cell) -> Iterable[_Columns]:
        """The columns that tasks of a cell request, each set once."""
        self._refresh()
        return self._kinds.get(cell, {}).keys()

    def freed(self, cells: Iterable[Cell]) -> Ints:
        """What evicting all of these would free, column by row. Read-only, and valid until the next change."""
        self._refresh()
        nodes, key = self._state.nodes, frozenset(cells)
        known = self._sums.pop(key, None)
        version, freed = known or (-1, np.zeros((len(nodes.free), nodes.count), np.int64))
        if version != nodes.version:
            self._update(freed, key, self._changed_since(version))
        if len(self._sums) >= CACHED_SUMS:
            del self._sums[next(iter(self._sums))]
        self._sums[key] = (nodes.version, freed)
        return freed

    def _update(self, freed: Ints, cells: frozenset[Cell], rows: Rows) -> None:
        freed[:, rows] = 0
        found = [
            (column, row, amount)
            for row in rows.tolist()
            for cell, on_row in self._rows[row].items()
            if cell in cells
            for column, amount in on_row.amounts.items()
        ]
        if found:
            columns, of_rows, amounts = np.array(found).T
            np.add.at(freed, (columns, of_rows), amounts)

    def _changed_since(self, version: int) -> Rows:
        nodes = self._state.nodes
        return np.flatnonzero(nodes.stamp[: nodes.count] > version)

    def _refresh(self) -> None:
        nodes = self._state.nodes
        shape = (nodes.moves, len(nodes.free), nodes.count)
        if self._shape != shape:
            self._sums = {}
            if self._shape[0] != nodes.moves:
                self._rows, self._kinds, self._counted_at = [], {}, -1
                self._state.watched = True  # from now on every change of what is evictable touches its row
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
            if self._immunity.is_evictable(task):
                requests.setdefault((task.gang.spec.queue, task.gang.priority), []).append(task.cls.request)
        for cell, on_row in self._rows[row].items():
            self._count(cell, on_row.kinds, -1)
        self._rows[row] = {
            cell: _OnRow(total(of_cell), frozenset(tuple(column for column, _ in request) for request in of_cell))
            for cell, of_cell in requests.items()
        }
        for cell, on_row in self._rows[row].items():
            self._count(cell, on_row.kinds, 1)

    def _count(self, cell: Cell, kinds: Iterable[_Columns], by: int) -> None:
        of_cell = self._kinds.setdefault(cell, {})
        for kind in kinds:
            of_cell[kind] = of_cell.get(kind, 0) + by
            if not of_cell[kind]:
                del of_cell[kind]
        if not of_cell:
            del self._kinds[cell]
