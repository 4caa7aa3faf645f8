"""The loop of a cluster in real time: settles whenever an object was written or a timer fires. It never polls.

If the control plane fails, the exception is logged and a new one replaces it: it keeps nothing that the API does not
know.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from enbloc.api.writes import WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.cluster.embedded.settle import Plane, Restless, Timed, settle
from enbloc.units import SECOND

GATHER_S: Final = 0.003
"""Writes that come within this time of the first are read together."""
SERVING_SHARE: Final = 0.1
LONGEST_SERVING_S: Final = 0.05
"""After a round requests are served for a tenth of the time that it took, at most so long."""
REST_S: Final = 1.0
_QUIET_KINDS: Final = frozenset({"Event", "Lease.coordination.k8s.io"})
_log = logging.getLogger(__name__)


class NoControlPlane:
    """For a cluster whose controllers and scheduler run elsewhere."""

    def reconcile(self, now_ns: int) -> bool:
        return False

    def schedule(self, now_ns: int) -> bool:
        return False

    def due(self) -> int | None:
        return None

    def pending(self) -> list[dict[str, Any]]:
        return []

    def close(self) -> None:
        pass


class Loop:
    """Steps nodes and control plane on one store. `after_burst` is called each time they have settled."""

    def __init__(
        self,
        store: Store,
        nodes: NodePlayer,
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

    @property
    def plane(self) -> Plane:
        return self._plane

    def wake(self) -> None:
        self._woken.set()

    def restart(self) -> None:
        """Replaces scheduler and controllers by new ones, which list everything."""
        self._plane.close()
        self._plane = self._make_plane()
        self.wake()

    async def run(self) -> None:
        """Runs until `close`."""
        while not self._closing:
            self._woken.clear()
            try:
                await self._settle()
            except Restless as why:
                _log.warning("%s: paused for %s s", why, REST_S)
                await asyncio.sleep(REST_S)
            except Exception:
                _log.exception("the control plane failed and is replaced")
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
        """Every component reacts until nothing changes; between rounds requests are served. A client has several round
        trips for one: after a long round there is time for all of them (S8)."""
        began_s = time.monotonic()
        for _ in settle(self._store, self._nodes, self._plane, self._others):
            await asyncio.sleep(min((time.monotonic() - began_s) * SERVING_SHARE, LONGEST_SERVING_S))
            if self._closing:
                return
            began_s = time.monotonic()
