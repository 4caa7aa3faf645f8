"""Runs one controller on a cluster that answers late, round by round.

A round is all that the controller wants written now. The next one begins when every write of the round was answered and
its watch event has come, or after a bounded time: so the controller decides the same as on a cluster that answers at
once. Events that arrive during a round are kept and given to the controller after it.

The first round after an event of a controller that only reports (`only_reports`) is held for a moment, and longer while
Bindings wait: so a new PodGroup whose gang starts at once is written once, when its pods are bound. Its events are read
when the round begins, of each object only the last: what it writes depends on no earlier one.

A controller that returns a list wants all of it, in any order except for writes to the same object; many are under way
at once. One that yields its writes (A4: a quota's refusal ends the pass) has each answered before the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator
from itertools import chain
from typing import Any, Final

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, uid_of
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused, WatchEvent, Write
from enbloc.controllers.controller import Controller
from enbloc.runtime.damping import Damper
from enbloc.runtime.expectations import Expectation, Observed, version_of
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.transport import WritePriority
from enbloc.runtime.write_queue import WriteQueue

EVENTS_WITHIN_S: Final = 5.0
"""A round waits at most this long for the watch events of its writes."""
HOLD_S: Final = 0.5
"""How long a round that only reports is held after the first event that it would read."""
LONGEST_HOLD_S: Final = 10.0
"""The same while Bindings wait."""


class ControllerRunner:
    """The rounds of one controller."""

    def __init__(
        self,
        controller: Controller,
        tasks: TaskGroup,
        queue: WriteQueue,
        observed: Observed,
        emit: Callable[[EmitEvent], None],
        wake: Callable[[], None],
        *,
        only_reports: bool = False,
    ) -> None:
        """`only_reports`: whether it writes only status that nothing waits for. Such writes go behind Bindings."""
        self.controller = controller
        self.kinds = controller.kinds
        self._tasks = tasks
        self._queue = queue
        self._observed = observed
        self._emit = emit
        self._wake = wake
        self._round: asyncio.Task[None] | None = None
        self._kept: list[WatchEvent] = []
        self._unread: dict[str, WatchEvent] = {}
        """By UID: the last event of each object that no round has read, of a controller whose rounds are held."""
        self._expected: dict[str, Expectation] = {}
        """By UID: writes whose watch event has not come."""
        self._all_met = asyncio.Event()
        self._damper: Damper[tuple[Ref, str]] = Damper()
        self._late: dict[tuple[Ref, str], asyncio.TimerHandle] = {}
        """By object and subresource: writes that were put off."""
        self._priority = WritePriority.STATUS if only_reports else WritePriority.CONTROLLER
        self._only_reports = only_reports
        self._unread_since_s: float | None = None
        """When the first of them came, or the last round ended."""

    @property
    def is_under_way(self) -> bool:
        return self._round is not None

    def observe(self, event: WatchEvent) -> None:
        if self._only_reports:
            self._unread[uid_of(event.obj)] = event
            if self._unread_since_s is None and self._round is None:
                self._unread_since_s = asyncio.get_running_loop().time()
        elif self._round is None:
            self.controller.observe(event)
        else:
            self._kept.append(event)
        if self._expected:
            self._check(uid_of(event.obj))

    def catch_up(self) -> None:
        """Reads the events that wait for a round: also where this process does not lead, and none begins."""
        unread, self._unread, self._unread_since_s = self._unread, {}, None
        for event in unread.values():
            self.controller.observe(event)

    def held_s(self) -> float | None:
        """For how much longer its next round is held; `None`: it is not."""
        if self._unread_since_s is None or self._round is not None:
            return None
        most_s = LONGEST_HOLD_S if self._queue.decisions_wait else HOLD_S
        left_s = self._unread_since_s + most_s - asyncio.get_running_loop().time()
        return left_s if left_s > 0 else None

    @property
    def has_unread(self) -> bool:
        """Whether events came that no round has read, because rounds are held."""
        return bool(self._unread)

    def begin(self, now_ns: int) -> None:
        """Begins a round, if none is under way or held and the controller has something to write."""
        if self._round is not None or self.held_s() is not None:
            return
        self.catch_up()
        writes = self.controller.reconcile(now_ns)
        rest = iter(writes)
        first = next(rest, None)
        if first is not None:
            all_writes = chain([first], rest)
            send = self._send_batches if isinstance(writes, list) else self._send_in_order
            self._round = self._tasks.start(self._run(send(all_writes, now_ns)))
            self._round.add_done_callback(self._ended)

    async def end(self, within_s: float) -> None:
        """Waits for the round that is under way, without its watch events; cancels it if it takes longer."""
        for late in self._late.values():
            late.cancel()
        if self._round is not None:
            self._expected.clear()
            self._all_met.set()
            await asyncio.wait([self._round], timeout=within_s)
        if self._round is not None:
            self._round.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._round = None
        kept, self._kept = self._kept, []
        for event in kept:
            self.controller.observe(event)
        if self._unread:
            self._unread_since_s = asyncio.get_running_loop().time()
        self._wake()

    async def _run(self, sending: Coroutine[Any, Any, None]) -> None:
        await sending
        await self._wait_for_events()

    async def _send_batches(self, writes: Iterable[Write], now_ns: int) -> None:
        for batch in _batches(writes):
            await asyncio.gather(*(self._send_in_order(of_object, now_ns) for of_object in batch))

    async def _send_in_order(self, writes: Iterable[Write], now_ns: int) -> None:
        for write in writes:
            await self._send(write, now_ns)

    async def _send(self, write: Write, now_ns: int) -> None:
        if isinstance(write, EmitEvent):
            self._emit(write)
            return
        if isinstance(write, Patch) and self._put_off(write, now_ns):
            return
        try:
            made = await self._queue.send(write, self._priority)
        except Refused as why:
            self.controller.refused(write, why, now_ns)
            return
        expectation = _expectation(write, made)
        if expectation is not None and _ref(write).kind in self.kinds:
            self._expected[expectation.uid] = expectation
            self._check(expectation.uid)  # its event may have come before its answer

    def _put_off(self, write: Patch, now_ns: int) -> bool:
        """Whether this object is written too often: of the writes that are put off the last is sent."""
        key, loop = (write.ref, write.subresource), asyncio.get_running_loop()
        late = self._late.pop(key, None)
        if late is not None:
            late.cancel()
        if self._damper.admit(key, loop.time()):
            return False
        self._late[key] = loop.call_at(self._damper.next_s(key), self._send_late, write, now_ns)
        return True

    def _send_late(self, write: Patch, now_ns: int) -> None:
        self._late.pop((write.ref, write.subresource), None)
        self._tasks.start(self._send(write, now_ns))

    def _check(self, uid: str) -> None:
        expectation = self._expected.get(uid)
        if expectation is not None and expectation.is_met(self._observed):
            del self._expected[uid]
            if not self._expected:
                self._all_met.set()

    async def _wait_for_events(self) -> None:
        if self._expected:
            self._all_met.clear()
            try:
                await asyncio.wait_for(self._all_met.wait(), EVENTS_WITHIN_S)
            except TimeoutError:
                self._expected.clear()


def _batches(writes: Iterable[Write]) -> Iterator[list[list[Write]]]:
    """Writes that may go together, by object. A deletion (of a Command that was executed, say) goes after all writes
    before it, except that of a pod: pods are created and deleted in any order."""
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


def _expectation(write: Write, made: Obj | None) -> Expectation | None:
    """The watch event of a write that was accepted."""
    if isinstance(write, Delete | EvictPod):
        return Expectation(write.uid, deletes=True) if write.uid else None
    if made is None or not version_of(made):
        return None
    return Expectation(uid_of(made), version_of(made), created=isinstance(write, Create))
