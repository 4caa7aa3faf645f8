"""Writes on their way to the API server: how many at once, and which go first.

Decisions go before what controllers create, and that before status. So a backlog of Bindings is not slowed down by
conditions; but no priority starves: each may have some writes under way whatever waits before it. What controllers
create are mostly the pods that are bound next: they get nearly half of the writes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused, Write
from enbloc.cluster.port import LiveCluster
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.transport import MOST_STATUS, WritePriority

MOST: Final = 48
"""At most this many writes under way: enough to keep an API server busy, fewer than the HTTP client's limit, so that a
lease is renewed while thousands of writes wait."""
CEILING: Final = 56
"""No creation begins while 56 writes are under way; with 4 of status they are still fewer than the limit."""
LEFT: Final = 16
"""While controllers wait, 16 fewer decisions are under way at once."""
ALWAYS: Final = {WritePriority.CONTROLLER: 24, WritePriority.STATUS: 1}
"""How many writes of a priority may be under way though a higher one waits."""


class Sealed(Refused):
    """Nothing is written any more: this process does not lead, or is about to end."""

    def __init__(self) -> None:
        super().__init__(503, "ServiceUnavailable", "this process does not write any more")


class WriteQueue:
    """All writes of the process go through here."""

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
    def decisions_wait(self) -> bool:
        """Whether Bindings and other decisions wait for their turn."""
        return any(self._waiting[: WritePriority.DECISION + 1])

    @property
    def under_way(self) -> int:
        return sum(self._under_way)

    def seal(self) -> None:
        """From now on every write is refused here."""
        self._sealed = True
        self._release()

    async def send(self, write: Write, priority: WritePriority) -> Obj | None:
        """Carries a write out when its turn comes. Raises `Refused`."""
        if self._sealed:
            raise Sealed
        if self._waiting[priority] or not self._has_room(priority):
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[priority].append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(priority)
                raise
        else:
            self._under_way[priority] += 1
        try:
            if self._sealed:
                raise Sealed
            return await self._cluster.execute(write)
        except Refused as why:
            self._metrics.refused(why.code)
            raise
        finally:
            self._leave(priority)

    def _has_room(self, priority: WritePriority) -> bool:
        if priority <= WritePriority.DECISION:
            most = MOST - LEFT if self._waiting[WritePriority.CONTROLLER] else MOST
            return sum(self._under_way[: WritePriority.DECISION + 1]) < most
        if priority is WritePriority.STATUS and self._under_way[priority] >= MOST_STATUS:
            return False
        if priority is WritePriority.CONTROLLER and self.under_way >= CEILING:
            return False
        higher_waits = any(self._waiting[:priority])
        return self._under_way[priority] < ALWAYS[priority] or (not higher_waits and self.under_way < MOST)

    def _leave(self, priority: WritePriority) -> None:
        self._under_way[priority] -= 1
        self._release()

    def _release(self) -> None:
        """Starts the oldest waiting writes of each priority that may have more, the highest first."""
        for priority in WritePriority:
            waiting = self._waiting[priority]
            while waiting and (self._sealed or self._has_room(priority)):
                turn = waiting.popleft()
                if not turn.done():
                    self._under_way[priority] += 1
                    turn.set_result(None)
