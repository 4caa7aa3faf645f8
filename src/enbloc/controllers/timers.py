"""When the controllers go on: timers by key, and how many objects an owner creates at one instant."""

from __future__ import annotations

import heapq
from typing import Final

from enbloc.units import SECOND

BATCH: Final = 1_000
PAUSE_NS: Final = SECOND // 1_000
STALE_BOUND: Final = 64
"""The heap is rebuilt when it has more than 64 stale entries and as many stale as live ones."""


class Timers:
    """One a key, in nanoseconds; finding the next costs the same however many there are. Changed and cancelled entries
    stay in the heap as stale ones and are skipped."""

    def __init__(self) -> None:
        self._at_ns: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self._rebuild_at = STALE_BOUND

    def set(self, key: str, at_ns: int) -> None:
        """Replaces the key's timer."""
        if self._at_ns.get(key) == at_ns:
            return
        self._at_ns[key] = at_ns
        heapq.heappush(self._heap, (at_ns, key))
        if len(self._heap) >= self._rebuild_at:
            self._heap = [(instant, one) for one, instant in self._at_ns.items()]
            heapq.heapify(self._heap)
            self._rebuild_at = 2 * len(self._heap) + STALE_BOUND

    def get(self, key: str) -> int | None:
        return self._at_ns.get(key)

    def cancel(self, key: str) -> None:
        self._at_ns.pop(key, None)

    def take_due(self, now_ns: int) -> list[str]:
        """The keys whose time has come, each once."""
        found: list[str] = []
        while (at_ns := self.next()) is not None and at_ns <= now_ns:
            _, key = heapq.heappop(self._heap)
            del self._at_ns[key]
            found.append(key)
        return found

    def next(self) -> int | None:
        while self._heap and self._at_ns.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None


class Batches:
    """By owner, or whatever creates together. What is beyond a batch follows a moment later: `up` serves requests in
    between, and no list of all that a huge workload lacks is ever made."""

    def __init__(self) -> None:
        self._now_ns = 0
        self._created: dict[str, int] = {}
        self._timers = Timers()

    def room(self, key: str, now_ns: int) -> int:
        """How many more may be created at this instant."""
        if now_ns != self._now_ns:
            self._now_ns = now_ns
            self._created.clear()
        return BATCH - self._created.get(key, 0)

    def add(self, key: str, count: int, now_ns: int) -> None:
        """So many are created; if that was the batch of this instant, the next is due soon."""
        left = self.room(key, now_ns) - count
        self._created[key] = BATCH - left
        if left <= 0:
            self._timers.set(key, now_ns + PAUSE_NS)

    def take_due(self, now_ns: int) -> list[str]:
        return self._timers.take_due(now_ns)

    def next(self) -> int | None:
        return self._timers.next()
