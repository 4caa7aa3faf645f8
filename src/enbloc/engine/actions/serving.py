"""How gangs are taken out of their lines: the next queue is chosen anew after each gang (G8)."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from enbloc.engine import story
from enbloc.engine.engine import MINIMA, SURPLUS, Engine
from enbloc.engine.story import Story
from enbloc.engine.tasks import GangState
from enbloc.engine.waiting import Bucket, Order, Waiting

Serve = Callable[[GangState], Story | None]
"""Serves one gang; a story says why that failed."""

Line = list[tuple[Order, int, Bucket]]


def serve_all(engine: Engine, lane: Waiting, serve: Serve, with_let_in: bool = False) -> None:
    """Serves everybody who is awake. A gang that fails does not block those behind it, but in a FIFO queue it does."""
    lines: dict[str, Line] = {}
    for queue in lane.awake():
        line = lines[queue] = []
        for bucket in lane.awake_in(queue):
            bucket.in_line = False
            _stand(lane, line, bucket)
    while True:
        name = _next_queue(engine, lines, with_let_in)
        if name is None:
            return
        line = lines[name]
        order, _, bucket = heapq.heappop(line)
        bucket.in_line = False
        head = bucket.head()
        if head is None or head[0] != order:  # the one that stood here has left
            _stand(lane, line, bucket)
            continue
        gang, band = head[1], _band(order)
        if band == MINIMA and engine.state.queues.get(name).facts.fifo:
            ahead = _blocker(engine, lane, name, order)
            if ahead is not None:
                _tell_behind(engine, lane, name, ahead)
                line[:] = [entry for entry in line if _band(entry[0]) != MINIMA]  # surplus is behind nobody
                heapq.heapify(line)
                continue
        if band == SURPLUS and engine.surplus_waits(name, order):
            continue  # it stays awake: the next cycle looks again
        if engine.stands_alone_now(gang):
            _stand(lane, line, bucket)
            _stand(lane, line, gang.bucket)
            continue
        told = serve(gang)
        if told is not None:
            engine.sleep(lane, bucket, told, of_gang=band == MINIMA)
            continue
        _stand(lane, line, bucket)
        if gang.bucket is not None and lane.holds(gang.bucket):  # it waits again, for its surplus
            _stand(lane, line, gang.bucket)


def _stand(lane: Waiting, line: Line, bucket: Bucket) -> None:
    """The first of a bucket stands in line for the others."""
    head = bucket.head()
    if head is None:
        lane.drop(bucket)
    elif not bucket.asleep and not bucket.in_line:
        bucket.in_line = True
        heapq.heappush(line, (head[0], bucket.number, bucket))


def _next_queue(engine: Engine, lines: dict[str, Line], with_let_in: bool) -> str | None:
    """The queue of the highest priority, then of the lowest share."""
    waiting = [queue for queue, line in lines.items() if line]
    if len(waiting) < 2:
        return waiting[0] if waiting else None
    if not engine.plugins.queue_order:
        return min(waiting, key=lambda name: lines[name][0][0])
    queues, totals = engine.state.queues, engine.state.nodes.totals()
    return min(waiting, key=lambda name: queues.order(queues.get(name), totals, with_let_in))


def _band(order: Order) -> int:
    band: int = order[-5]
    return band


def is_behind(engine: Engine, gang: GangState) -> bool:
    """Whether it sleeps in a FIFO queue behind somebody who cannot start: room would not help it."""
    queue = gang.spec.queue
    if not engine.state.queues.get(queue).facts.fifo:
        return False
    return _blocker(engine, engine.allocating, queue, engine.order(gang, MINIMA)) is not None


def _blocker(engine: Engine, served: Waiting, queue: str, order: Order) -> GangState | None:
    """In a FIFO queue: a gang before this one that sleeps on its minima, was not let in, or was and has no pods yet.
    One that stands in another lane is waited for though it is awake: nobody knows yet what becomes of it."""
    found: tuple[Order, GangState] | None = None
    lanes = (engine.knocking, engine.allocating, engine.backfilling)
    for lane, bucket in ((each, bucket) for each in lanes for bucket in each.all_in(queue)):
        head = bucket.head() if bucket.asleep or lane is not served else None
        if head is not None and _band(head[0]) == MINIMA and head[0] < order and (found is None or head[0] < found[0]):
            found = head
    for gang in engine.expected(queue):
        turn = engine.order(gang, MINIMA)
        if turn < order and (found is None or turn < found[0]):
            found = (turn, gang)
    return found[1] if found else None


def _tell_behind(engine: Engine, lane: Waiting, queue: str, ahead: GangState) -> None:
    for bucket in lane.awake_in(queue):
        head = bucket.head()
        if head is not None and _band(head[0]) == MINIMA:
            for gang in bucket.first(16):
                gang.why = story.behind(gang, ahead)
                engine.telling.tell(gang, gang.why, of_gang=True)
