"""EASY backfill: later gangs of a queue are scheduled if they do not delay the first one that waits (R8).

The shadow time of the first gang is a forecast from known run times, recomputed whenever a task was placed or released:
when the gang would fit, and where. A task that ends by then may use any free resources; any other only what the gang
leaves at that time. Only the shadow time is published, and other queues are not restricted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import Band
from enbloc.engine.core.placement.attempt import attempt, runs
from enbloc.engine.core.placement.constraints import Constraints, Shadow
from enbloc.engine.core.placement.request import is_surplus
from enbloc.engine.core.queueing.scheduling_queue import Head, SchedulingQueue
from enbloc.engine.core.run_times import ENDLESS
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import KEPT_IN_TIME, Diagnosis
from enbloc.engine.features.awaited.awaited_pods import AwaitedPods
from enbloc.engine.features.backfill.expected_start import Amounts, ExpectedStarts, Start
from enbloc.engine.features.backfill.free_profile import Releases, forecast_request, releases_of, with_more_free
from enbloc.gangs.model import GangKey

Kept = dict[int, tuple[tuple[int, int], ...]]
"""Row → `(column, amount)`."""


class EasyBackfill(Feature):
    """The forecast start of the first gang of each queue."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._starts: dict[GangKey, tuple[object, Start, Kept]] = {}
        self._heads: dict[str, tuple[GangKey, Start]] = {}
        """Queue → its first gang, and when that could start."""
        self._put_off: dict[GangKey, GangState] = {}
        """Gangs whose minima leave room to awaited pods: they are tried again in the next cycle."""

    def cycle_begins(self, now_ns: int) -> None:
        """The forecasts of the last cycle no longer hold."""
        self._starts = {}

    def separates_run_times(self) -> bool:
        return True

    def constrains_by_order(self) -> bool:
        return True

    def serving_begins(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        if queue is cycle.queues.placement:
            self._heads, self._put_off = {}, {}

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        """A gang behind the first that waits in its queue must not delay it."""
        head = self._first_waiting(cycle, gang.spec.queue) if queue is cycle.queues.placement else None
        band = Band.SURPLUS if is_surplus(gang) else Band.MINIMA
        if head is None or cycle.order(head) >= cycle.order(gang, band):
            return constraints
        return constraints._replace(shadow=self._shadow(cycle, head))

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        if queue is cycle.queues.placement:
            is_put_off = failure.lacks_room and cycle.features.get(AwaitedPods).above(gang.priority)
            if is_put_off and not is_surplus(gang):
                self._put_off[gang.key] = gang
            else:
                self._put_off.pop(gang.key, None)
        return False

    def served(self, cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> None:
        if queue is cycle.queues.placement:
            self._put_off.pop(gang.key, None)

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        if queue is not cycle.queues.placement:
            return
        for name in {equivalence.queue for equivalence in queue.equivalences()}:
            head = self._first_waiting(cycle, name)
            if head is not None:
                self._shadow(cycle, head)
        cycle.features.get(ExpectedStarts).set_heads(self._heads)

    def _first_waiting(self, cycle: Cycle, queue: str) -> GangState | None:
        """The first gang of a queue that was attempted and did not fit, or was put off for the room of awaited pods."""
        heads = [Head(cycle.order(gang), gang) for gang in self._put_off.values() if gang.spec.queue == queue]
        found = min(heads, key=attrgetter("order"), default=None)
        for equivalence in cycle.queues.placement.in_queue(queue):
            why = equivalence.diagnosis
            head = equivalence.head() if equivalence.unschedulable and why is not None and why.lacks_room else None
            if head is not None and head.order.band is Band.MINIMA and (found is None or head.order < found.order):
                found = head
        return found.gang if found is not None else None

    def _shadow(self, cycle: Cycle, head: GangState) -> Shadow:
        """What gangs behind `head` may not use. Its forecast is made anew once anything was placed."""
        known, position, now_ns = self._starts.get(head.key), (cycle, len(cycle.served)), cycle.now_ns
        if known is None or known[0] != position:
            forecast = self._forecast(cycle, head, cycle.constraints(head))
            known = self._starts[head.key] = (position, forecast, self._kept(forecast))
        _, start, kept = known
        self._heads[head.spec.queue] = (head.key, start)

        def over(run_time_ns: int | None) -> AbstractContextManager[None]:
            ends_in_time = run_time_ns is not None and now_ns + run_time_ns <= start.shadow_time_ns
            return nullcontext() if ends_in_time or start.shadow_time_ns == ENDLESS else self._taken(kept)

        return over

    def _kept(self, start: Start) -> Kept:
        """What of the room that is free now the first gang will need."""
        free = self._state.nodes.free
        return {
            row: tuple((c, over) for c, room in left.items() if (over := int(free[c, row]) - max(room, 0)) > 0)
            for row, left in start.left.items()
        }

    @contextmanager
    def _taken(self, kept: Kept) -> Iterator[None]:
        """Takes what is kept for the first gang, within the context. What was free before the attempt counts: what
        tasks of the attempt have taken meanwhile stays taken."""
        nodes = self._state.nodes
        taken = []
        for row, amounts in kept.items():
            request = tuple((c, some) for c, over in amounts if (some := min(over, int(nodes.free[c, row]))) > 0)
            if request:
                nodes.allocate(row, request)
                taken.append((row, request))
        try:
            yield
        finally:
            for row, request in taken:
                nodes.release(row, request)

    # ---- the forecast

    def _forecast(self, cycle: Cycle, gang: GangState, constraints: Constraints) -> Start:
        """The earliest time at which the gang's minima fit if nothing else is placed. Of gangs that end at one time
        only as many count as it needs: what the others leave then is not promised to tasks that start now."""
        releases = releases_of(self._state, cycle.now_ns)
        low, high = 0, releases.steps
        found: Start | None = None
        while low < high:
            middle = (low + high) // 2
            start = self._fits_after(cycle, gang, constraints, releases.until(middle))
            if start is None:
                low = middle + 1
            else:
                found, high = start, middle
        return found or Start(ENDLESS, {})

    def _fits_after(self, cycle: Cycle, gang: GangState, constraints: Constraints, gone: Releases) -> Start | None:
        """The start of the gang if it fits after these releases; `None`: it does not."""
        nodes = self._state.nodes
        more = np.zeros_like(nodes.free)
        gone.add_to(more)
        released: Bools = more[:, : nodes.count].max(axis=0, initial=0) > 0
        with with_more_free(self._state, more):
            for prefer in (released, None):
                left = self._left_by(cycle, gang, constraints, prefer)
                if left is not None:
                    return Start(int(gone.ends_ns[-1]), left)
        return None

    def _left_by(
        self, cycle: Cycle, gang: GangState, constraints: Constraints, prefer: Bools | None
    ) -> dict[int, Amounts] | None:
        """What the gang leaves on the rows that it would use; `None`: it does not fit. Rows that are released until
        then are preferred: the others are free now, and can be backfilled."""
        nodes, request, transaction = self._state.nodes, forecast_request(gang), Transaction(self._state)
        try:
            cycle.take_claimed_room(transaction, gang)
            if prefer is not None and not gang.is_constrained:  # else the domain decides
                on_released = constraints.closing(KEPT_IN_TIME, ~prefer)
                for run in runs(self._state, request.remaining().minimum):
                    cycle.placer.place(transaction, run, len(run), on_released)
            if attempt(cycle.placer, [request], transaction, constraints) is not None:
                return None
            used = {nodes.rows[task.node] for task in transaction.placed}
            return {row: dict(enumerate(nodes.free[:, row].tolist())) for row in used}
        finally:
            transaction.rollback()
