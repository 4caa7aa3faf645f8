"""Whether a node is still good for what is claimed on it, and how a gang takes the room that it claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from enbloc.engine.core.placement.attempt import Placer
from enbloc.engine.core.placement.domain_choices import is_together
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task, TaskStatus

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


def will_fit(state: State, task: Task, node: str) -> bool:
    """Whether a node passes the task's filters and is not overdrawn once terminating pods are gone."""
    if not passes_filters(state, task, node):
        return False
    row = state.nodes.rows[node]
    lacking = {column: -int(state.nodes.free[column, row]) for column, _ in task.cls.request}
    for other in state.stateful.assigned_to(node):
        if other.status is TaskStatus.RELEASING:
            for column, amount in other.cls.request:
                if column in lacking:
                    lacking[column] -= amount
    return max(lacking.values()) <= 0


def fits_now(state: State, task: Task, row: int) -> bool:
    """Whether a pending task fits on a row as things are."""
    if state.candidates(task.cls).keys()[row] < 0:
        return False
    return not state.stateful.applies(task) or all(passes[row] for _, passes in state.stateful.masks(task))


def take_reserved(
    placer: Placer, transaction: Transaction, gang: GangState, places: Mapping[str, str], later: Sequence[Task]
) -> None:
    """Places the tasks for which nodes are reserved on those nodes, as far as they fit by now (R7); all of them or none
    if they must be together (T7). `later`: pods of later waves, which are reserved for too (D5)."""
    state, checkpoint = placer.state, transaction.checkpoint
    own = sorted(filter(None, map(gang.tasks.get, places)), key=attrgetter("order"))
    for task in (*own, *later):
        row = state.nodes.rows.get(places.get(task.uid, ""))
        if row is not None and task.status in WAITS and placer.queue_room(task) and fits_now(state, task, row):
            transaction.place([task], [row])
    is_placed = WAITS.isdisjoint(task.status for task in own)
    if places and gang.is_constrained and not (is_placed and is_together(state, gang)):
        transaction.rollback(checkpoint)


def replace_placeholders(
    placer: Placer, transaction: Transaction, needed: Sequence[Task], placeholders: Sequence[Task]
) -> list[Task] | None:
    """Tasks take the places of placeholders of their role, by node as after a restart (I5). Returns those.
    `None`: a pod differs from its template and does not fit in the place (D5)."""
    state = placer.state
    free = sorted(placeholders, key=attrgetter("node"))
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


def is_beyond_queue(state: State, gang: GangState, asked: Mapping[int, int]) -> bool:
    """Whether a gang's queue could not use what is asked for even if it used nothing else."""
    queues, queue = state.queues, state.queue_of(gang)
    for place in queue.ancestors:
        if any(asked.get(column, 0) > limit for column, limit in place.limits.items()):
            return True
    if not queues.guarantees:
        return False
    totals, kept = state.nodes.totals(), queues.guaranteed_to_others(queue)
    return any(kept[column] and amount > int(totals[column]) - int(kept[column]) for column, amount in asked.items())
