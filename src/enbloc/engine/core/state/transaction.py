"""The tentative changes of one decision, kept or rolled back together.

Placing a task allocates resources of its node, counts towards its queue and gang, and updates the stateful filters;
rolling back does the exact reverse. Nothing is copied. Committing is left to the caller: it binds, holds or reserves
what was placed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from enbloc.engine.core.state.state import State, Undone
from enbloc.engine.core.tables.resources import Ints, Request
from enbloc.engine.core.tables.tasks import WAITS, Task, TaskStatus
from enbloc.engine.decisions import PlannedDomains
from enbloc.gangs.model import GangKey


class _Step(NamedTuple):
    tasks: Sequence[Task]
    rows: Sequence[int]
    by: int
    """1: the tasks were added to their rows, -1: removed."""
    there: TaskStatus
    """Status of the tasks while they are on their rows."""
    off: TaskStatus = TaskStatus.PENDING
    """Status of the tasks while they are off."""


class Transaction(Undone):
    def __init__(self, state: State) -> None:
        self._state = state
        state.transactions.append(self)
        self._log: list[_Step] = []
        self.planned: Mapping[GangKey, Sequence[PlannedDomains]] = {}
        """Where the last attempt found room for tasks that must or should be together (T2)."""

    def place(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Assumes each task on its row; all are of one gang and one class."""
        self._apply(_Step(tasks, rows, 1, TaskStatus.ASSUMED))

    def remove(self, task: Task, row: int) -> None:
        """Removes an assumed task from its row."""
        self._apply(_Step([task], [row], -1, TaskStatus.ASSUMED))

    def lift(self, task: Task) -> None:
        """Takes a held or nominated task off its row: it is pending until it is restored."""
        self._apply(_Step([task], [self._state.nodes.rows[task.node]], -1, task.status))

    def restore(self, task: Task, row: int, status: TaskStatus) -> None:
        """Returns a lifted task to its row and its former status."""
        self._apply(_Step([task], [row], 1, status))

    def evict(self, task: Task) -> None:
        """Takes a bound or releasing task off its row, as if its pod were gone."""
        self._apply(_Step([task], [self._state.nodes.rows[task.node]], -1, task.status, TaskStatus.RELEASING))

    def unevict(self, task: Task, row: int) -> None:
        """Returns a task that this transaction evicted to its row."""
        self._apply(_Step([task], [row], 1, TaskStatus.BOUND, TaskStatus.RELEASING))

    @property
    def checkpoint(self) -> int:
        """The present position, for `rollback`."""
        return len(self._log)

    def rollback(self, checkpoint: int = 0) -> None:
        """Undoes everything since the checkpoint."""
        for step in reversed(self._log[checkpoint:]):
            self._execute(step._replace(by=-step.by))
        del self._log[checkpoint:]

    @property
    def placed(self) -> list[Task]:
        return self.placed_since(0)

    def placed_since(self, checkpoint: int) -> list[Task]:
        steps = [step for step in self._log[checkpoint:] if step.by > 0 and step.there is TaskStatus.ASSUMED]
        return [task for step in steps for task in step.tasks]

    def free_before(self, checkpoint: int) -> Ints:
        """What was free on every row at the checkpoint."""
        nodes = self._state.nodes
        free = nodes.free[:, : nodes.count].copy()
        rows_of: dict[tuple[Request, int], list[int]] = {}
        for step in self._log[checkpoint:]:
            rows_of.setdefault((step.tasks[0].cls.request, step.by), []).extend(step.rows)
        for (request, by), rows in rows_of.items():
            counts = np.bincount(rows, minlength=nodes.count) * by
            for column, amount in request:
                free[column] += counts * amount
        return free

    def _apply(self, step: _Step) -> None:
        self._log.append(step)  # first: if it raises halfway, a recount after its undoing shows it (S8)
        self._execute(step)

    def _execute(self, step: _Step) -> None:
        self._count(step)
        state, tasks, rows = self._state, step.tasks, step.rows
        if step.by > 0:
            names = state.nodes.names
            for task, row in zip(tasks, rows, strict=True):
                task.status = step.there
                task.node = names[row]
            state.stateful.add_all(tasks, rows)
        else:
            for task, row in zip(reversed(tasks), reversed(rows), strict=True):
                state.stateful.remove(task, row)
                task.status = step.off
                task.node = ""

    def _count(self, step: _Step) -> None:
        """Updates free resources, the queue's usage and the gang's counts, for all tasks at once."""
        state, tasks, rows, by = self._state, step.tasks, step.rows, step.by
        request, gang = tasks[0].cls.request, tasks[0].gang
        gang.version += 1
        if len(rows) == 1:
            state.nodes.allocate(rows[0], request, by)
        else:
            counts: dict[int, int] = {}
            for row in rows:
                counts[row] = counts.get(row, 0) + by
            state.nodes.allocate_many(np.fromiter(counts, np.intp), np.fromiter(counts.values(), np.int64), request)
        if tasks[0].ours or gang.spec.object:  # pods of other schedulers are in no queue
            state.queues.allocate(state.queue_of(gang), request, by * len(tasks))
        counted = {TaskStatus.HELD: gang.held, TaskStatus.NOMINATED: gang.pending, TaskStatus.RELEASING: {}}
        there = counted.get(step.there, gang.occupied)
        waits = gang.pending if step.off in WAITS else None
        roles = {tasks[0].role: len(tasks)} if len(gang.pending) == 1 else Counter(task.role for task in tasks)
        for role, count in roles.items():
            if waits is not None:
                waits[role] = waits.get(role, 0) - count * by
            there[role] = there.get(role, 0) + count * by
