"""All changes of a decision, undone or committed as one (architecture, 11).

Placing goes straight into the state's arrays and counts; the log remembers what was placed, so that going back is
giving it all back in reverse. Nothing is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from enbloc.engine.state import State
from enbloc.engine.tasks import Stand, Task


class Transaction:
    def __init__(self, state: State) -> None:
        self._state = state
        self._log: list[tuple[Sequence[Task], Sequence[int], int]] = []
        """Tasks, their rows, and 1 if they were placed or -1 if they made room."""

    def place(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Puts each task on its row; all are of one gang and one class."""
        self._put(tasks, rows)
        self._log.append((tasks, rows, 1))

    def make_room(self, task: Task, row: int) -> None:
        """Takes a placed task off its row, for another one."""
        self._take_off([task], [row])
        self._log.append(([task], [row], -1))

    def rollback(self) -> None:
        """As if nothing had been."""
        for tasks, rows, by in reversed(self._log):
            if by > 0:
                self._take_off(tasks, rows)
            else:
                self._put(tasks, rows)
        self._log = []

    @property
    def placed(self) -> list[Task]:
        return [task for tasks, _, by in self._log if by > 0 for task in tasks]

    def _put(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        self._take(tasks, rows, 1)
        names = self._state.nodes.names
        for task, row in zip(tasks, rows, strict=True):
            task.stand = Stand.PLACED
            task.node = names[row]
        self._state.moving.add_all(tasks, rows)

    def _take_off(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        self._take(tasks, rows, -1)
        for task, row in zip(reversed(tasks), reversed(rows), strict=True):
            self._state.moving.remove(task, row)
            task.stand = Stand.PENDING
            task.node = ""

    def _take(self, tasks: Sequence[Task], rows: Sequence[int], by: int) -> None:
        """Room, the queue's use and the gang's counts, for all tasks at once."""
        state = self._state
        request, gang = tasks[0].cls.request, tasks[0].gang
        if len(rows) == 1:
            state.nodes.take_one(rows[0], request, by)
        else:
            counts: dict[int, int] = {}
            for row in rows:
                counts[row] = counts.get(row, 0) + by
            state.nodes.take(np.fromiter(counts, np.intp), np.fromiter(counts.values(), np.int64), request)
        state.queues.use(state.queue_of(gang), request, by * len(tasks))
        pending, occupied = gang.pending, gang.occupied
        roles = {tasks[0].role: len(tasks)} if len(pending) == 1 else Counter(task.role for task in tasks)
        for role, count in roles.items():
            pending[role] = pending.get(role, 0) - count * by
            occupied[role] = occupied.get(role, 0) + count * by
