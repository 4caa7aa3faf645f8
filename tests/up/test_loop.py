"""The loop of `up`: requests are answered while a lot is made (S8)."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from enbloc.api.meta import Ref
from enbloc.api.writes import EmitEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.up.loop import Loop, NoControlPlane
from support.embedded_store import make_store

ROUND_S = 0.05


class NoNodes:
    def observe(self) -> None: ...

    def run(self, now_ns: int) -> None: ...

    def due(self) -> None:
        return None


class Busy(NoControlPlane):
    """Each round takes long, and changes something."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rounds = 0

    def reconcile(self, now_ns: int) -> bool:
        self.rounds += 1
        time.sleep(ROUND_S)
        self._store.emit(EmitEvent(Ref("Pod", "default", "p"), "uid", "Normal", f"R{self.rounds}", "said"))
        return True


def test_s8_a_request_waits_for_few_rounds() -> None:
    """It has about ten round trips, a TLS handshake among them, and each waited for a round."""

    async def main() -> int:
        store, _ = make_store()
        plane = Busy(store)
        nodes: Any = NoNodes()
        loop = Loop(store, nodes, lambda: plane)
        running = asyncio.create_task(loop.run())
        await asyncio.sleep(3 * ROUND_S)
        before = plane.rounds
        for _ in range(10):
            await asyncio.sleep(0.0002)
        loop.close()
        await running
        return plane.rounds - before

    assert asyncio.run(main()) <= 6
