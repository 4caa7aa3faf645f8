"""Forecasts when resources become free, from known run times (R8).

A task with unknown run time is endless. One that has overrun is expected to end now: it delays others and is not
killed. Nothing is cached: callers repeat a forecast when tasks change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from enbloc.engine.core.claims.closed_nodes import ClosedNodes
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus

ENDLESS: Final = 2**63 - 1
"""The end of a task of unknown run time, and of a forecast that waits for one."""


def end_of(task: Task, now_ns: int) -> int:
    """When a task on a node is expected to release it."""
    if task.status is TaskStatus.RELEASING:
        return now_ns
    run_time_ns = task.run_time_ns
    if run_time_ns is None:
        return ENDLESS
    return max(now_ns, (task.since_ns if task.since_ns is not None else now_ns) + run_time_ns)


def room_for(state: State, row: int, amounts: Mapping[int, int], now_ns: int) -> int:
    """When a row has `amounts` free, if nothing else is placed on it."""
    free = {column: int(state.nodes.free[column, row]) for column in amounts}
    if all(free[column] >= amount for column, amount in amounts.items()):
        return now_ns
    for end, task in sorted(_ends(state, row, now_ns), key=lambda pair: (pair[0], pair[1].uid)):
        if end == ENDLESS:
            break
        for column, amount in task.cls.request:
            if column in free:
                free[column] += amount
        if all(free[column] >= amount for column, amount in amounts.items()):
            return end
    return ENDLESS


def _ends(state: State, row: int, now_ns: int) -> Iterable[tuple[int, Task]]:
    for task in state.stateful.assigned_to(state.nodes.names[row]):
        yield end_of(task, now_ns), task


def start_of(state: State, closing: ClosedNodes, gang: GangState, now_ns: int) -> int:
    """When a gang with reserved nodes could start: when the last of them has the resources free."""
    wanted: dict[str, dict[int, int]] = {}
    for task, node in closing.tasks_of(gang):
        amounts = wanted.setdefault(node, {})
        for column, amount in task.cls.request:
            amounts[column] = amounts.get(column, 0) + amount
    rows = state.nodes.rows
    return max((room_for(state, rows[node], amounts, now_ns) for node, amounts in wanted.items()), default=now_ns)
