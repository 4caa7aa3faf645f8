"""Tasks that nobody waits for. A bug in one of them is not lost: it ends the run."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class TaskGroup:
    """Whoever is under way."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._bug: BaseException | None = None
        self._found = asyncio.Event()

    def send(self, errand: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(errand)
        self._tasks.add(task)
        task.add_done_callback(self._back)
        return task

    def _back(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bug := task.exception()) is not None:
            self.report(bug)

    def report(self, bug: BaseException) -> None:
        """Somebody ran into a bug; the first one is told."""
        self._bug = self._bug or bug
        self._found.set()

    async def bug(self) -> None:
        """Returns never; raises the first bug that somebody ran into."""
        await self._found.wait()
        assert self._bug is not None
        raise self._bug

    def dismiss(self) -> None:
        """Calls everybody back."""
        for task in list(self._tasks):
            task.cancel()
