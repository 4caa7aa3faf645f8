"""How gangs are taken out of their lines: the next queue is chosen anew after each gang (G8)."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.engine import Engine
from enbloc.engine.ordering import Band, Order
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.tables.tasks import GangState

Serve = Callable[[GangState], Diagnosis | None]
"""Serves one gang; a story says why that failed."""

Line = list[tuple[Order, int, EquivalenceClass]]


def serve_all(engine: Engine, lane: SchedulingQueue, serve: Serve, with_enqueued: bool = False) -> None:
    """Serves everybody who is awake. A gang that fails does not block those behind it, but in a FIFO queue it does."""
    lines: dict[str, Line] = {}
    for queue in lane.active():
        line = lines[queue] = []
        for equivalence in lane.active_in(queue):
            equivalence.in_line = False
            _stand(lane, line, equivalence)
    while True:
        name = _next_queue(engine, lines, with_enqueued)
        if name is None:
            return
        line = lines[name]
        order, _, equivalence = heapq.heappop(line)
        equivalence.in_line = False
        head = equivalence.head()
        if head is None or head[0] != order:  # the one that stood here has left
            _stand(lane, line, equivalence)
            continue
        gang, band = head[1], order.band
        if band is Band.MINIMA and engine.state.queues.get(name).facts.fifo:
            ahead = _blocker(engine, lane, name, order)
            if ahead is not None:
                _tell_behind(engine, lane, name, ahead)
                line[:] = [entry for entry in line if entry[0].band is not Band.MINIMA]  # surplus is behind nobody
                heapq.heapify(line)
                continue
        if band is Band.SURPLUS and engine.surplus_waits(name, order):
            continue  # it stays awake: the next cycle looks again
        if engine.stands_alone_now(gang):
            _stand(lane, line, equivalence)
            _stand(lane, line, gang.equivalence)
            continue
        told = serve(gang)
        if told is not None:
            engine.sleep(lane, equivalence, told, of_gang=band is Band.MINIMA)
            continue
        _stand(lane, line, equivalence)
        if gang.equivalence is not None and lane.holds(gang.equivalence):  # it waits again, for its surplus
            _stand(lane, line, gang.equivalence)


def _stand(lane: SchedulingQueue, line: Line, equivalence: EquivalenceClass) -> None:
    """The first of a bucket stands in line for the others."""
    head = equivalence.head()
    if head is None:
        lane.drop(equivalence)
    elif not equivalence.unschedulable and not equivalence.in_line:
        equivalence.in_line = True
        heapq.heappush(line, (head[0], equivalence.number, equivalence))


def _next_queue(engine: Engine, lines: dict[str, Line], with_enqueued: bool) -> str | None:
    """The queue of the highest priority, then of the lowest share."""
    waiting = [queue for queue, line in lines.items() if line]
    if len(waiting) < 2:
        return waiting[0] if waiting else None
    if not engine.plugins.queue_order:
        return min(waiting, key=lambda name: lines[name][0][0])
    queues, totals = engine.state.queues, engine.state.nodes.totals()
    return min(waiting, key=lambda name: queues.order(queues.get(name), totals, with_enqueued))


def is_behind(engine: Engine, gang: GangState) -> bool:
    """Whether it sleeps in a FIFO queue behind somebody who cannot start: room would not help it."""
    queue = gang.spec.queue
    if not engine.state.queues.get(queue).facts.fifo:
        return False
    return _blocker(engine, engine.allocating, queue, engine.order(gang)) is not None


def _blocker(engine: Engine, served: SchedulingQueue, queue: str, order: Order) -> GangState | None:
    """In a FIFO queue: a gang before this one that sleeps on its minima, was not let in, or was and has no pods yet.
    One that stands in another lane is waited for though it is awake: nobody knows yet what becomes of it."""
    found: tuple[Order, GangState] | None = None
    lanes = (engine.knocking, engine.allocating, engine.backfilling)
    for lane, equivalence in ((each, equivalence) for each in lanes for equivalence in each.in_queue(queue)):
        head = equivalence.head() if equivalence.unschedulable or lane is not served else None
        if (
            head is not None
            and head[0].band is Band.MINIMA
            and head[0] < order
            and (found is None or head[0] < found[0])
        ):
            found = head
    for gang in engine.expected(queue):
        turn = engine.order(gang)
        if turn < order and (found is None or turn < found[0]):
            found = (turn, gang)
    return found[1] if found else None


def _tell_behind(engine: Engine, lane: SchedulingQueue, queue: str, ahead: GangState) -> None:
    for equivalence in lane.active_in(queue):
        head = equivalence.head()
        if head is not None and head[0].band is Band.MINIMA:
            for gang in equivalence.first(16):
                gang.why = diagnosis.behind(gang, ahead)
                engine.reporter.tell(gang, gang.why, of_gang=True)
