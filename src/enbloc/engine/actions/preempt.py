"""preempt: inside a queue, gangs of higher priority get room that lower ones leave (P1)."""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.actions.evict import evict_for_all
from enbloc.engine.engine import Engine
from enbloc.engine.eviction.evictable import Cell
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.tables.tasks import GangState, Task


def run(engine: Engine) -> None:
    if len(engine.state.priorities) > 1:  # else nobody is lower than anybody
        evict_for_all(engine, "preempt", _rules, claims_first=True)


def _rules(engine: Engine, unit: Sequence[GangState], needs: Sequence[PlacementRequest]) -> _ByPriority | None:
    return _ByPriority(engine, unit[0])


class _ByPriority:
    """Whoever is lower, in the same queue."""

    by_use = False

    def __init__(self, engine: Engine, gang: GangState) -> None:
        self._engine = engine
        self._gang = gang
        queue, priority = gang.spec.queue, gang.priority
        self._cells = [cell for cell in engine.evictions.evictable.cells() if cell[0] == queue and cell[1] < priority]

    def cells(self) -> Sequence[Cell]:
        return self._cells

    def allows(self, tasks: Sequence[Task]) -> bool:
        return not any(self._engine.evictions.was_evicted_by(self._gang, task.gang) for task in tasks)

    def accepts(self, victims: Sequence[Task]) -> bool:
        return True
