"""How gangs are served under conservative backfill: none delays the plan of a gang before it in its queue."""

from __future__ import annotations

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import is_surplus
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.core.tables.resources import Ints
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.backfill.conservative_backfill import ConservativeBackfill, PlannedQueue, heads
from enbloc.engine.features.backfill.expected_start import ExpectedStarts


class PlannedStarts(Feature):
    def __init__(self, backfill: ConservativeBackfill, expected: ExpectedStarts) -> None:
        self._backfill = backfill
        self._expected = expected
        self._plans: Plans | None = None
        self._before: Ints | None = None
        """What was free before the gang was attempted whose turn it is."""

    def separates_run_times(self) -> bool:
        return True

    def constrains_by_order(self) -> bool:
        return True

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        if queue is not cycle.queues.placement:
            return constraints
        constraints = self._in(cycle).constraints(gang)
        nodes = cycle.state.nodes
        self._before = nodes.free[:, : nodes.count].copy()
        return constraints

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        if queue is cycle.queues.placement and failure.lacks_room:
            equivalence = cycle.queues.equivalence_of(gang)
            self._in(cycle).of(gang.spec.queue).add(_gangs(equivalence) if equivalence is not None else [])
        return False

    def served(self, cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> None:
        if queue is cycle.queues.placement and self._before is not None:
            self._in(cycle).note_bound(gang, self._before)

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        if queue is cycle.queues.placement:
            self._expected.set_heads(heads(self._in(cycle).all()), cycle.now_ns)

    def _in(self, cycle: Cycle) -> Plans:
        if self._plans is None or self._plans.cycle is not cycle:
            self._plans = Plans(cycle, self._backfill)
        return self._plans


class Plans:
    """The plans of all queues, made as far as the gangs that are asked for, which come in order."""

    def __init__(self, cycle: Cycle, backfill: ConservativeBackfill) -> None:
        self.cycle = self._cycle = cycle
        self._backfill = backfill
        self._queues: dict[str, PlannedQueue] = {}

    def of(self, name: str) -> PlannedQueue:
        planned = self._queues.get(name)
        if planned is None:
            planned = self._queues[name] = _begin(self._cycle, self._backfill, name)
        return planned

    def constraints(self, gang: GangState) -> Constraints:
        """What a gang must leave to those before it in its queue."""
        planned = self.of(gang.spec.queue)
        planned.plan_before(
            self._cycle.order(gang, Band.SURPLUS if is_surplus(gang) else Band.MINIMA), self._cycle.constraints
        )
        return _within(self._cycle, planned, gang)

    def note_bound(self, gang: GangState, before: Ints) -> None:
        """The room is gone for the plans of every queue; `before`: what was free then."""
        for planned in self._queues.values():
            planned.note_bound(gang, before)

    def all(self) -> dict[str, PlannedQueue]:
        """With the plans of all gangs that wait."""
        for name in {one.queue for one in self._cycle.queues.placement.equivalences() if one.unschedulable}:
            self.of(name)
        for planned in self._queues.values():
            planned.plan_before(None, self._cycle.constraints)
        return self._queues


def _begin(cycle: Cycle, backfill: ConservativeBackfill, name: str) -> PlannedQueue:
    planned = PlannedQueue(backfill, cycle.now_ns)
    for equivalence in cycle.queues.placement.in_queue(name):
        why = equivalence.diagnosis
        if equivalence.unschedulable and why is not None and why.lacks_room:
            planned.add(_gangs(equivalence))
    return planned


def _gangs(equivalence: EquivalenceClass) -> list[tuple[Order, GangState]]:
    """Of a class that waits for minima."""
    return [
        (order, entry.gang) for order, _, entry in equivalence.items if not entry.is_stale and order.band is Band.MINIMA
    ]


def _within(cycle: Cycle, planned: PlannedQueue, gang: GangState) -> Constraints:
    constraints = cycle.constraints(gang)
    if planned.is_full and gang.key not in planned.starts:
        return constraints.closing(diagnosis.KEPT_IN_TIME, np.ones(cycle.state.nodes.count, np.bool_))
    return constraints._replace(shadow=planned.shadow) if planned.is_in_the_way else constraints
