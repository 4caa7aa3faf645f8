"""Conservative backfill: a gang is started early only if that delays none of the gangs before it in its queue (R8).

In the order of the queue each gang that waits is given the earliest time and the rows at which it fits beside what runs
and what was planned before it; all is planned anew in every cycle. A gang starts now if it fits for its whole run time
beside the plans of the gangs before it. A run time that is unknown is endless. Other queues are not restricted.
"""

from __future__ import annotations

import heapq
from contextlib import AbstractContextManager
from typing import Final

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import is_surplus, request_of
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.core.run_times import ENDLESS
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Ints, total
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import KEPT_IN_TIME, Diagnosis
from enbloc.engine.features.backfill.expected_start import ExpectedStarts, Start
from enbloc.engine.features.backfill.free_profile import FreeProfile, forecast_request, releases_of, with_more_free
from enbloc.gangs.model import GangKey

PLANNED: Final = 100
"""At most 100 gangs of a queue are planned; those behind them do not start before one of these has."""
SLOTS: Final = 16
"""At most 16 times are tried for a gang; one that fits at none of them is not planned."""


class ConservativeBackfill(Feature):
    """The plans of all queues in one cycle, made as far as the gangs that are attempted, which come in order."""

    def __init__(self) -> None:
        self._cycle: Cycle | None = None
        self._queues: dict[str, PlannedQueue] = {}
        self._before: Ints | None = None
        """What was free before the gang was attempted whose turn it is."""

    def separates_run_times(self) -> bool:
        return True

    def constrains_by_order(self) -> bool:
        return True

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        """What a gang must leave to those before it in its queue."""
        if queue is not cycle.queues.placement:
            return constraints
        planned = self._in(cycle, gang.spec.queue)
        planned.plan_before(cycle.order(gang, Band.SURPLUS if is_surplus(gang) else Band.MINIMA))
        nodes = cycle.state.nodes
        self._before = nodes.free[:, : nodes.count].copy()
        constraints = cycle.constraints(gang)
        if planned.is_full and gang.key not in planned.starts:
            return constraints.closing(KEPT_IN_TIME, np.ones(nodes.count, np.bool_))
        return constraints._replace(shadow=planned.shadow) if planned.is_in_the_way else constraints

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        equivalence = cycle.queues.equivalence_of(gang)
        if queue is cycle.queues.placement and failure.lacks_room and equivalence is not None:
            self._in(cycle, gang.spec.queue).add(equivalence)
        return False

    def served(self, cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> None:
        """The room is gone for the plans of every queue."""
        if queue is cycle.queues.placement and self._before is not None:
            for planned in self._queues.values():
                planned.note_bound(gang, self._before)

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """All gangs that wait are planned, and their starts published, by queue and number."""
        if queue is not cycle.queues.placement:
            return
        for name in sorted({one.queue for one in queue.equivalences() if one.unschedulable}):
            self._in(cycle, name)
        heads: dict[str, tuple[GangKey, Start]] = {}
        for name, planned in self._all(cycle).items():
            planned.plan_before(None)
            heads |= {f"{name}/{number}": start for number, start in enumerate(planned.starts.items())}
        cycle.features.get(ExpectedStarts).set_heads(heads)

    def _all(self, cycle: Cycle) -> dict[str, PlannedQueue]:
        if self._cycle is not cycle:
            self._cycle, self._queues = cycle, {}
        return self._queues

    def _in(self, cycle: Cycle, name: str) -> PlannedQueue:
        planned = self._all(cycle).get(name)
        if planned is None:
            planned = self._queues[name] = PlannedQueue(cycle)
            for equivalence in cycle.queues.placement.in_queue(name):
                why = equivalence.diagnosis
                if equivalence.unschedulable and why is not None and why.lacks_room:
                    planned.add(equivalence)
        return planned


class PlannedQueue:
    """The plans for one queue in one cycle."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._nodes = nodes = cycle.state.nodes
        releases = releases_of(cycle.state, cycle.now_ns)
        self._profile = FreeProfile(nodes.free[:, : nodes.count], releases, cycle.now_ns)
        self._to_plan: list[tuple[Order, GangState]] = []
        self._known: set[GangKey] = set()
        self.starts: dict[GangKey, Start] = {}

    @property
    def is_full(self) -> bool:
        return len(self.starts) >= PLANNED

    @property
    def is_in_the_way(self) -> bool:
        """Whether a plan keeps room from the gangs behind it."""
        return any(start.shadow_time_ns != ENDLESS for start in self.starts.values())

    def add(self, equivalence: EquivalenceClass) -> None:
        """The gangs of a class that waits for minima are planned when their turn comes."""
        for order, _, entry in equivalence.items:
            gang = entry.gang
            if not entry.is_stale and order.band is Band.MINIMA and gang.key not in self._known:
                self._known.add(gang.key)
                heapq.heappush(self._to_plan, (order, gang))

    def plan_before(self, order: Order | None) -> None:
        """Plans the gangs before this order; `None`: all."""
        while self._to_plan and not self.is_full and (order is None or self._to_plan[0][0] < order):
            gang = heapq.heappop(self._to_plan)[1]
            self.starts[gang.key] = self._plan(gang, self._cycle.constraints(gang))

    def shadow(self, run_time_ns: int | None) -> AbstractContextManager[None]:
        """While the context lasts, only what stays free for the whole run time of a task, beside the plans that were
        made so far for this queue, is free."""
        kept = self._profile.free_now() - self._profile.between(self._cycle.now_ns, run_time_ns)
        return with_more_free(self._cycle.state, -kept)

    def note_bound(self, gang: GangState, before: Ints) -> None:
        """A gang of this queue or of another was bound; `before`: what was free then."""
        taken = before - self._nodes.free[:, : self._nodes.count]
        self._profile.take(self._cycle.now_ns, gang.run_time_ns, taken)

    def _plan(self, gang: GangState, constraints: Constraints) -> Start:
        slots = self._profile.slots(self._asked(gang), gang.run_time_ns)
        for _, start_ns in zip(range(SLOTS), slots, strict=False):
            if start_ns == self._cycle.now_ns:
                continue  # it was tried
            free_then = self._profile.between(start_ns, gang.run_time_ns)
            with with_more_free(self._cycle.state, free_then - self._nodes.free[:, : self._nodes.count]):
                used = _room_for(self._cycle, gang, constraints)
            if used is not None:
                self._profile.take(start_ns, gang.run_time_ns, used)
                rows = np.flatnonzero(used.any(axis=0)).tolist()
                return Start(start_ns, {row: dict(enumerate(used[:, row].tolist())) for row in rows})
        return Start(ENDLESS, {})

    def _asked(self, gang: GangState) -> Ints:
        asked = np.zeros(len(self._nodes.free), np.int64)
        for column, amount in total(task.cls.request for task in request_of(gang).minimum).items():
            asked[column] = amount
        return asked


def _room_for(cycle: Cycle, gang: GangState, constraints: Constraints) -> Ints | None:
    """What the minima of a gang would use, column by row; `None`: they do not fit."""
    nodes = cycle.state.nodes
    transaction = Transaction(cycle.state)
    request = forecast_request(gang)
    try:
        cycle.take_claimed_room(transaction, gang)
        if attempt(cycle.placer, [request], transaction, constraints, keep=True) is not None:
            return None
        used = np.zeros_like(nodes.free[:, : nodes.count])
        for task in transaction.placed:
            for column, amount in task.cls.request:
                used[column, nodes.rows[task.node]] += amount
        return used
    finally:
        transaction.rollback()
