"""K7: a Strict group starts only if its minResources are free in all, whichever nodes they are on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.state.groups import Group
from enbloc.engine.core.tables.resources import PODS, total
from enbloc.engine.core.tables.tasks import TaskStatus

_OWN: Final = frozenset({TaskStatus.BOUND, TaskStatus.ASSUMED, TaskStatus.NOMINATED})
"""Tasks whose room counts as free for the minResources of their own group."""


class Shortage(NamedTuple):
    """Less is free of a resource than a group asks for."""

    column: int
    asked: int
    has: int


def min_resources(cycle: Cycle, group: Group) -> dict[int, int]:
    """What a Strict group must find free in all, by column. A NonStrict group accumulates without it."""
    if group.holds:
        return {}
    amounts = (cycle.state.resources.amounts(gang.spec.min_free_resources) for gang in cycle.groups.gangs(group))
    asked = total(tuple(one.items()) for one in amounts)
    return {column: amount for column, amount in asked.items() if column != PODS}


def shortage(cycle: Cycle, group: Group, asked: Mapping[int, int]) -> Shortage | None:
    """The first resource of which all free room, with that of the group's own members and of those that room is being
    freed for, is less than asked for."""
    if not asked:
        return None
    cycle.state.nodes.widen()
    free = cycle.state.free_total()
    gangs = cycle.groups.gangs(group)
    own = total(task.cls.request for gang in gangs for task in gang.tasks.values() if task.status in _OWN)
    for column, amount in asked.items():
        has = int(free[column]) + own.get(column, 0)
        if amount > has:
            return Shortage(column, amount, has)
    return None
