"""How the status of a task may change by our own decisions and their confirmation: one table, one function.

What the API says of a pod is a fact and may be any status (`State.put_pod`). A transaction changes statuses tentatively
and undoes it. All else goes through `transition`; a change that is not in the table is an error in the engine, and is
raised with the story of the gang: the last things that happened to it. Counting is left to `state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from enbloc.engine.core.tables.tasks import Task, TaskStatus

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
