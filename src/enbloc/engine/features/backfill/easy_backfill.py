"""EASY backfill: later gangs of a queue are scheduled if they do not delay the first one that waits (R8).

The shadow time of the first gang is a forecast from known run times, recomputed whenever a task was placed or released:
when the gang would fit, and where. A task that ends by then may use any free resources; any other only what the gang
leaves at that time. Only the shadow time is published, and other queues are not restricted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import Band
from enbloc.engine.core.placement.attempt import Placer, attempt, runs
from enbloc.engine.core.placement.constraints import Constraints, Shadow
from enbloc.engine.core.placement.request import is_surplus, request_of
from enbloc.engine.core.queueing.scheduling_queue import Head, SchedulingQueue
from enbloc.engine.core.run_times import ENDLESS, end_of
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.admission.awaited_pods import AwaitedPods
from enbloc.engine.features.backfill.expected_start import Amounts, ExpectedStarts, Start
from enbloc.gangs.model import GangKey

Kept = dict[int, tuple[tuple[int, int], ...]]
"""Row → `(column, amount)`."""


class Releases(NamedTuple):
    """What tasks release when they end, in the order of their ends; one element or column a task."""

    ends_ns: Ints
    step: Ints
    """Tasks of one gang that end at one time are released in one step."""
    rows: Ints
    amounts: Ints

    @property
    def steps(self) -> int:
        return int(self.step[-1]) + 1 if len(self.step) else 0

    def until(self, step: int) -> Releases:
        """The releases up to a step, inclusive."""
        count = int(np.searchsorted(self.step, step, side="right"))
        return Releases(self.ends_ns[:count], self.step[:count], self.rows[:count], self.amounts[:, :count])


class EasyBackfill(Feature):
    """The forecast start of the first gang of each queue."""

    def __init__(
        self,
        state: State,
        placer: Placer,
        take_claimed_room: Callable[[Transaction, GangState], object],
        expected: ExpectedStarts,
    ) -> None:
        self._state = state
        self._placer = placer
        self._take_claimed_room = take_claimed_room
        self._expected = expected
        self._starts: dict[GangKey, tuple[object, Start, Kept]] = {}
        self.heads: dict[str, tuple[GangKey, Start]] = {}
        """Queue → its first gang, and when that could start."""
        self.put_off: dict[GangKey, GangState] = {}
        """Gangs whose minima leave room to awaited pods: they are tried again in the next cycle (G8)."""

    def cycle_begins(self, now_ns: int) -> None:
        """The forecasts of the last cycle no longer hold."""
        self._starts = {}

    def _note(self, gang: GangState, *, is_put_off: bool) -> None:
        if is_put_off and not is_surplus(gang):
            self.put_off[gang.key] = gang
        else:
            self.put_off.pop(gang.key, None)

    def separates_run_times(self) -> bool:
        return True

    def constrains_by_order(self) -> bool:
        return True

    def serving_begins(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        if queue is cycle.queues.placement:
            self.heads, self.put_off = {}, {}

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        """A gang behind the first that waits in its queue must not delay it."""
        head = self._first_waiting(cycle, gang.spec.queue) if queue is cycle.queues.placement else None
        band = Band.SURPLUS if is_surplus(gang) else Band.MINIMA
        if head is None or cycle.order(head) >= cycle.order(gang, band):
            return constraints
        return constraints._replace(shadow=self._shadow_in(cycle, head))

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        if queue is cycle.queues.placement:
            self._note(
                gang, is_put_off=failure.lacks_room and bool(cycle.features.get(AwaitedPods).above(gang.priority))
            )
        return False

    def served(self, cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> None:
        if queue is cycle.queues.placement:
            self._note(gang, is_put_off=False)

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        if queue is not cycle.queues.placement:
            return
        for name in {equivalence.queue for equivalence in queue.equivalences()}:
            head = self._first_waiting(cycle, name)
            if head is not None:
                self._shadow_in(cycle, head)
        self._expected.set_heads(self.heads, cycle.now_ns)

    def _shadow_in(self, cycle: Cycle, head: GangState) -> Shadow:
        return self.shadow(head, cycle.constraints(head), cycle.now_ns, (cycle, len(cycle.served)))

    def _first_waiting(self, cycle: Cycle, queue: str) -> GangState | None:
        """The first gang of a queue that was attempted and did not fit, or was put off for the room of awaited pods."""
        heads = [Head(cycle.order(gang), gang) for gang in self.put_off.values() if gang.spec.queue == queue]
        found = min(heads, key=attrgetter("order"), default=None)
        for equivalence in cycle.queues.placement.in_queue(queue):
            why = equivalence.diagnosis
            head = equivalence.head() if equivalence.unschedulable and why is not None and why.lacks_room else None
            if head is not None and head.order.band is Band.MINIMA and (found is None or head.order < found.order):
                found = head
        return found.gang if found is not None else None

    def shadow(self, head: GangState, constraints: Constraints, now_ns: int, position: object) -> Shadow:
        """What gangs behind `head` may not use; a forecast is reused while `position` is equal: nothing was placed."""
        known = self._starts.get(head.key)
        if known is None or known[0] != position:
            forecast = self._forecast(head, constraints, now_ns)
            known = self._starts[head.key] = (position, forecast, self._kept(forecast))
        _, start, kept = known
        self.heads[head.spec.queue] = (head.key, start)

        def over(run_time_ns: int | None) -> AbstractContextManager[None]:
            if start.shadow_time_ns == ENDLESS or (
                run_time_ns is not None and now_ns + run_time_ns <= start.shadow_time_ns
            ):
                return nullcontext()
            return self._taken(kept)

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

    def _forecast(self, gang: GangState, constraints: Constraints, now_ns: int) -> Start:
        """The earliest time at which the gang's minima fit if nothing else is placed. Of gangs that end at one time
        only as many count as it needs: what the others leave then is not promised to tasks that start now."""
        releases = releases_of(self._state, now_ns)
        low, high = 0, releases.steps
        found: Start | None = None
        while low < high:
            middle = (low + high) // 2
            start = self._fits_after(gang, constraints, releases.until(middle))
            if start is None:
                low = middle + 1
            else:
                found, high = start, middle
        return found or Start(ENDLESS, {})

    def _fits_after(self, gang: GangState, constraints: Constraints, gone: Releases) -> Start | None:
        """The start of the gang if it fits after these releases; `None`: it does not."""
        nodes = self._state.nodes
        more = np.zeros_like(nodes.free)
        for column in range(len(more)):
            np.add.at(more[column], gone.rows, gone.amounts[column])
        released: Bools = more[:, : nodes.count].max(axis=0, initial=0) > 0
        self._change_free(more, 1)
        try:
            for prefer in (released, None):
                left = self._left_by(gang, constraints, prefer)
                if left is not None:
                    return Start(int(gone.ends_ns[-1]), left)
            return None
        finally:
            self._change_free(more, -1)

    def _left_by(self, gang: GangState, constraints: Constraints, prefer: Bools | None) -> dict[int, Amounts] | None:
        """What the gang leaves on the rows that it would use; `None`: it does not fit. Rows that are released until
        then are preferred: the others are free now, and can be backfilled."""
        nodes = self._state.nodes
        transaction = Transaction(self._state)
        request = request_of(gang)
        request = request._replace(short=min(request.short, len(request.rest)))  # lost members may not exist again (G7)
        try:
            self._take_claimed_room(transaction, gang)
            if prefer is not None and not gang.is_constrained:  # else the domain decides
                on_released = constraints.closing(diagnosis.KEPT_IN_TIME, ~prefer)
                for run in runs(self._state, request.remaining().minimum):
                    self._placer.place(transaction, run, len(run), on_released)
            if attempt(self._placer, [request], transaction, constraints) is not None:
                return None
            used = {nodes.rows[task.node] for task in transaction.placed}
            return {row: dict(enumerate(nodes.free[:, row].tolist())) for row in used}
        finally:
            transaction.rollback()

    def _change_free(self, more: Ints, by: int) -> None:
        nodes = self._state.nodes
        rows = np.flatnonzero(more.any(axis=0))
        nodes.free[:, rows] += by * more[:, rows]
        nodes.version += 1
        nodes.stamp[rows] = nodes.version


def releases_of(state: State, now_ns: int) -> Releases:
    """Of all tasks with a known end."""
    nodes, stateful = state.nodes, state.stateful
    found: list[tuple[int, GangKey, int, Task]] = []
    for name, row in nodes.rows.items():
        for task in stateful.assigned_to(name):
            end_ns = end_of(task, now_ns)
            if end_ns != ENDLESS:
                found.append((end_ns, task.gang.key, row, task))
    found.sort(key=itemgetter(0, 1))
    step = np.zeros(len(found), np.int64)
    for number in range(1, len(found)):
        step[number] = step[number - 1] + (found[number][:2] != found[number - 1][:2])
    amounts = np.zeros((len(nodes.free), len(found)), np.int64)
    for number, (_, _, _, task) in enumerate(found):
        for column, amount in task.cls.request:
            amounts[column, number] = amount
    ends_ns = np.array([end_ns for end_ns, _, _, _ in found], np.int64)
    return Releases(ends_ns, step, np.array([row for _, _, row, _ in found], np.int64), amounts)
