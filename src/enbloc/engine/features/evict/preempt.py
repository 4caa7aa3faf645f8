"""preempt: inside a queue, gangs of higher priority get room that gangs of lower priority are evicted from (P1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.features.evict import preempt_by_order
from enbloc.engine.features.evict.evict import evict_for_all
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.rules import ByPriority


def run(cycle: Cycle) -> None:
    if cycle.config.preempt.by == "order":
        preempt_by_order.run(cycle)
        return
    # With one priority no gang is of lower priority than another; `enablePreemptable: false` switches priority off (C).
    if len(cycle.state.gang_table.priorities) > 1 and cycle.config.enabled("priority", "preemptable"):
        evict_for_all(cycle, "preempt", _rules, _have_victims(cycle), releases_claims=True)


def _have_victims(cycle: Cycle) -> Callable[[GangState], bool]:
    """Whether any pod or claim in the cluster is of lower priority than a gang in its queue."""
    if any(True for _ in cycle.claims.every()):
        return lambda gang: True
    lowest: dict[str, int] | None = None

    def have_victims(gang: GangState) -> bool:
        nonlocal lowest
        if lowest is None:
            lowest = {}
            for queue, priority in cycle.features.get(EvictionHistory).evictable.cells():
                lowest[queue] = min(priority, lowest.get(queue, priority))
        return gang.priority > lowest.get(gang.spec.queue, gang.priority)

    return have_victims


def _rules(cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> ByPriority:
    priority = min(gang.priority for gang in unit)  # S1: no gang is given the priority of its group
    asks_nothing = all(task.cls.best_effort for request in requests for task in request.everything)
    return ByPriority(cycle.features.get(EvictionHistory), unit, priority, best_effort_only=asks_nothing)
