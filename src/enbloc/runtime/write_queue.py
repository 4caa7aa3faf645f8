"""Writes on their way to the API: how many at once, and whose go first.

What decides goes before what brings about, and that before what is merely said. So a backlog of Bindings is not slowed
down by conditions; but no lane is ever shut: each may have a few under way whatever waits in front of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import IntEnum
from typing import Final

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused, Write
from enbloc.cluster.port import LiveCluster
from enbloc.runtime.metrics import Metrics


class WritePriority(IntEnum):
    DECIDED = 0
    """Bindings, claims, evictions."""
    WANTED = 1
    """What controllers bring about."""
    SAID = 2
    """Status, conditions, Events."""


MOST: Final = 48
"""Writes under way at once: enough to keep an API server busy, fewer than the cluster lets through, so that a lease is
renewed while thousands wait."""
ALWAYS: Final = {WritePriority.DECIDED: MOST, WritePriority.WANTED: 8, WritePriority.SAID: 1}
"""How many of a lane may be under way though something waits in a lane before it."""
SAID_MOST: Final = 4
"""What is said never needs more."""


class Sealed(Refused):
    """Nothing is written any more: we are not the leader, or about to end."""

    def __init__(self) -> None:
        super().__init__(503, "ServiceUnavailable", "this process does not write any more")


class WriteQueue:
    """The one way out of the process."""

    def __init__(self, cluster: LiveCluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = tuple(deque() for _ in WritePriority)
        self._under_way = [0 for _ in WritePriority]
        self._sealed = False

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting))

    @property
    def under_way(self) -> int:
        return sum(self._under_way)

    def seal(self) -> None:
        """From now on every write is refused here."""
        self._sealed = True
        self._let_through()

    async def send(self, write: Write, lane: WritePriority) -> Obj | None:
        """Carries a write out when its turn comes. Raises `Refused`."""
        if self._sealed:
            raise Sealed
        if self._waiting[lane] or not self._has_room(lane):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[lane].append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(lane)
                raise
        else:
            self._under_way[lane] += 1
        try:
            if self._sealed:
                raise Sealed
            return await self._cluster.execute(write)
        except Refused as why:
            self._metrics.refused(why.code)
            raise
        finally:
            self._leave(lane)

    def _has_room(self, lane: WritePriority) -> bool:
        if lane is WritePriority.SAID and self._under_way[lane] >= SAID_MOST:
            return False
        behind = any(self._waiting[:lane])
        return self._under_way[lane] < ALWAYS[lane] or (not behind and self.under_way < MOST)

    def _leave(self, lane: WritePriority) -> None:
        self._under_way[lane] -= 1
        self._let_through()

    def _let_through(self) -> None:
        """Whoever has waited longest in the first lane with room."""
        for lane in WritePriority:
            waiting = self._waiting[lane]
            while waiting and (self._sealed or self._has_room(lane)):
                turn = waiting.popleft()
                if not turn.done():
                    self._under_way[lane] += 1
                    turn.set_result(None)
