"""Carries errands out over a network: many under way at once, each by the rules of `errands`.

A Binding that was sent is assumed to hold: its task stands as placed. That ends by its echo, by a refusal, by a change
of UID, or, if nothing is heard for long, by looking. A refusal is taken in after a pause that grows with every refusal
of the gang. Until then the room stays taken, so that nothing is tried in a loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from enbloc.api.meta import uid_of
from enbloc.api.writes import BindPod, EmitEvent, Refused, WatchEvent, Write
from enbloc.cluster.port import LiveCluster
from enbloc.gangs.model import GangKey
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.write_plans import Step, WritePlan, drop
from enbloc.runtime.write_queue import WritePriority, WriteQueue

UNKNOWN: Final = 504
"""The code of a refusal that is none: nobody knows."""
ECHO_WITHIN_S: Final = 30.0
"""A Binding that was taken and does not come back for so long is looked up."""
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 10.0
TRIES: Final = 6
"""How often a write that nobody waits for, but that should not be lost either, is tried."""
REMEMBERED: Final = 10_000
_FINAL: Final = frozenset({404, 409, 410, 422})
"""Refusals that would be the same again: it is gone, or another one."""


class Binder:
    """All errands that are under way."""

    def __init__(
        self,
        crew: TaskGroup,
        cluster: LiveCluster,
        outbox: WriteQueue,
        refused: Callable[[WritePlan, Write], None],
        tell: Callable[[EmitEvent], None],
        wake: Callable[[], None],
        metrics: Metrics,
    ) -> None:
        self._crew = crew
        self._cluster = cluster
        self._outbox = outbox
        self._refused = refused
        self._tell = tell
        self._wake = wake
        self._metrics = metrics
        self._last: dict[tuple[GangKey, bool], asyncio.Task[bool]] = {}
        """The errand that the next one of a gang has to wait for, of those that decide and of those that tell."""
        self._refusals: dict[GangKey, int] = {}
        """How often in a row, for gangs that are still tried."""
        self._assumed: dict[str, tuple[float, WritePlan, BindPod]] = {}
        """By UID: Bindings that were sent and have not come back, the oldest first."""
        self._ending = asyncio.Event()
        self._tasks: set[asyncio.Task[bool]] = set()

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks or self._assumed)

    def take(self, errand: WritePlan) -> None:
        """Sends somebody off."""
        keys = [(gang, errand.aside) for gang in errand.gangs]
        before = [self._last[key] for key in keys if key in self._last]
        task = self._crew.send(self._go(errand, before))
        self._tasks.add(task)
        for key in keys:
            self._last[key] = task
        task.add_done_callback(lambda done: self._back(errand, done))

    async def end(self, within_s: float) -> bool:
        """Waits for those who are under way; those who pause are called back. Says whether all came in time."""
        self._ending.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)
        late = list(self._tasks)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        return not late

    # ---- what is assumed

    def observe(self, event: WatchEvent) -> None:
        """A pod came back: with a node, or for the last time."""
        if self._assumed and (event.type == "DELETED" or event.obj["spec"].get("nodeName")):
            self._assumed.pop(uid_of(event.obj), None)

    def due_s(self) -> float | None:
        """When an assumed Binding is to be looked up (monotonic)."""
        return next((until for until, _, _ in self._assumed.values()), None)

    async def look_up(self) -> None:
        """Looks at those that should have come back. One that is not bound after all waits again."""
        now = asyncio.get_running_loop().time()
        for uid, (until, errand, write) in list(self._assumed.items()):
            if until > now:
                break
            bound = await self._is_bound(write)
            if self._assumed.pop(uid, None) is None:
                continue  # it came back meanwhile
            if bound:
                self._assumed[uid] = (now + ECHO_WITHIN_S, errand, write)
            else:
                self._refused(errand, write)
                self._wake()

    # ---- one errand

    async def _go(self, errand: WritePlan, before: Iterable[asyncio.Task[bool]]) -> bool:
        """Says whether those who build upon it may go."""
        earlier = [task for task in before if not task.done()]
        if earlier:
            await asyncio.wait(earlier)
            if errand.builds and not all(task.result() for task in earlier if not task.cancelled()):
                drop(errand, self._refused)
                return False
        decided = asyncio.get_running_loop().time()
        refused: list[Write] = []
        whole = not errand.doomed
        for step in errand.steps:
            if step.if_whole and not whole:
                failed: list[Write] = list(step.writes)
            else:
                failed = await self._take_step(errand, step, decided)
            if failed and not step.may_fail:
                whole = False
                refused += failed
        if refused:
            await self._pause(errand)
            for write in refused:
                self._refused(errand, write)
            self._wake()
        elif self._refusals:
            for key in errand.gangs:
                self._refusals.pop(key, None)
        return whole or not errand.is_base

    def _back(self, errand: WritePlan, task: asyncio.Task[bool]) -> None:
        self._tasks.discard(task)
        for gang in errand.gangs:
            if self._last.get((gang, errand.aside)) is task:
                del self._last[gang, errand.aside]

    async def _take_step(self, errand: WritePlan, step: Step, decided: float) -> list[Write]:
        """All writes of a step at once; those that were refused."""
        writes = [write for write in step.writes if not isinstance(write, EmitEvent)]
        for write in step.writes:
            if isinstance(write, EmitEvent):
                self._tell(write)
        send = self._insist if step.may_fail else self._send
        taken = await asyncio.gather(*(send(errand, write, decided) for write in writes))
        return [write for write, ok in zip(writes, taken, strict=True) if not ok]

    async def _send(self, errand: WritePlan, write: Write, decided: float) -> bool:
        if isinstance(write, BindPod):
            return await self._bind(errand, write, decided)
        try:
            await self._outbox.send(write, WritePriority.DECIDED)
        except Refused:
            return False
        return True

    async def _bind(self, errand: WritePlan, write: BindPod, decided: float) -> bool:
        self._assumed[write.uid] = (decided + ECHO_WITHIN_S, errand, write)  # its echo may come before its answer
        try:
            await self._outbox.send(write, WritePriority.DECIDED)
        except Refused as why:
            if why.code != UNKNOWN or not await self._is_bound(write):
                self._assumed.pop(write.uid, None)
                self._metrics.unbound.inc()
                return False
        self._metrics.bound.inc()
        self._metrics.bind_s.observe(asyncio.get_running_loop().time() - decided)
        return True

    async def _is_bound(self, write: BindPod) -> bool:
        """Whether a Binding was carried out whose answer was lost. Asked until there is an answer: the room must not be
        given away before."""
        pause_s = FIRST_PAUSE_S
        while not self._ending.is_set():
            try:
                pod = await self._cluster.get("Pod", write.namespace, write.name)
            except Refused:
                await self._sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            return pod is not None and uid_of(pod) == write.uid and pod["spec"].get("nodeName") == write.node
        return False

    async def _insist(self, errand: WritePlan, write: Write, decided: float) -> bool:
        """A write that nobody waits for is tried again, unless the answer would be the same."""
        pause_s = 20 * FIRST_PAUSE_S
        for _ in range(TRIES):
            try:
                await self._outbox.send(write, WritePriority.DECIDED)
                return True
            except Refused as why:
                if why.code in _FINAL or self._ending.is_set():
                    return False
            await self._sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    async def _pause(self, errand: WritePlan) -> None:
        if len(self._refusals) > REMEMBERED:
            self._refusals.clear()
        count = max((self._refusals.get(key, 0) for key in errand.gangs), default=0)
        for key in errand.gangs:
            self._refusals[key] = count + 1
        await self._sleep(min(FIRST_PAUSE_S * 2 ** min(count, 20), LONGEST_PAUSE_S))

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            pass
