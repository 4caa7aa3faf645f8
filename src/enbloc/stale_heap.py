"""A priority queue by time whose entries may become stale.

Entries are never searched for: the owner knows which ones no longer hold. Stale entries are dropped when they reach the
head, and all at once when they could be the majority, so that the heap stays within twice the live entries plus a
slack.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

E = TypeVar("E", bound=Hashable)


class StaleHeap(Generic[E]):
    """Entries by time; those of one time in the order in which they were pushed."""

    def __init__(self, is_stale: Callable[[int, E], bool], slack: int) -> None:
        self._is_stale = is_stale
        self._slack = slack
        self._heap: list[tuple[int, int, E]] = []
        self._pushed = 0
        self._compact_at = slack

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, at: int, entry: E) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (at, self._pushed, entry))
        if len(self._heap) >= self._compact_at:
            self._compact()

    def next_at(self) -> int | None:
        """The time of the first entry that holds; `None` if there is none."""
        while self._heap and self._is_stale(self._heap[0][0], self._heap[0][2]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> E | None:
        """Removes and returns the first entry that holds, if its time has come."""
        at = self.next_at()
        return heapq.heappop(self._heap)[2] if at is not None and at <= now else None

    def _compact(self) -> None:
        """Drops stale entries and repetitions."""
        live: dict[tuple[int, E], int] = {}
        for at, number, entry in self._heap:
            if not self._is_stale(at, entry):
                live[at, entry] = min(number, live.get((at, entry), number))
        self._heap = sorted((at, number, entry) for (at, entry), number in live.items())
        self._compact_at = 2 * len(self._heap) + self._slack
