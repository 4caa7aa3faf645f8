"""How gangs are taken out of a scheduling queue (G8): after each gang the next queue is chosen anew, the one of the
highest priority, then of the lowest share.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from contextlib import nullcontext
from typing import NamedTuple

import msgspec

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.feature import KeptRoom
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Head, SchedulingQueue
from enbloc.engine.core.tables.queues import ROOT, Queue, QueueOrder
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey

Line = list[tuple[Order, int, EquivalenceClass]]
"""A heap of the heads of equivalence classes, by order."""


class NextQueue:
    """The lines of gangs by queue, and the order of the queues, which changes when a queue, or one above it, uses more
    or less. Only such queues are looked at again, so that choosing does not cost more the more queues there are."""

    def __init__(self, cycle: Cycle, with_enqueued: bool, kept: KeptRoom | None) -> None:
        self.lines: dict[str, Line] = {}
        self._cycle = cycle
        self._queues = cycle.state.queues
        self._with_enqueued = with_enqueued
        self._kept = kept
        self._waiting: dict[str, None] = {}
        """Queues whose line was not empty when it was last looked at."""
        self._keys: dict[str, QueueOrder] = {}
        self._heap: list[tuple[QueueOrder, str]] = []
        """By key; an entry whose key is no longer that of its queue is outdated."""
        self._outdated: dict[str, None] = {}
        """Waiting queues whose key is to be computed."""
        self._deserved_version = -1

    def line(self, name: str) -> Line:
        """The line of a queue, in which a gang is about to wait."""
        if name not in self._waiting:
            self._waiting[name] = None
            self._outdated[name] = None
        return self.lines.setdefault(name, [])

    def choose(self) -> str | None:
        if len(self._waiting) > 1 and self._cycle.parts.plugins.queue_order:
            totals = self._cycle.state.foreign_room.shared()
            with self._kept.uncounted() if self._kept is not None else nullcontext():
                self._queues.update_deserved(totals)
                self._update_keys()
                return self._lowest()
        if len(self._waiting) == 1:
            (name,) = self._waiting
            if self.lines[name]:
                return name
        for name in [name for name in self._waiting if not self.lines[name]]:
            self._leave(name)
        return min(self._waiting, key=lambda name: self.lines[name][0][0], default=None)

    def _leave(self, name: str) -> None:
        del self._waiting[name]
        self._keys.pop(name, None)
        self._outdated.pop(name, None)

    def _lowest(self) -> str | None:
        while self._heap:
            key, name = self._heap[0]
            if self._keys.get(name) == key and self.lines[name]:
                return name
            heapq.heappop(self._heap)
            if self._keys.get(name) == key:
                self._leave(name)
        return None

    def _update_keys(self) -> None:
        touched = self._queues.take_touched()
        if self._deserved_version != self._queues.deserved_version:
            self._deserved_version = self._queues.deserved_version
            self._keys, self._heap, self._outdated = {}, [], dict(self._waiting)
        else:
            for queue in touched:
                self._forget(queue)
        outdated, self._outdated = self._outdated, {}
        for name in outdated:
            key = self._keys[name] = self._queues.order_now(self._queues.get(name), self._with_enqueued)
            heapq.heappush(self._heap, (key, name))

    def _forget(self, queue: Queue) -> None:
        """What a queue uses changed: its order and that of the queues below it are outdated."""
        if queue.name == ROOT:
            return  # it is above all of them, and does not count
        if self._keys.pop(queue.name, None) is not None:
            self._outdated[queue.name] = None
        for child in queue.children:
            self._forget(child)


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
            why = cycle.obstacles.said_by_each(one.gang, failure)
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
        self._facts: object = None
        """As of the attempt that may be noted."""

    def recall(self, one: Turned) -> Diagnosis | None:
        if not one.equivalence.monotone:
            self._facts = self._cycle.facts()
        known = self._found.get(self._what(one)) if self._found else None
        if known is None:
            return None
        keys, failure = known
        if not failure.of_gangs:
            return failure
        new = dict(zip(keys, self._cycle.starting(one.gang), strict=True))
        of_gangs = {new[key].key: why for key, why in failure.of_gangs.items()}
        return msgspec.structs.replace(failure, of_gangs=of_gangs)

    def note(self, one: Turned, failure: Diagnosis) -> None:
        asked = self._what(one)
        if asked is not None and (one.equivalence.monotone or self._facts == self._cycle.facts()):
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
