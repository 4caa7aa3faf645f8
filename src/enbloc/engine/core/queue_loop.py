"""How gangs are taken out of a scheduling queue: the next queue is chosen anew after each gang (G8)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import NamedTuple

import msgspec

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.next_queue import NextQueue
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Head, SchedulingQueue
from enbloc.engine.core.said import said_by_each
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey

Serve = Callable[[GangState], Diagnosis | None]
"""One attempt for a gang, or for all that start with it; a diagnosis says why it failed."""

REPORTED_BEHIND = 16
"""How many gangs of an equivalence class say that a FIFO queue blocks them."""


class Turned(NamedTuple):
    """An equivalence class whose head has its turn."""

    equivalence: EquivalenceClass
    order: Order
    gang: GangState


def serve_all(cycle: Cycle, queue: SchedulingQueue, serve: Serve, with_enqueued: bool = False) -> None:
    """Serves all active gangs. A gang that fails does not block the gangs behind it, except in a FIFO queue."""
    _Service(cycle, queue, serve, with_enqueued).run()


class _Service:
    def __init__(self, cycle: Cycle, queue: SchedulingQueue, serve: Serve, with_enqueued: bool) -> None:
        self._cycle = cycle
        self._queue = queue
        self._serve = serve
        self._kept = cycle.features.keeps_room(cycle) if queue is not cycle.queues.admission else None
        self._queues = NextQueue(cycle, with_enqueued, self._kept)
        self._failures = _Failures(cycle) if queue is cycle.queues.placement else None
        self._put_off: set[str] = set()
        """Queues of which a gang failed for now: the next cycle tries it again."""

    def run(self) -> None:
        self._line_up_all()
        while (name := self._queues.choose()) is not None:
            one = self._next_of(name)
            if one is not None:
                self._turn(name, one)
        if self._kept is not None:
            self._kept.release()

    def _line_up_all(self) -> None:
        """Active classes; and unschedulable ones that pods which are placed before their turn could help (G9)."""
        queue = self._queue
        active = [one for name in queue.active() for one in queue.active_in(name)]
        may_help = active or EventKind.POD_PLACED in self._cycle.state.events.kinds
        for equivalence in [*active, *queue.helped()] if may_help else ():
            equivalence.in_line = False
            self._line_up(equivalence, asleep=True)

    def _line_up(self, equivalence: EquivalenceClass, *, asleep: bool = False) -> None:
        """The head of an equivalence class is lined up for the whole class. `asleep`: also if it is unschedulable."""
        head = equivalence.head()
        if head is None:
            self._queue.drop(equivalence)
        elif (asleep or not equivalence.unschedulable) and not equivalence.in_line:
            equivalence.in_line = True
            line = self._queues.line(equivalence.queue)
            heapq.heappush(line, (head.order, equivalence.number, equivalence))

    def _next_of(self, name: str) -> Turned | None:
        """The first in the line of a queue, unless it has no turn now."""
        cycle, line = self._cycle, self._queues.lines[name]
        order, _, equivalence = heapq.heappop(line)
        equivalence.in_line = False
        head = equivalence.head()
        if head is None or head.order != order:  # the gang that was lined up has left
            self._line_up(equivalence, asleep=True)
            return None
        if equivalence.unschedulable and not cycle.queues.wake_in_turn(self._queue, equivalence):
            return None
        if order.band is Band.MINIMA and self._is_blocked(name, order):
            line[:] = [entry for entry in line if entry[0].band is not Band.MINIMA]  # FIFO does not block surplus
            heapq.heapify(line)
            return None
        if order.band is Band.SURPLUS and cycle.features.not_now(name, order):
            return None  # it stays active: the next cycle tries again
        return Turned(equivalence, order, head.gang)

    def _is_blocked(self, name: str, order: Order) -> bool:
        """Whether a FIFO queue blocks what comes now."""
        cycle = self._cycle
        if not cycle.state.queues.get(name).facts.fifo:
            return False
        ahead = blocker(cycle, self._queue, name, order)
        if ahead is not None:
            _report_behind(cycle, self._queue, name, ahead)
        return ahead is not None or name in self._put_off

    def _turn(self, name: str, one: Turned) -> None:
        cycle, equivalence = self._cycle, one.equivalence
        for_minima = one.order.band is Band.MINIMA
        is_kept = self._kept is not None and self._kept.take_for(one.gang)
        requeued = cycle.intake.requeue_if_unlike(one.gang)  # terms of awaited pods count too
        if requeued is not None:
            self._line_up(equivalence)
            self._line_up(requeued)
            return
        failures = self._failures
        failure = failures.recall(one) if failures is not None and not is_kept else None
        if failure is None:
            with Turn(cycle, one.gang) as turn:
                failure = self._serve(one.gang)
            if turn.failed:
                self._line_up(equivalence)
                return
            if failures is not None and failure is not None:
                failures.note(one, failure)
        if failure is None:
            self._after_start(name, one)
        elif not is_kept:
            why = said_by_each(cycle, one.gang, failure)
            cycle.queues.mark_unschedulable(self._queue, equivalence, why, of_gang=for_minima)
        elif for_minima:
            self._put_off.add(name)  # it stays active: the next cycle tries again

    def _after_start(self, name: str, one: Turned) -> None:
        if self._cycle.features.reorders:
            heapq.heapify(self._queues.lines[name])
        self._line_up(one.equivalence)
        for mate in self._cycle.units.mates(one.gang):  # they wait again, for their surplus
            again = self._cycle.queues.equivalence_of(mate)
            if again is not None and self._queue.holds(again):
                self._line_up(again)


class _Failures:
    """Failed attempts of this cycle: of two that ask for the same, and differ in order alone, the second fails like the
    first (G9). With as many orders as gangs (by run time) each is a class of its own. Of gangs that are equal to no
    others, a feature knows when that is so nevertheless."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._counts = not cycle.features.constrains_by_order()
        self._found: dict[Hashable, tuple[list[GangKey], Diagnosis]] = {}
        self._asked: Hashable = None

    def recall(self, one: Turned) -> Diagnosis | None:
        self._asked = self._what(one)
        keys, failure = self._found.get(self._asked, (None, None)) if self._asked is not None else (None, None)
        if keys is None or failure is None or not failure.of_gangs:
            return failure
        new = dict(zip(keys, self._cycle.starting(one.gang), strict=True))
        of_gangs = {new[key].key: why for key, why in failure.of_gangs.items()}
        return msgspec.structs.replace(failure, of_gangs=of_gangs)

    def note(self, one: Turned, failure: Diagnosis) -> None:
        asked = self._what(one)
        if asked is not None and asked == self._asked:
            self._found[asked] = ([gang.key for gang in self._cycle.starting(one.gang)], failure)

    def _what(self, one: Turned) -> Hashable:
        """What is asked for, and as of which facts."""
        equivalence, order, cycle = one.equivalence, one.order, self._cycle
        if not self._counts:
            return None
        if equivalence.monotone:  # whatever the plugins' keys of its order
            asked = (equivalence.queue, equivalence.facts, order.is_last, order.is_whole, order.band)
            return (asked, len(cycle.served))
        shape = cycle.features.alike(cycle, one.gang)
        return (shape, cycle.facts()) if shape is not None else None


