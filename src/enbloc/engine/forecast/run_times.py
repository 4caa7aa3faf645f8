"""When room will be there, from what is known of run times (R8).

A task of which nobody knows how long it runs is endless. One that has overrun is expected to end now: it delays others
and is not killed. What is told here is a forecast, and every change makes it anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from enbloc.engine.claims.reservations import ENDLESS, Reservations
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus


def end_of(task: Task, now: int) -> int:
    """When a task that has a node is expected to have left it."""
    if task.status is TaskStatus.RELEASING:
        return now
    run_time = task.run_time
    if run_time is None:
        return ENDLESS
    return max(now, (task.since if task.since is not None else now) + run_time)


def room_for(state: State, row: int, amounts: Mapping[int, int], now: int) -> int:
    """When a row has so much room, if nobody new comes."""
    free = {column: int(state.nodes.free[column, row]) for column in amounts}
    if all(free[column] >= amount for column, amount in amounts.items()):
        return now
    for end, task in sorted(_ends(state, row, now), key=lambda pair: (pair[0], pair[1].uid)):
        if end == ENDLESS:
            break
        for column, amount in task.cls.request:
            if column in free:
                free[column] += amount
        if all(free[column] >= amount for column, amount in amounts.items()):
            return end
    return ENDLESS


def _ends(state: State, row: int, now: int) -> Iterable[tuple[int, Task]]:
    for task in state.stateful.assigned_to(state.nodes.names[row]):
        yield end_of(task, now), task


def start_of(state: State, reservations: Reservations, gang: GangState, now: int) -> int:
    """When a gang for which nodes are reserved could start: when the last of them has the room."""
    wanted: dict[str, dict[int, int]] = {}
    for uid, node in reservations.of(gang).items():
        amounts = wanted.setdefault(node, {})
        for column, amount in gang.tasks[uid].cls.request:
            amounts[column] = amounts.get(column, 0) + amount
    rows = state.nodes.rows
    return max((room_for(state, rows[node], amounts, now) for node, amounts in wanted.items()), default=now)
