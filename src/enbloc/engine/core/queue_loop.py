"""How gangs are taken out of a scheduling queue: the next queue is chosen anew after each gang (G8)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.next_queue import Line, NextQueue
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Head, SchedulingQueue
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import EventKind

Serve = Callable[[GangState], Diagnosis | None]
"""One attempt for a gang, or for the group that it starts with; a diagnosis says why it failed."""

REPORTED_BEHIND = 16
"""How many gangs of an equivalence class say that a FIFO queue blocks them."""


def serve_all(cycle: Cycle, queue: SchedulingQueue, serve: Serve, with_enqueued: bool = False) -> None:
    """Serves all active gangs. A gang that fails does not block the gangs behind it, except in a FIFO queue."""
    kept = cycle.features.keeps_room(cycle) if queue is not cycle.queues.admission else None
    queues = NextQueue(cycle, with_enqueued, kept)
    _line_up_all(cycle, queue, queues)
    failures = _Failures(cycle) if queue is cycle.queues.placement else None
    put_off: set[str] = set()
    """Queues of which a gang failed for now: the next cycle tries it again."""
    while (name_or_none := queues.choose()) is not None:
        name = name_or_none
        line = queues.lines[name]
        order, _, equivalence = heapq.heappop(line)
        equivalence.in_line = False
        head = equivalence.head()
        if head is None or head.order != order:  # the gang that was lined up has left
            _line_up(queue, line, equivalence, asleep=True)
            continue
        if equivalence.unschedulable and not cycle.queues.wake_in_turn(queue, equivalence):
            continue
        gang = head.gang
        if order.band is Band.MINIMA and cycle.state.queues.get(name).facts.fifo:
            ahead = blocker(cycle, queue, name, order)
            if ahead is not None:
                _report_behind(cycle, queue, name, ahead)
            if ahead is not None or name in put_off:
                line[:] = [entry for entry in line if entry[0].band is not Band.MINIMA]  # FIFO does not block surplus
                heapq.heapify(line)
                continue
        if order.band is Band.SURPLUS and cycle.features.not_now(name, order):
            continue  # it stays active: the next cycle tries again
        is_kept = kept is not None and kept.take_for(gang)
        requeued = cycle.intake.requeue_if_unlike(gang)  # terms of awaited pods count too
        if requeued is not None:
            _line_up(queue, line, equivalence)
            _line_up(queue, line, requeued)
            continue
        failure = failures.of(equivalence, order) if failures is not None and not is_kept else None
        if failure is None:
            with Turn(cycle, gang) as turn:
                failure = serve(gang)
            if turn.failed:
                _line_up(queue, line, equivalence)
                continue
            if failures is not None and failure is not None:
                failures.note(equivalence, order, failure)
        if failure is not None and is_kept:
            if order.band is Band.MINIMA:
                put_off.add(name)
            continue  # it stays active: the next cycle tries again
        if failure is not None:
            cycle.queues.mark_unschedulable(queue, equivalence, failure, of_gang=order.band is Band.MINIMA)
            continue
        if cycle.features.reorders:
            heapq.heapify(line)
        _line_up(queue, line, equivalence)
        for mate in cycle.groups.mates(gang):  # they wait again, for their surplus
            again = cycle.queues.equivalence_of(mate)
            if again is not None and queue.holds(again):
                _line_up(queue, queues.line(mate.spec.queue), again)
    if kept is not None:
        kept.release()


class _Failures:
    """Failed attempts of this cycle since a gang was last placed: a gang that asks for the same, and differs in order
    alone, would fail in the same way (G9). With as many orders as gangs (by run time) each is a class of its own."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._counts = not cycle.features.constrains_by_order()
        self._found: dict[Hashable, Diagnosis] = {}
        self._as_of = -1

    def of(self, equivalence: EquivalenceClass, order: Order) -> Diagnosis | None:
        if self._as_of != len(self._cycle.served):
            self._found.clear()
            return None
        return self._found.get(_request(equivalence, order)) if equivalence.monotone else None

    def note(self, equivalence: EquivalenceClass, order: Order, failure: Diagnosis) -> None:
        if self._counts and equivalence.monotone:
            self._as_of = len(self._cycle.served)
            self._found[_request(equivalence, order)] = failure


def _request(equivalence: EquivalenceClass, order: Order) -> Hashable:
    """What a class asks for, whatever the plugins' keys of its order."""
    return (equivalence.queue, equivalence.facts, order.is_last, order.is_whole, order.band)


def _line_up_all(cycle: Cycle, queue: SchedulingQueue, queues: NextQueue) -> None:
    """Active classes; and unschedulable ones that pods which are placed before their turn could help (G9)."""
    active = [one for name in queue.active() for one in queue.active_in(name)]
    may_help = active or EventKind.POD_PLACED in cycle.state.events.kinds
    for equivalence in [*active, *queue.helped()] if may_help else ():
        equivalence.in_line = False
        _line_up(queue, queues.line(equivalence.queue), equivalence, asleep=True)


def _line_up(queue: SchedulingQueue, line: Line, equivalence: EquivalenceClass, *, asleep: bool = False) -> None:
    """The head of an equivalence class is lined up for the whole class. `asleep`: also if it is unschedulable."""
    head = equivalence.head()
    if head is None:
        queue.drop(equivalence)
    elif (asleep or not equivalence.unschedulable) and not equivalence.in_line:
        equivalence.in_line = True
        heapq.heappush(line, (head.order, equivalence.number, equivalence))


def is_blocked(cycle: Cycle, gang: GangState) -> bool:
    """Whether a gang waits in a FIFO queue behind one that cannot start: room would not help it."""
    name = gang.spec.queue
    if not cycle.state.queues.get(name).facts.fifo:
        return False
    return blocker(cycle, cycle.queues.placement, name, cycle.order(gang)) is not None


def blocker(cycle: Cycle, served: SchedulingQueue, name: str, order: Order) -> GangState | None:
    """In a FIFO queue: a gang before this one that is unschedulable, not enqueued, or enqueued and without pods. An
    active gang in another scheduling queue blocks too: it was not attempted yet."""
    found: Head | None = None
    for queue in cycle.queues.all():
        for equivalence in queue.in_queue(name):
            head = equivalence.head() if equivalence.unschedulable or queue is not served else None
            if head is None or head.order.band is not Band.MINIMA or head.order >= order:
                continue
            if equivalence.diagnosis is not None and equivalence.diagnosis.reason is PendingReason.GROUP_NOT_READY:
                continue  # its group lacks members: it holds what it can, and is not in line (K6)
            if found is None or head.order < found.order:
                found = head
    for gang in cycle.features.in_line(name):
        own = cycle.order(gang)
        if own < order and (found is None or own < found.order):
            found = Head(own, gang)
    return found.gang if found is not None else None


def _report_behind(cycle: Cycle, queue: SchedulingQueue, name: str, ahead: GangState) -> None:
    def behind(gang: GangState) -> Diagnosis:
        return diagnosis.behind(gang, cycle.titles.of(ahead, gang.key.namespace), name)

    for equivalence in queue.active_in(name):
        head = equivalence.head()
        if head is not None and head.order.band is Band.MINIMA:
            for gang in equivalence.first(REPORTED_BEHIND):
                cycle.queues.hold_behind(gang, behind)