def is_blocked(cycle: Cycle, gang: GangState) -> bool:
    """Whether a gang waits in a FIFO queue behind one that cannot start: room would not help it."""
    name = gang.spec.queue
    if not cycle.state.queues.get(name).facts.fifo:
        return False
    return blocker(cycle, cycle.queues.placement, name, cycle.order(gang)) is not None


def blocker(cycle: Cycle, served: SchedulingQueue, name: str, order: Order) -> GangState | None:
    """In a FIFO queue: a gang before this one that is unschedulable, not enqueued, or enqueued and without pods. An
    active gang in another scheduling queue blocks too: it was not attempted yet."""
    classes = [(queue, one) for queue in cycle.queues.all() for one in queue.in_queue(name)]
    heads = [one.head() for queue, one in classes if _may_block(one, active=queue is served)]
    found = [head for head in heads if head is not None and head.order.band is Band.MINIMA]
    found += [Head(cycle.order(gang), gang) for gang in cycle.features.in_line(name)]
    first = min(found, key=lambda head: head.order, default=None)
    return first.gang if first is not None and first.order < order else None


def _may_block(equivalence: EquivalenceClass, *, active: bool) -> bool:
    """`active`: its queue is being served. A unit that lacks members holds what it can, and is not in line (K6)."""
    why = equivalence.diagnosis
    if why is not None and why.reason is PendingReason.GROUP_NOT_READY:
        return False
    return equivalence.unschedulable or not active


def _report_behind(cycle: Cycle, queue: SchedulingQueue, name: str, ahead: GangState) -> None:
    def behind(gang: GangState) -> Diagnosis:
        return diagnosis.behind(gang, cycle.titles.of(ahead, gang.key.namespace), name)

    for equivalence in queue.active_in(name):
        head = equivalence.head()
        if head is not None and head.order.band is Band.MINIMA:
            for gang in equivalence.first(REPORTED_BEHIND):
                cycle.queues.hold_behind(gang, behind)
