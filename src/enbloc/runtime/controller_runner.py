"""One controller on a cluster that answers late: round by round.

A round is all that a controller wants written now. The next one begins when every write of the round was answered and
has come back as an event, or did not for long: then a controller that decides by what it has seen decides the same as
one to whom the API answers at once. What happens during a round is kept and told to the controller after it.

A controller that gives a list wants all of it, in whatever order, but for writes to the same object; many go out at a
time. One that makes its writes up as it goes (A4: a quota's refusal ends the pass) is answered one by one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.controllers.controller import Controller
from enbloc.runtime.expectations import Echo, Expectations, version_of
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.write_queue import WritePriority, WriteQueue

ECHO_WITHIN_S: Final = 5.0


class ControllerRunner:
    """The rounds of one controller."""

    def __init__(
        self,
        controller: Controller,
        crew: TaskGroup,
        outbox: WriteQueue,
        seen: Expectations,
        tell: Callable[[EmitEvent], None],
        wake: Callable[[], None],
    ) -> None:
        self.controller = controller
        self.kinds = controller.kinds
        self._crew = crew
        self._outbox = outbox
        self._seen = seen
        self._tell = tell
        self._wake = wake
        self._round: asyncio.Task[None] | None = None
        self._kept: list[WatchEvent] = []
        self._echoes: dict[str, Echo] = {}
        """By UID: what was written and has not come back."""
        self._heard = asyncio.Event()

    @property
    def is_under_way(self) -> bool:
        return self._round is not None

    def observe(self, event: WatchEvent) -> None:
        if self._round is None:
            self.controller.observe(event)
            return
        self._kept.append(event)
        if self._echoes:
            self._hear(uid_of(event.obj))

    def begin(self, now: int) -> None:
        """Begins a round, if none is under way and there is something to write."""
        if self._round is not None:
            return
        writes = self.controller.reconcile(now)
        many = isinstance(writes, list)
        rest = iter(writes)
        first = next(rest, None)
        if first is not None:
            self._round = self._crew.send(self._go(first, rest, many, now))
            self._round.add_done_callback(self._end)

    async def end(self, within_s: float) -> None:
        """Waits for the round that is under way; it is cut off if it takes too long."""
        if self._round is not None:
            self._echoes.clear()
            self._heard.set()
            await asyncio.wait([self._round], timeout=within_s)
        if self._round is not None:
            self._round.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._round = None
        kept, self._kept = self._kept, []
        for event in kept:
            self.controller.observe(event)
        self._wake()

    async def _go(self, first: Write, rest: Iterator[Write], many: bool, now: int) -> None:
        if many:
            for batch in _batches([first, *rest]):
                await asyncio.gather(*(self._in_order(writes, now) for writes in batch))
        else:
            await self._send(first, now)
            for write in rest:
                await self._send(write, now)
        await self._echoed()

    async def _in_order(self, writes: Iterable[Write], now: int) -> None:
        for write in writes:
            await self._send(write, now)

    async def _send(self, write: Write, now: int) -> None:
        if isinstance(write, EmitEvent):
            self._tell(write)
            return
        try:
            made = await self._outbox.send(write, WritePriority.WANTED)
        except Refused as why:
            self.controller.refused(write, why, now)
            return
        echo = _echo(write, made)
        if echo is not None and _ref(write).kind in self.kinds:
            self._echoes[echo.uid] = echo
            self._hear(echo.uid)  # it may be back before its answer

    def _hear(self, uid: str) -> None:
        echo = self._echoes.get(uid)
        if echo is not None and echo.is_back(self._seen):
            del self._echoes[uid]
            if not self._echoes:
                self._heard.set()

    async def _echoed(self) -> None:
        """Waits until all that was written has come back, for a bounded time."""
        if self._echoes:
            self._heard.clear()
            try:
                await asyncio.wait_for(self._heard.wait(), ECHO_WITHIN_S)
            except TimeoutError:
                self._echoes.clear()


def _batches(writes: list[Write]) -> Iterator[list[list[Write]]]:
    """Writes that may go together, sorted by object. What is deleted for good (a Command that was obeyed, say) goes
    after all that came before it; pods are deleted and made in any order."""
    batch: dict[Ref, list[Write]] = {}
    for write in writes:
        if isinstance(write, Delete) and write.ref.kind != "Pod" and batch:
            yield list(batch.values())
            batch = {}
        batch.setdefault(_ref(write), []).append(write)
    if batch:
        yield list(batch.values())


def _ref(write: Write) -> Ref:
    match write:
        case Create(obj=obj):
            return ref_of(obj)
        case Patch(ref=ref) | Delete(ref=ref) | EmitEvent(ref=ref):
            return ref
        case BindPod(namespace=namespace, name=name) | EvictPod(namespace=namespace, name=name):
            return Ref("Pod", namespace, name)


def _echo(write: Write, made: Obj | None) -> Echo | None:
    """What has to come back of a write that was taken."""
    if isinstance(write, Delete | EvictPod):
        return Echo(write.uid, going=True) if write.uid else None
    if made is None or not version_of(made):
        return None
    return Echo(uid_of(made), version_of(made), created=isinstance(write, Create))
