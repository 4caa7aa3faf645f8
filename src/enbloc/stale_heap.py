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

    def push(self, at_ns: int, entry: E) -> None:
        self._pushed += 1
        heapq.heappush(self._heap, (at_ns, self._pushed, entry))
        if len(self._heap) >= self._compact_at:
            self._compact()

    def next_ns(self) -> int | None:
        """The time of the first entry that holds; `None` if there is none."""
        while self._heap and self._is_stale(self._heap[0][0], self._heap[0][2]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_ns: int) -> E | None:
        """Removes and returns the first entry that holds, if its time has come."""
        at_ns = self.next_ns()
        return heapq.heappop(self._heap)[2] if at_ns is not None and at_ns <= now_ns else None

    def _compact(self) -> None:
        """Drops stale entries and repetitions."""
        live: dict[tuple[int, E], int] = {}
        for at_ns, number, entry in self._heap:
            if not self._is_stale(at_ns, entry):
                live[at_ns, entry] = min(number, live.get((at_ns, entry), number))
        self._heap = sorted((at_ns, number, entry) for (at_ns, entry), number in live.items())
        self._compact_at = 2 * len(self._heap) + self._slack
