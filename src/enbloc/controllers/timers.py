"""When whom to look at again: one instant a key. The next is found at once, however many wait."""

from __future__ import annotations

import heapq
from typing import Final

STALE_BOUND: Final = 64
"""So many entries that were changed or taken back are always put up with."""


class Timers:
    """By UID. An entry is never searched for: one that was changed or taken back is stale."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self._tidy_at = STALE_BOUND

    def set(self, key: str, at: int) -> None:
        """In place of what was set before."""
        if self._at.get(key) == at:
            return
        self._at[key] = at
        heapq.heappush(self._heap, (at, key))
        if len(self._heap) >= self._tidy_at:
            self._heap = [(instant, one) for one, instant in self._at.items()]
            heapq.heapify(self._heap)
            self._tidy_at = 2 * len(self._heap) + STALE_BOUND

    def get(self, key: str) -> int | None:
        return self._at.get(key)

    def drop(self, key: str) -> None:
        self._at.pop(key, None)

    def take_due(self, now: int) -> list[str]:
        """Those whose time has come, each once."""
        found: list[str] = []
        while (at := self.next()) is not None and at <= now:
            _, key = heapq.heappop(self._heap)
            del self._at[key]
            found.append(key)
        return found

    def next(self) -> int | None:
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
