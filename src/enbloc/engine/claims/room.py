"""Whether a node is still good for what is claimed on it, and how a gang takes the room that it claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from enbloc.engine.placement.attempt import Placer
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import WAITS, GangState, Task

PLACEHOLDER = "claim/"
"""The UID prefix of placeholders."""


def passes_filters(state: State, task: Task, node: str) -> bool:
    """Whether a node exists and passes every stateless filter of the task."""
    row = state.nodes.rows.get(node)
    return row is not None and bool(state.candidates(task.cls).passing()[row])


def still_fits(state: State, task: Task, node: str) -> bool:
    """Whether a node passes the task's filters and is not overdrawn: for a task whose room is taken there."""
    nodes = state.nodes
    if not passes_filters(state, task, node):
        return False
    row = nodes.rows[node]
    return not any(nodes.free[column, row] < 0 for column, _ in task.cls.request)


def fits_now(state: State, task: Task, row: int) -> bool:
    """Whether a pending task fits on a row as things are."""
    if state.candidates(task.cls).keys()[row] < 0:
        return False
    return not state.stateful.applies(task) or all(passes[row] for _, passes in state.stateful.masks(task))


def take_reserved(placer: Placer, transaction: Transaction, gang: GangState, places: Mapping[str, str]) -> None:
    """Places the tasks for which nodes are reserved on those nodes, as far as they fit by now (R7)."""
    state = placer.state
    for task in sorted((gang.tasks[uid] for uid in places if uid in gang.tasks), key=attrgetter("order")):
        row = state.nodes.rows.get(places[task.uid])
        if row is None or task.status not in WAITS or not placer.queue_room(task):
            continue
        if fits_now(state, task, row):
            transaction.place([task], [row])


def replace_placeholders(
    placer: Placer, transaction: Transaction, needed: Sequence[Task], placeholders: Sequence[Task]
) -> list[Task] | None:
    """Tasks take the places of placeholders of their role; returns those placeholders. `None`: a pod differs from its
    template and does not fit in the place (D5)."""
    state = placer.state
    free = list(placeholders)
    taken: list[Task] = []
    for task in needed:
        placeholder = next((one for one in free if one.role == task.role), None)
        if placeholder is None:
            continue
        row = state.nodes.rows[placeholder.node]
        transaction.remove(placeholder, row)
        if not fits_now(state, task, row):
            return None
        transaction.place([task], [row])
        free.remove(placeholder)
        taken.append(placeholder)
    return taken
