"""Where the pods of a waiting gang would fit now, and how many of them: a picture of what is missing, not a plan.

Node filters, nodes that are reserved for others, and free room count, roles in their order; affinity between the pods
themselves and topology do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np

from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import OCCUPIED, GangState, Task, pending_tasks
from enbloc.engine.core.why.diagnosis import INSUFFICIENT, KEPT, Diagnosis, lacking, rejections, shown

MOST_ROOMS: Final = 3
"""The free room of at most three nodes is named."""
MOST_NODES: Final = 200
"""At most 200 nodes of a role are named."""


Closed = Callable[[Task], Sequence[tuple[str, Bools]]]
"""Of a task: reasons, and nodes that are kept for others."""


def nothing_closed(task: Task) -> Sequence[tuple[str, Bools]]:
    return ()


def by_role(tasks: Iterable[Task], roles: Iterable[str] = ()) -> dict[str, list[Task]]:
    """The tasks of each role, and none of the other `roles`."""
    found: dict[str, list[Task]] = {role: [] for role in roles}
    for task in tasks:
        found.setdefault(task.role, []).append(task)
    return found


def partial_fit(state: State, gang: GangState, closed: Closed = nothing_closed) -> dict[str, dict[str, int]]:
    """By role: by node, how many of the pods that its minimum lacks fit there, nodes with the most room first."""
    free = state.nodes.free.copy()
    found: dict[str, dict[str, int]] = {}
    occupied = Counter(task.role for task in gang.tasks.values() if task.status in OCCUPIED)
    for role, tasks in by_role(pending_tasks(gang)).items():
        lacking = max(gang.minima.by_role.get(role, 0) - occupied[role], 0) or len(tasks)
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


def fragments(state: State, gang: GangState, why: Diagnosis, known: dict[tuple[int, int], str]) -> str:
    """What is free in total, and on the emptiest nodes, where that would be enough for a role's pods in one piece.
    Not part of a condition: less of it wakes no gang (G9). `known`: what was found for a class and a number of pods."""
    if not any(one.reason.startswith(INSUFFICIENT) for one in why.reasons) or any(
        one.reason in KEPT for one in why.reasons
    ):
        return ""
    needed, found = lacking(gang), dict[str, None]()
    for task in {task.role: task for task in reversed(pending_tasks(gang))}.values():
        key = task.cls.id, needed.get(task.role) or needed.get("", 0)
        if key not in known:
            known[key] = _fragments_of(state, task, key[1])
        found[known[key]] = None
    return " ".join(filter(None, found))


def _fragments_of(state: State, task: Task, count: int) -> str:
    passes = state.nodes.alive[: state.nodes.count].copy()
    for reason, rejected in rejections(state, task):
        if not reason.startswith(INSUFFICIENT):
            passes &= ~rejected
    for column, amount in task.cls.request:  # of nodes that are too small nothing can be put together
        passes &= state.nodes.allocatable[column, : state.nodes.count] >= amount
    free = np.maximum(state.nodes.free[:, np.flatnonzero(passes)], 0)
    if not count or any(free[column].sum() < count * amount for column, amount in task.cls.request):
        return ""
    parts = []
    for column, amount in task.cls.request:
        if int((free[column] // amount).sum()) < count:
            name, room = state.resources.names[column], np.sort(free[column])[::-1].tolist()
            most = " and ".join(", ".join(shown(name, one) for one in room[:MOST_ROOMS]).rsplit(", ", 1))
            nodes = f"the emptiest node has {most}" if len(room) == 1 else f"the emptiest nodes have {most}"
            total, one = shown(name, sum(room)), shown(name, amount)
            parts.append(f"Free {name} is in pieces: {total} in total, {nodes}, one pod needs {one}.")
    return " ".join(parts)
