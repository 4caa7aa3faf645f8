"""Notifies watches of changes, once the change has been committed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from enbloc.api.writes import WatchEvent

_log = logging.getLogger(__name__)
Committed = Callable[[], Awaitable[None]]


class Changes:
    """Waiters by kind. `note` may be called during a write; waiters are woken later."""

    def __init__(self, committed: Committed | None = None) -> None:
        self._committed = committed
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._dirty: set[str] = set()
        self._pending: asyncio.Handle | asyncio.Task[None] | None = None

    def note(self, event: WatchEvent) -> None:
        if event.kind not in self._waiting:
            return
        self._dirty.add(event.kind)
        if self._pending is None:
            loop = asyncio.get_running_loop()
            if self._committed is None:
                self._pending = loop.call_soon(self._wake)
            else:
                self._pending = loop.create_task(self._wake_when_committed(self._committed))

    async def wait(self, kind: str, timeout_s: float) -> bool:
        """Waits until an object of the kind changes; false after the timeout."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(kind, set()).add(future)
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            return False
        finally:
            waiting = self._waiting.get(kind)
            if waiting is not None:
                waiting.discard(future)
                if not waiting:
                    del self._waiting[kind]
        return True

    def kinds(self) -> list[str]:
        """The kinds that have waiters."""
        return list(self._waiting)

    def wake(self, kind: str) -> None:
        """Wakes all waiters of the kind."""
        for future in self._waiting.pop(kind, ()):
            if not future.done():
                future.set_result(None)

    async def _wake_when_committed(self, committed: Committed) -> None:
        try:
            await committed()
        except Exception as why:  # it is answered to the client that wrote
            _log.error("watches report no more changes: %s", why)
            return
        self._wake()

    def _wake(self) -> None:
        self._pending = None
        dirty, self._dirty = self._dirty, set()
        for kind in dirty:
            self.wake(kind)
