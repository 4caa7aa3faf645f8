"""Tasks that run in the background. An exception in one of them is not lost: it ends the run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class TaskGroup:
    """Background tasks of one control plane. Unlike `asyncio.TaskGroup` it is not left before they end: they are
    started at any time, and `wait_for_failure` raises what the first of them raised."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failure: BaseException | None = None
        self._failed = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.fail(failure)

    def fail(self, failure: BaseException) -> None:
        """The first failure is kept."""
        self._failure = self._failure or failure
        self._failed.set()

    async def wait_for_failure(self) -> None:
        """Never returns; raises the first failure."""
        await self._failed.wait()
        assert self._failure is not None
        raise self._failure

    def cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()
