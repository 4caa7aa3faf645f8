"""All changes of a decision, undone or committed as one (architecture, 11).

Placing goes straight into the state's arrays and counts; the log remembers what was placed, so that going back is
giving it all back in reverse. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from enbloc.engine.state import State
from enbloc.engine.tasks import Stand, Task


class Transaction:
    def __init__(self, state: State) -> None:
        self._state = state
        self._log: list[tuple[Sequence[Task], Sequence[int]]] = []

    def place(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Puts each task on its row; all are of one gang and one class."""
        self._apply(tasks, rows, 1)
        names = self._state.nodes.names
        for task, row in zip(tasks, rows, strict=True):
            task.stand = Stand.PLACED
            task.node = names[row]
        self._log.append((tasks, rows))

    def rollback(self) -> None:
        """As if nothing had been."""
        for tasks, rows in reversed(self._log):
            self._apply(tasks, rows, -1)
            for task in tasks:
                task.stand = Stand.PENDING
                task.node = ""
        self._log = []

    @property
    def placed(self) -> list[Task]:
        return [task for tasks, _ in self._log for task in tasks]

    def _apply(self, tasks: Sequence[Task], rows: Sequence[int], by: int) -> None:
        state = self._state
        request = tasks[0].cls.request
        gang = tasks[0].gang
        if len(rows) == 1:
            state.nodes.take_one(rows[0], request, by)
        else:
            counts: dict[int, int] = {}
            for row in rows:
                counts[row] = counts.get(row, 0) + by
            state.nodes.take(np.fromiter(counts, np.intp), np.fromiter(counts.values(), np.int64), request)
        state.queues.use(state.queue_of(gang), request, by * len(tasks))
        for task in tasks:
            gang.pending[task.role] -= by
            gang.occupied[task.role] = gang.occupied.get(task.role, 0) + by
        pairs = zip(tasks, rows, strict=True)
        if by > 0:
            for task, row in pairs:
                state.moving.add(task, row)
                task.moving = True
        else:
            for task, row in reversed(list(pairs)):
                state.moving.remove(task, row)
                task.moving = False
