"""Gangs that are enqueued and whose pods do not exist yet, by queue.

In a FIFO queue they keep their turn; surplus of other gangs waits for them for a short time (G3, G8). Until the pods of
a Job are created, for a bounded time, its minima are placed from its templates wherever gangs of lower priority are
attempted. So no pod is started and preempted in one instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from enbloc.engine.core.claims.placeholders import make_placeholders
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import GangOrder, Order
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.gang_table import GangDemand
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.queues import Queue, QueueTree
from enbloc.engine.core.tables.resources import Request
from enbloc.engine.core.tables.tasks import GangState
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

PODS_WITHIN_NS = 5 * SECOND
"""How long surplus waits for the pods of an enqueued gang: a controller needs far less."""

MINIMA_WITHIN_NS = SECOND
"""How long gangs of lower priority leave room for the minima of an enqueued gang whose pods do not exist yet."""

ABOVE_BOUND = 64
"""For at most 64 such gangs, the first in order, is room left."""


class AwaitedPods(Feature):
    def __init__(self, order: GangOrder, demand: GangDemand) -> None:
        self._order = order
        self._demand = demand
        self._now_ns = 0
        self._gangs: dict[str, dict[GangKey, GangState]] = {}
        self._known: dict[GangKey, tuple[str, Mapping[int, int]]] = {}
        """The queue of each of them, and what its pods will use."""
        self._awaited: dict[str, Counter[int]] = {}
        """By queue and column: what the pods that are awaited will use."""
        self._due_ns: int | None = None

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._due_ns = None

    def due(self) -> int | None:
        return self._due_ns

    def gang_read(self, gang: GangState) -> None:
        """Pods are awaited of a gang that counts as enqueued and lacks members."""
        amounts = self._demand.enqueued(gang)
        if amounts and gang.need.missing:
            self._put(gang, amounts)
        else:
            self._drop(gang)

    def enqueued(self, gang: GangState) -> None:
        if gang.need.missing:
            self.gang_read(gang)

    def held_back(self, gang: GangState) -> None:
        """No gang waits for the pods of one that is not in line (G8, N1, S8)."""
        self._drop(gang)

    def gang_gone(self, gang: GangState) -> None:
        self._drop(gang)

    def keeps_room(self, cycle: Cycle) -> AwaitedRoom:
        return AwaitedRoom(cycle, self)

    def _put(self, gang: GangState, amounts: Mapping[int, int]) -> None:
        queue = gang.spec.queue
        if self._known.get(gang.key) != (queue, amounts):
            self._drop(gang)
            self._known[gang.key] = (queue, amounts)
            self._gangs.setdefault(queue, {})[gang.key] = gang
            self._awaited.setdefault(queue, Counter()).update(amounts)

    def _drop(self, gang: GangState) -> None:
        queue, amounts = self._known.pop(gang.key, ("", {}))
        if queue:
            del self._gangs[queue][gang.key]
            self._awaited[queue].subtract(amounts)
            if not self._gangs[queue]:
                del self._gangs[queue], self._awaited[queue]

    def beyond_share(self, own: Queue, queues: QueueTree) -> Counter[int]:
        """S4: by column, what the awaited pods of other queues would use beyond the share of their queue."""
        found: Counter[int] = Counter()
        for name, awaited in self._awaited.items():
            queue = queues.get(name)
            if queue is own:
                continue
            for column, amount in awaited.items():
                room = max(0, int(queue.deserved[column] - queue.used[column]))
                found[column] += max(0, amount - room)
        return found

    def queues(self) -> Iterable[str]:
        """Queues with gangs whose pods are awaited."""
        return self._gangs.keys()

    def in_line(self, queue: str) -> list[GangState]:
        return list(self._gangs.get(queue, {}).values())

    def not_now(self, queue: str, order: Order) -> bool:
        """G3: whether surplus of this order waits for the pods of a gang that comes before it; for a bounded time."""
        for gang in self.in_line(queue):
            since_ns = gang.status.enqueued_at_ns
            if since_ns is None or self._now_ns >= since_ns + PODS_WITHIN_NS or self._order(gang) >= order:
                continue
            until_ns = since_ns + PODS_WITHIN_NS
            self._due_ns = until_ns if self._due_ns is None else min(until_ns, self._due_ns)
            return True
        return False

    def above(self, priority: int) -> list[GangState]:
        """G8: gangs of higher priority that were just enqueued and whose pods are being created, in order; for a
        bounded time, and not if the API server refused a pod."""
        found = []
        for gang in (gang for gangs in self._gangs.values() for gang in gangs.values()):
            since_ns = gang.status.enqueued_at_ns
            if since_ns is None or gang.priority <= priority or gang.spec.failed_create or not gang.spec.first_wave:
                continue
            until_ns = since_ns + MINIMA_WITHIN_NS
            if self._now_ns < until_ns:
                self._due_ns = until_ns if self._due_ns is None else min(until_ns, self._due_ns)
                found.append(gang)
        return sorted(found, key=self._order)[:ABOVE_BOUND]


def puts_off(cycle: Cycle) -> Callable[[GangState], bool]:
    """Whether room is left to pods of higher priority that are being created: the gang is tried in the next cycle,
    which follows when they exist."""
    awaited, known = cycle.features.get(AwaitedPods), dict[tuple[GangKey, ...], bool]()

    def is_put_off(gang: GangState) -> bool:
        above = tuple(one.key for one in awaited.above(gang.priority))
        if above and above not in known:
            room = AwaitedRoom(cycle, awaited)
            known[above] = room.take_for(gang)
            room.release()
        return bool(above) and known[above]

    return is_put_off


class AwaitedRoom:
    """Placed in a transaction that is kept while gangs of one priority are attempted, and rolled back after that."""

    def __init__(self, cycle: Cycle, awaited: AwaitedPods) -> None:
        self._cycle = cycle
        self._awaited = awaited
        self._transaction = Transaction(cycle.state)
        self._above: list[GangState] = []
        self._uses: Counter[tuple[str, Request]] = Counter()
        """By queue and request: the number of pods that room is left to."""

    def take_for(self, gang: GangState) -> bool:
        """Takes the room that this gang must leave to others; whether there is any."""
        above = self._awaited.above(gang.priority)
        if above != self._above:
            self._transaction.rollback()
            self._above = above
            for one in above:
                self._place(one)
            self._uses = Counter((task.gang.spec.queue, task.cls.request) for task in self._transaction.placed)
        return bool(self._transaction.checkpoint)

    def _place(self, gang: GangState) -> None:
        """Places its minima, if they fit; if not it will evict, or wait itself."""
        state = self._cycle.state
        tasks = [
            task
            for role, template in gang.spec.first_wave.items()
            for task in make_placeholders(state, gang, role, template, 0, template.count)
        ]
        before = self._transaction.checkpoint
        request, constraints = PlacementRequest(gang, tasks), self._cycle.constraints(gang)
        if attempt(self._cycle.placer, [request], self._transaction, constraints, keep=True) is not None:
            self._transaction.rollback(before)

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """While it lasts, queues do not use the room that is left to awaited pods: it is no part of their share."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def _count(self, by: int) -> None:
        queues = self._cycle.state.queues
        for (queue, request), count in self._uses.items():
            queues.allocate(queues.get(queue), request, by * count)

    def release(self) -> None:
        self._transaction.rollback()
        self._above = []
