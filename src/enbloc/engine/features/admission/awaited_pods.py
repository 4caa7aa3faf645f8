"""Gangs that are enqueued and whose pods do not exist yet, by queue.

In a FIFO queue they keep their turn; surplus of other gangs waits for them for a short time (G3, G8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import GangOrder, Order
from enbloc.engine.core.state.gang_table import GangDemand
from enbloc.engine.core.tables.queues import Queue, QueueTree
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.features.admission.awaited_room import AwaitedRoom
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
        self._queue_of: dict[GangKey, str] = {}
        self._gangs: dict[str, dict[GangKey, GangState]] = {}
        self._amounts: dict[GangKey, Mapping[int, int]] = {}
        self._awaited: dict[str, Counter[int]] = {}
        """By queue and column: what the pods that are awaited will use."""
        self._due_ns: int | None = None

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns
        self._due_ns = None

    def due(self) -> int | None:
        return self._due_ns

    def gang_read(self, gang: GangState) -> None:
        self.update(gang)

    def update(self, gang: GangState) -> None:
        """Pods are awaited of a gang that counts as enqueued and lacks members."""
        awaited = self._demand.enqueued(gang) and gang.missing()
        self._set(gang, gang.spec.queue if awaited else "")

    def enqueued(self, gang: GangState) -> None:
        if gang.missing():
            self.update(gang)

    def held_back(self, gang: GangState) -> None:
        """No gang waits for the pods of one that is not in line (G8, N1, S8)."""
        self._set(gang, "")

    def gang_gone(self, gang: GangState) -> None:
        self._set(gang, "")

    def keeps_room(self, cycle: Cycle) -> AwaitedRoom:
        return AwaitedRoom(cycle, self)

    def _set(self, gang: GangState, queue: str) -> None:
        known = self._queue_of.get(gang.key, "")
        amounts = self._demand.enqueued(gang) if queue else {}
        if known == queue and self._amounts.get(gang.key, {}) == amounts:
            return
        if known:
            del self._queue_of[gang.key]
            del self._gangs[known][gang.key]
            self._awaited[known].subtract(self._amounts.pop(gang.key))
            if not self._gangs[known]:
                del self._gangs[known], self._awaited[known]
        if queue:
            self._queue_of[gang.key] = queue
            self._gangs.setdefault(queue, {})[gang.key] = gang
            self._amounts[gang.key] = amounts
            self._awaited.setdefault(queue, Counter()).update(amounts)

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
