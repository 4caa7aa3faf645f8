"""Which queue is served next: the one of the highest priority, then of the lowest share (G8).

The order of a queue changes when it, or a queue above it, uses more or less. Only such queues are looked at again, so
that choosing does not cost more the more queues there are.
"""

from __future__ import annotations

import heapq
from contextlib import nullcontext

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import KeptRoom
from enbloc.engine.core.ordering import Order
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.core.tables.queues import ROOT, Queue, QueueOrder

Line = list[tuple[Order, int, EquivalenceClass]]
"""A heap of the heads of equivalence classes, by order."""


class NextQueue:
    """The lines of gangs by queue, and the order of the queues."""

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
