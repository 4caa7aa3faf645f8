"""reclaim: queues within their share get back what other queues use beyond theirs (P2)."""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.tables.resources import total
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.features.evict.evict import evict_for_all
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.rules import ByShare


def run(cycle: Cycle) -> None:
    using = [queue for queue in cycle.state.queues.queues.values() if not queue.children and queue.demand.any()]
    if len(using) > 1:  # else there is no queue to reclaim from
        evict_for_all(cycle, "reclaim", _rules, lambda gang: True, releases_claims=False)


def _rules(cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> ByShare | None:
    asked = total(task.cls.request for request in requests for task in request.everything)
    rules = ByShare(cycle.state, cycle.features.get(EvictionHistory), unit, asked)
    return rules if rules.cells() else None
