"""K7, M6: a gang whose minResources exceed what the cluster has is not attempted; a Strict unit starts only if its
minResources are free in all, whichever nodes they are on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Unit
from enbloc.engine.core.tables.resources import PODS, total
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.gangs.model import GangKey

_OWN: Final = frozenset({TaskStatus.BOUND, TaskStatus.ASSUMED, TaskStatus.NOMINATED})
"""Tasks whose room counts as free for the minResources of their own unit."""


class Shortage(NamedTuple):
    """Less is free of a resource than a unit asks for."""

    column: int
    asked: int
    has: int


class MinResources(Feature):
    def __init__(self, state: State, *, admit_oversized: bool) -> None:
        self._state = state
        self._admit_oversized = admit_oversized

    def never_fits(self, gang: GangState) -> Diagnosis | None:
        """Its minResources exceed what the cluster has."""
        asked = gang.spec.min_free_resources
        if not asked and not self._admit_oversized and not gang.spec.waves:
            asked = gang.spec.min_resources or {}
        if not asked or gang.satisfied:
            return None
        totals = self._state.nodes.totals()
        for column, amount in self._state.resources.amounts(asked).items():
            has = int(totals[column]) if column < len(totals) else 0
            if column != PODS and amount > has:
                return diagnosis.beyond_cluster(gang, self._state.resources.names[column], amount, has)
        return None

    def rejects(self, cycle: Cycle, unit: Unit, gangs: Sequence[GangState]) -> Diagnosis | None:
        if unit.is_alone:
            return None
        beyond = {gang.key: why for gang in gangs if (why := self.never_fits(gang)) is not None}
        return _of_several(beyond) or self._too_little_free(unit)

    def _too_little_free(self, unit: Unit) -> Diagnosis | None:
        lacking = shortage(self._state, unit, min_resources(self._state, unit))
        if lacking is None:
            return None
        name = self._state.resources.names[lacking.column]
        return _of_several(
            {gang.key: diagnosis.too_little_free(gang, name, lacking.asked, lacking.has) for gang in unit.gangs}
        )


def _of_several(each: dict[GangKey, Diagnosis]) -> Diagnosis | None:
    return msgspec.structs.replace(next(iter(each.values())), of_gangs=each) if each else None


def min_resources(state: State, unit: Unit) -> dict[int, int]:
    """What a Strict unit must find free in all, by column. A NonStrict one accumulates without it."""
    if unit.holds or unit.is_alone:
        return {}
    amounts = (state.resources.amounts(gang.spec.min_free_resources) for gang in unit.gangs)
    asked = total(tuple(one.items()) for one in amounts)
    return {column: amount for column, amount in asked.items() if column != PODS}


def shortage(state: State, unit: Unit, asked: Mapping[int, int]) -> Shortage | None:
    """The first resource of which all free room, with that of the unit's own members and of those that room is being
    freed for, is less than asked for."""
    if not asked:
        return None
    state.nodes.widen()
    free = state.free_total()
    own = total(task.cls.request for gang in unit.gangs for task in gang.tasks.values() if task.status in _OWN)
    for column, amount in asked.items():
        has = int(free[column]) + own.get(column, 0)
        if amount > has:
            return Shortage(column, amount, has)
    return None
