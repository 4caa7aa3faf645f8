"""Writes of this process's controllers that webhooks must answer first.

Such a write waits; others of the same round go on. Controllers run again when all that wait were answered, so that none
decides on objects that are on their way. Scheduler and nodes go on meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from enbloc.api.writes import Refused, Write
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.webhooks import Question, Review
from enbloc.cluster.embedded.http.webhook_calls import WebhookCalls
from enbloc.controllers.controller import Controller

USER: Final = "system:kube-controller-manager"
MOST_AT_ONCE: Final = 16


class _Waiting(msgspec.Struct):
    controller: Controller
    write: Write
    review: Review
    task: asyncio.Task[None]


class ReviewedWrites:
    """Executes writes of controllers on a store, asking its webhooks. `wake` is called when answers are there."""

    def __init__(self, store: Store, calls: WebhookCalls, wake: Callable[[], None]) -> None:
        self._store = store
        self._calls = calls
        self._wake = wake
        self._waiting: list[_Waiting] = []
        self._at_once = asyncio.Semaphore(MOST_AT_ONCE)

    @property
    def is_waiting(self) -> bool:
        """Whether a webhook was asked that has not answered."""
        return any(not one.task.done() for one in self._waiting)

    def execute(self, controller: Controller, write: Write) -> bool:
        """Whether it was stored; False: it waits for webhooks. Raises `Refused`."""
        return self._execute(controller, write, Review(USER, ("system:authenticated",)))

    def _execute(self, controller: Controller, write: Write, review: Review) -> bool:
        try:
            with self._store.reviewed(review):
                self._store.execute(write)
        except Question as question:
            task = asyncio.get_running_loop().create_task(self._ask(review, question))
            self._waiting.append(_Waiting(controller, write, review, task))
            return False
        return True

    async def _ask(self, review: Review, question: Question) -> None:
        try:
            async with self._at_once:
                await self._calls.answer(review, question)
        finally:
            self._wake()

    def repeat(self, now_ns: int) -> bool:
        """Executes the writes that were answered, and tells controllers of refusals. Whether any was stored."""
        answered, self._waiting = self._waiting, []
        stored = False
        for one in answered:
            why = one.task.exception()
            try:
                if why is not None:
                    raise why
                stored = self._execute(one.controller, one.write, one.review) or stored
            except Refused as refused:
                one.controller.refused(one.write, refused, now_ns)
        return stored

    def close(self) -> None:
        """Forgets what waits: a new control plane decides anew."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.task.cancel()
