"""All changes of one decision, undone or kept as one (architecture: decisions 4 and 11).

Placing takes room, counts towards queue and gang, and is told to the predicates that look at who is where; rolling back
does the exact reverse. Nothing is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from enbloc.engine.state.state import State
from enbloc.engine.tables.resources import Ints, Request
from enbloc.engine.tables.tasks import WAITS, Task, TaskStatus


class _Step(NamedTuple):
    tasks: Sequence[Task]
    rows: Sequence[int]
    by: int
    """1: they were put there, -1: they were taken off."""
    there: TaskStatus
    """As what they stand there."""
    off: TaskStatus = TaskStatus.PENDING
    """As what they stand when they are not."""


class Transaction:
    def __init__(self, state: State) -> None:
        self._state = state
        self._log: list[_Step] = []

    def place(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Puts each task on its row; all are of one gang and one class."""
        self._do(_Step(tasks, rows, 1, TaskStatus.ASSUMED))

    def make_room(self, task: Task, row: int) -> None:
        """Takes a placed task off its row, for another one."""
        self._do(_Step([task], [row], -1, TaskStatus.ASSUMED))

    def let_go(self, task: Task) -> None:
        """Takes a task that is held, or nominated, off its row: it waits like any other."""
        self._do(_Step([task], [self._state.nodes.rows[task.node]], -1, task.status))

    def hold_again(self, task: Task, row: int, status: TaskStatus) -> None:
        """Puts a task back as what it was before it was let go."""
        self._do(_Step([task], [row], 1, status))

    def evict(self, task: Task) -> None:
        """Takes a task that runs, or is leaving, off its row, as if it had left."""
        self._do(_Step([task], [self._state.nodes.rows[task.node]], -1, task.status, TaskStatus.RELEASING))

    def spare(self, task: Task, row: int) -> None:
        """Puts a task that was evicted here back."""
        self._do(_Step([task], [row], 1, TaskStatus.BOUND, TaskStatus.RELEASING))

    @property
    def mark(self) -> int:
        """How far it has come: `rollback` goes back to it."""
        return len(self._log)

    def rollback(self, mark: int = 0) -> None:
        """As if nothing had been, since the mark."""
        for step in reversed(self._log[mark:]):
            self._carry_out(step._replace(by=-step.by))
        del self._log[mark:]

    @property
    def placed(self) -> list[Task]:
        return self.placed_since(0)

    def placed_since(self, mark: int) -> list[Task]:
        steps = [step for step in self._log[mark:] if step.by > 0 and step.there is TaskStatus.ASSUMED]
        return [task for step in steps for task in step.tasks]

    def free_before(self, mark: int) -> Ints:
        """What was free on every row when it had come that far."""
        nodes = self._state.nodes
        free = nodes.free[:, : nodes.count].copy()
        rows_of: dict[tuple[Request, int], list[int]] = {}
        for step in self._log[mark:]:
            rows_of.setdefault((step.tasks[0].cls.request, step.by), []).extend(step.rows)
        for (request, by), rows in rows_of.items():
            counts = np.bincount(rows, minlength=nodes.count) * by
            for column, amount in request:
                free[column] += counts * amount
        return free

    def _do(self, step: _Step) -> None:
        self._carry_out(step)
        self._log.append(step)

    def _carry_out(self, step: _Step) -> None:
        self._take(step)
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

    def _take(self, step: _Step) -> None:
        """Room, the queue's use and the gang's counts, for all tasks at once."""
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
        if tasks[0].ours or gang.spec.object:  # those of others are in no queue
            state.queues.allocate(state.queue_of(gang), request, by * len(tasks))
        counted = {TaskStatus.HELD: gang.held, TaskStatus.NOMINATED: gang.pending, TaskStatus.RELEASING: {}}
        there = counted.get(step.there, gang.occupied)
        waits = gang.pending if step.off in WAITS else None
        roles = {tasks[0].role: len(tasks)} if len(gang.pending) == 1 else Counter(task.role for task in tasks)
        for role, count in roles.items():
            if waits is not None:
                waits[role] = waits.get(role, 0) - count * by
            there[role] = there.get(role, 0) + count * by
