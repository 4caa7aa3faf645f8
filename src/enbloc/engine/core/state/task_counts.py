"""How the status of a task may change, and what each task adds to its node, its queue, its gang and its budgets.

Which status may follow which by our own decisions and their confirmation is one table. What the API says of a pod is a
fact and may be any status (`State.put_pod`); a transaction changes statuses tentatively and undoes it. All else goes
through `transition`: a change that is not in the table is an error in the engine, and is raised with the story of the
gang, the last things that happened to it.

What a task adds is counted at once, never recounted: `add` and `remove` are inverse. Tasks on nodes that are not known
(yet) wait here until `settle` counts them there. Which tasks there are, and which status each has, is left to `State`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.state.budgets import Budgets
from enbloc.engine.core.tables.foreign_room import ForeignRoom
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.queues import QueueTree
from enbloc.engine.core.tables.resources import total
from enbloc.engine.core.tables.tasks import HOLDS_ROOM, OCCUPIED, WAITS, Task, TaskStatus
from enbloc.engine.events import ClusterEvents, EventKind

ALLOWED: Final[Mapping[TaskStatus, frozenset[TaskStatus]]] = {
    TaskStatus.PENDING: frozenset({TaskStatus.HELD, TaskStatus.NOMINATED, TaskStatus.TIMED_OUT}),
    TaskStatus.ASSUMED: frozenset({TaskStatus.BOUND, TaskStatus.HELD, TaskStatus.PENDING}),
    TaskStatus.HELD: frozenset({TaskStatus.ASSUMED, TaskStatus.PENDING}),
    TaskStatus.NOMINATED: frozenset({TaskStatus.PENDING}),
    TaskStatus.TIMED_OUT: frozenset({TaskStatus.PENDING}),
    TaskStatus.BOUND: frozenset({TaskStatus.RELEASING}),
    TaskStatus.RELEASING: frozenset({TaskStatus.BOUND}),
}
"""Status → the statuses that may follow. From GATED, SUCCEEDED and FAILED only the API leads on."""


class ImpossibleTransition(AssertionError):
    """A task was to change to a status that cannot follow its own."""


def transition(task: Task, status: TaskStatus, node: str) -> None:
    """The task has this status on this node from now on."""
    if status not in ALLOWED.get(task.status, ()):
        raise ImpossibleTransition(f"{task} cannot become {status.name}; {task.gang.story}")
    task.gang.note(task.name, task.status.name, "→", status.name, node)
    task.status, task.node = status, node


class TaskCounts:
    def __init__(
        self,
        nodes: NodeTable,
        queues: QueueTree,
        stateful: StatefulFilters[Task],
        budgets: Budgets,
        foreign_room: ForeignRoom,
        events: ClusterEvents,
    ) -> None:
        self._nodes = nodes
        self._queues = queues
        self._stateful = stateful
        self._budgets = budgets
        self._foreign_room = foreign_room
        self._events = events
        self.releasing: dict[str, Task] = {}
        """Tasks that are terminating and still occupy their node."""
        self._on_unknown_nodes: dict[str, dict[str, Task]] = {}
        """Node → tasks on it, for nodes that are not known (yet)."""

    def add(self, task: Task) -> None:
        if task.status in HOLDS_ROOM and task.node:
            row = self._nodes.rows.get(task.node)
            if row is None:
                self._on_unknown_nodes.setdefault(task.node, {})[task.uid] = task
            else:
                self._nodes.allocate(row, task.cls.request)
                self._stateful.add(task, row)
            self._events.add(EventKind.POD_PLACED)
        if task.status is TaskStatus.RELEASING and task.node:
            self.releasing[task.uid] = task
        self._budgets.update_pod(task)
        self.count_queue(task, 1)
        self.count_gang(task, 1)

    def remove(self, task: Task) -> None:
        if task.status in HOLDS_ROOM and task.node:
            row = self._nodes.rows.get(task.node)
            orphans = self._on_unknown_nodes.get(task.node)
            if orphans is not None and task.uid in orphans:
                del orphans[task.uid]
                if not orphans:
                    del self._on_unknown_nodes[task.node]
            elif row is not None:
                self._nodes.release(row, task.cls.request)
                self._stateful.remove(task, row)
                self._events.add_room_freed(task.node)
            self._events.add(EventKind.ROOM_FREED)
            self._events.add(EventKind.QUEUE_USES_LESS)
        self.releasing.pop(task.uid, None)
        self._budgets.remove_pod(task)
        self.count_queue(task, -1)
        self.count_gang(task, -1)

    def count_queue(self, task: Task, by: int) -> None:
        holds = task.status in HOLDS_ROOM and bool(task.node)
        if not task.ours and not task.gang.spec.object:  # a pod of another scheduler is in no queue
            if holds:
                self._foreign_room.count(task.node, task.cls.request, by)
            return
        if not holds and task.status is not TaskStatus.PENDING:
            return
        queue = self._queues.get(task.gang.spec.queue)
        self._queues.add_demand(queue, task.cls.request, by)
        if holds:
            self._queues.allocate(queue, task.cls.request, by)

    def count_gang(self, task: Task, by: int) -> None:
        gang = task.gang
        gang.version += 1
        if task.status in WAITS:
            gang.pending[task.role] = gang.pending.get(task.role, 0) + by
        elif task.status in OCCUPIED:
            gang.occupied[task.role] = gang.occupied.get(task.role, 0) + by
        elif task.status is TaskStatus.HELD:
            gang.held[task.role] = gang.held.get(task.role, 0) + by

    # ---- tasks on nodes that are not known

    def node_gone(self, name: str, tasks: Mapping[str, Task]) -> None:
        """A node is removed, these tasks hold room on it: called before its row goes."""
        row = self._nodes.rows.get(name)
        for task in tasks.values():
            if row is not None:
                self._stateful.remove(task, row)
        if tasks:
            self._on_unknown_nodes[name] = dict(tasks)

    def settle(self) -> None:
        """Before a cycle: new nodes get their rows, and tasks on them are counted there."""
        if not self._nodes.settle(self._used_on_unknown_node):
            return
        for name in [name for name in self._on_unknown_nodes if name in self._nodes.rows]:
            for task in self._on_unknown_nodes.pop(name).values():
                self._stateful.add(task, self._nodes.rows[name])

    def _used_on_unknown_node(self, name: str) -> Mapping[int, int]:
        return total(task.cls.request for task in self._on_unknown_nodes.get(name, {}).values())
