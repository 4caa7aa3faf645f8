"""One timer a key, in nanoseconds. Finding the next costs the same however many there are."""

from __future__ import annotations

import heapq
from typing import Final

STALE_BOUND: Final = 64
"""The heap is rebuilt when it has more than 64 stale entries and as many stale as live ones."""


class Timers:
    """By UID. Changed and cancelled entries stay in the heap as stale ones and are skipped."""

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
