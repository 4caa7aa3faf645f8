"""How many objects an owner creates at one instant. The rest follows a moment later: `up` serves requests in between,
and no list of all that a huge workload lacks is ever made."""

from __future__ import annotations

from typing import Final

from enbloc.controllers.timers import Timers
from enbloc.units import SECOND

BATCH: Final = 1_000
PAUSE_NS: Final = SECOND // 1_000


class Batches:
    """By owner, or whatever creates together."""

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
