"""The loop that keeps a cluster going in real time: what a simulation does at an instant, done whenever something
happens. A write wakes it, whoever wrote; a timer that is due wakes it; nothing polls.

What goes wrong in the control plane is told, and a new one takes its place: it knows nothing that the API does not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from enbloc.api.writes import WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.runtime import NodeRuntime
from enbloc.runtime.control_plane import Restless
from enbloc.units import SECOND

GATHER_S: Final = 0.003
"""How long a burst of writes is given to grow before anybody looks at it."""
ROUNDS: Final = 1_000
"""How often everybody may answer everybody's writes before they are made to rest."""
REST_S: Final = 1.0
_QUIET_KINDS: Final = frozenset({"Event", "Lease.coordination.k8s.io"})
_log = logging.getLogger(__name__)


class Plane(Protocol):
    """Controllers and scheduler."""

    def reconcile(self, now: int) -> bool: ...

    def schedule(self, now: int) -> bool: ...

    def due(self) -> int | None: ...

    def close(self) -> None: ...


class Nobody:
    """Controllers and scheduler are elsewhere."""

    def reconcile(self, now: int) -> bool:
        return False

    def schedule(self, now: int) -> bool:
        return False

    def due(self) -> int | None:
        return None

    def close(self) -> None:
        pass


class Timed(Protocol):
    """Something that happens at times of its own, such as a scenario."""

    def due(self) -> int | None: ...

    def run(self, now: int) -> None: ...


class Drive:
    """Steps nodes and control plane on one store. `after_burst` is called when all is quiet for the moment."""

    def __init__(
        self,
        store: Store,
        nodes: NodeRuntime,
        make_plane: Callable[[], Plane],
        others: tuple[Timed, ...] = (),
        after_burst: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._nodes = nodes
        self._make_plane = make_plane
        self._others = others
        self._after_burst = after_burst
        self._plane = make_plane()
        self._woken = asyncio.Event()
        self._closing = False
        store.listeners.append(self._note)

    def wake(self) -> None:
        self._woken.set()

    def restart(self) -> None:
        """Throws away all that scheduler and controllers know."""
        self._plane.close()
        self._plane = self._make_plane()
        self.wake()

    async def run(self) -> None:
        """Goes on until `close`."""
        while not self._closing:
            self._woken.clear()
            try:
                await self._settle()
            except Restless as why:
                _log.warning("%s", why)
                await asyncio.sleep(REST_S)
            except Exception:
                _log.exception("the control plane failed; a new one takes its place")
                await asyncio.sleep(REST_S)
                self.restart()
            self._after_burst()
            await self._wait()
            await asyncio.sleep(GATHER_S)

    def close(self) -> None:
        self._closing = True
        self._woken.set()
        if self._note in self._store.listeners:
            self._store.listeners.remove(self._note)
        self._plane.close()

    def _note(self, event: WatchEvent) -> None:
        if event.kind not in _QUIET_KINDS:
            self._woken.set()

    async def _wait(self) -> None:
        due = self._due()
        if due is None:
            await self._woken.wait()
            return
        remaining_s = (due - self._store.now()) / SECOND
        try:
            async with asyncio.timeout(max(remaining_s, 0)):
                await self._woken.wait()
        except TimeoutError:
            pass

    def _due(self) -> int | None:
        timers = [self._nodes.due(), self._plane.due(), *(other.due() for other in self._others)]
        return min((timer for timer in timers if timer is not None), default=None)

    async def _settle(self) -> None:
        """Everybody reacts until nothing changes any more; between rounds, requests have their turn."""
        store = self._store
        for _ in range(ROUNDS):
            version = store.version
            for other in self._others:
                other.run(store.now())
            store.collect_garbage()
            store.settle()
            self._nodes.observe()
            self._nodes.run(store.now())
            self._plane.reconcile(store.now())
            self._plane.schedule(store.now())
            await asyncio.sleep(0)
            if store.version == version or self._closing:
                return
        _log.warning("things kept changing for %s rounds: resting for %s s", ROUNDS, REST_S)
        await asyncio.sleep(REST_S)
