"""Where the pods of a waiting gang would fit now, and how many of them: a picture of what is missing, not a plan.

Node filters, nodes that are reserved for others, and free room count, roles in their order; affinity between the pods
themselves and topology do not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from enbloc.engine.diagnosis.diagnosis import rejections
from enbloc.engine.state.state import State
from enbloc.engine.tables.resources import Bools
from enbloc.engine.tables.tasks import OCCUPIED, GangState, Task, pending_tasks

MOST_NODES: Final = 200
"""At most 200 nodes of a role are named."""


Closed = Callable[[Task], Sequence[tuple[str, Bools]]]
"""Of a task: reasons, and nodes that are kept for others."""


def nothing_closed(task: Task) -> Sequence[tuple[str, Bools]]:
    return ()


def partial_fit(state: State, gang: GangState, closed: Closed = nothing_closed) -> dict[str, dict[str, int]]:
    """By role: by node, how many of the pods that its minimum lacks fit there, nodes with the most room first."""
    free = state.nodes.free.copy()
    found: dict[str, dict[str, int]] = {}
    by_role: dict[str, list[Task]] = {}
    for task in pending_tasks(gang):
        by_role.setdefault(task.role, []).append(task)
    for role, tasks in by_role.items():
        occupied = sum(task.status in OCCUPIED for task in gang.tasks.values() if task.role == role)
        lacking = max(gang.spec.minima.get(role, 0) - occupied, 0) or len(tasks)
        passes = state.nodes.alive[: state.nodes.count].copy()
        for _, rejected in rejections(state, tasks[0], closed(tasks[0])):
            passes &= ~rejected
        placed = _place(state, tasks[0], min(lacking, len(tasks)), free, np.flatnonzero(passes))
        if placed:
            found[role or "pods"] = placed
    return found


def _place(
    state: State,
    task: Task,
    count: int,
    free: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> dict[str, int]:
    nodes = state.nodes
    fits = np.full(len(rows), count, np.int64)
    for column, amount in task.cls.request:
        fits = np.minimum(fits, free[column, rows] // amount)
    placed: dict[str, int] = {}
    for index in np.argsort(-fits, kind="stable")[:MOST_NODES].tolist():
        taken = min(int(fits[index]), count)
        if taken <= 0:
            break
        row = int(rows[index])
        placed[nodes.names[row]] = taken
        count -= taken
        for column, amount in task.cls.request:
            free[column, row] -= amount * taken
    return placed
