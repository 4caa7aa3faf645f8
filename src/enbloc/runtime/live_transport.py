"""The transport to an API server over a network: many writes are under way, answers take time."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from typing import Any, TypeVar

from enbloc.api.meta import Obj
from enbloc.api.writes import Write
from enbloc.cluster.port import LiveCluster
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.transport import WritePriority
from enbloc.runtime.write_queue import WriteQueue

Result = TypeVar("Result")


class LiveTransport:
    """Over a network, in the running event loop."""

    hold_s = 0.5

    def __init__(self, cluster: LiveCluster, queue: WriteQueue, tasks: TaskGroup) -> None:
        self._cluster = cluster
        self._queue = queue
        self._tasks = tasks
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Cuts pauses short: after this nothing is tried again."""
        self._ending.set()

    async def finish(self, tasks: Collection[asyncio.Task[Any]], within_s: float) -> None:
        """Waits for tasks; those that take longer are cancelled."""
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        late = [task for task in tasks if not task.done()]
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    def time_s(self) -> float:
        return asyncio.get_running_loop().time()

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        return self._tasks.start(work)

    async def wait(self, tasks: Collection[asyncio.Task[Any]]) -> None:
        unfinished = [task for task in tasks if not task.done()]
        if unfinished:
            await asyncio.wait(unfinished)

    async def send(self, write: Write, priority: WritePriority) -> Obj | None:
        return await self._queue.send(write, priority)

    async def send_all(self, works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
        return await asyncio.gather(*works)

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return await self._cluster.get(kind, namespace, name)

    def newest(self, obj: Obj) -> Obj:
        return obj

    async def pause(self, seconds: float) -> bool:
        if self._ending.is_set():
            return False
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            pass
        return True
