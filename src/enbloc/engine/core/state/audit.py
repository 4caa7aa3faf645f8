"""Audits a state: `validate` compares every count with a recount, `digest` is equal for equal states.

Used by tests after each step, and for debugging; never within a cycle.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from enbloc.engine.core.tables.queues import Queue
from enbloc.engine.core.tables.resources import CEILING, Ints
from enbloc.engine.core.tables.tasks import HOLDS_ROOM, OCCUPIED, WAITS, GangState, TaskStatus

if TYPE_CHECKING:
    from enbloc.engine.core.state.state import State


def digest(state: State) -> str:
    """Equal for equal states: what a rolled-back transaction must restore (architecture, 11)."""
    width = len(state.resources)
    facts = (
        state.nodes.free[:width, : state.nodes.count].tolist(),
        [(queue.name, queue.used.tolist(), queue.demand.tolist()) for queue in state.queues.queues.values()],
        [(key, _counts(gang.pending), _counts(gang.occupied)) for key, gang in sorted(state.gangs.items())],
        [(uid, int(task.status), task.node) for uid, task in sorted(state.tasks.items())],
        _in_order(state.stateful.digest()),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def validate(state: State) -> None:
    """Asserts that every count equals a recount."""
    _validate_nodes(state)
    for gang in state.gangs.values():
        _validate_gang(gang)
    priorities = Counter(gang.priority for gang in state.gangs.values())
    assert state.gang_table.priorities == priorities, "priorities are miscounted"
    _validate_queues(state)
    state.stateful.validate()


def _validate_nodes(state: State) -> None:
    used = np.zeros_like(state.nodes.free)
    for task in state.tasks.values():
        row = state.nodes.rows.get(task.node)
        if row is not None and task.status in HOLDS_ROOM:
            for column, amount in task.cls.request:
                used[column, row] += amount
    for row in state.nodes.rows.values():
        free = state.nodes.allocatable[:, row] - used[:, row]
        assert (free == state.nodes.free[:, row]).all(), f"free resources of {state.nodes.names[row]} are miscounted"


def _validate_gang(gang: GangState) -> None:
    for counts, statuses in ((gang.pending, WAITS), (gang.occupied, OCCUPIED), (gang.held, {TaskStatus.HELD})):
        for role, count in counts.items():
            recount = sum(task.status in statuses and task.role == role for task in gang.tasks.values())
            assert count == recount, f"{gang} miscounts role {role!r}: {count} instead of {recount}"


def _validate_queues(state: State) -> None:
    counts = _queue_counts(state)
    for queue in state.queues.queues.values():
        for what in ("used", "demand", "enqueued"):
            counted: Ints = getattr(queue, what)
            recount = counts.get((queue.name, what), np.zeros_like(counted))
            assert (counted == recount).all(), f"{what} of {queue.name} is miscounted: {counted} instead of {recount}"


def _queue_counts(state: State) -> dict[tuple[str, str], Ints]:
    """By queue, what is used, demanded and enqueued there and below."""
    found: dict[tuple[str, str], Ints] = {}

    def count(queue: Queue, what: str, amounts: Mapping[int, int]) -> None:
        for ancestor in queue.ancestors:
            vector = found.setdefault((ancestor.name, what), np.zeros_like(ancestor.used))
            for column, amount in amounts.items():
                if what != "demand" or amount <= CEILING:
                    vector[column] += amount

    for task in state.tasks.values():
        if task.ours or task.gang.spec.object:
            holds = task.status in HOLDS_ROOM and bool(task.node)
            if holds:
                count(state.queue_of(task.gang), "used", dict(task.cls.request))
            if holds or task.status is TaskStatus.PENDING:
                count(state.queue_of(task.gang), "demand", dict(task.cls.request))
    for queue, to_come, enqueued in state.demand:
        count(queue, "demand", to_come)
        count(queue, "enqueued", enqueued)
    return found


def _in_order(value: object) -> object:
    """Sets as sorted lists: equal sets give equal results."""
    if isinstance(value, frozenset):
        return sorted(map(repr, map(_in_order, value)))
    return [_in_order(one) for one in value] if isinstance(value, (tuple, list)) else value


def _counts(by_role: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(role, count) for role, count in sorted(by_role.items()) if count]
