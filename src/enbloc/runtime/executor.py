"""Carries write plans out over a transport: the one implementation for virtual time and for a real cluster.

Rules: the steps of a plan in order; plans of one gang one after the other; a plan whose base failed is dropped. A
Binding that was sent is assumed to hold: its task counts as bound. The assumption ends with the pod's watch event, with
a refusal, or, if neither comes for long, with a look at the pod. A refusal is reported after a pause that grows with
each refusal of the gang; until then the resources stay taken, so a refused gang is not retried in a loop.

Over an immediate transport a plan is done when `take` returns; over a network many are under way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from enbloc.api.meta import uid_of
from enbloc.api.writes import BindPod, EmitEvent, Refused, WatchEvent, Write
from enbloc.gangs.model import GangKey
from enbloc.runtime.gang_events import pod_bound
from enbloc.runtime.transport import Transport, WritePriority
from enbloc.runtime.write_plans import Step, WritePlan

if TYPE_CHECKING:
    from asyncio import Task

UNKNOWN: Final = 504
"""The code of a write whose outcome is unknown."""
EVENT_WITHIN_S: Final = 30.0
"""A Binding that was accepted and whose pod has no watch event for this long is looked up."""
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 10.0
TRIES: Final = 6
"""At most this many attempts for a write that may fail: no plan waits for it, but it should not be lost either."""
REMEMBERED: Final = 10_000
"""At most this many gangs have a refusal count; beyond that all counts start anew."""
_FINAL: Final = frozenset({404, 409, 410, 422})
"""Refusals that another attempt would get again: the object is gone, or is another one by now."""

OnRefused = Callable[[WritePlan, Write | None], None]
Measure = Callable[[bool, float, str], None]
"""A write of a plan was refused or held back; `None`: the plan has no object to write on."""


class Executor:
    """All plans that are under way."""

    def __init__(
        self,
        transport: Transport,
        refused: OnRefused,
        emit: Callable[[EmitEvent], None],
        wake: Callable[[], None] = lambda: None,
        measure: Measure = lambda bound, seconds, uid: None,
        failed: Callable[[WritePlan, Exception], None] | None = None,
    ) -> None:
        """`measure` is called for each Binding: whether it was accepted, the seconds since its decision, the pod's
        UID; `failed` if something raised while a plan was carried out (S8)."""
        self._transport = transport
        self._refused = refused
        self._emit = emit
        self._wake = wake
        self._measure = measure
        self._failed = failed
        self._cycle = 0
        self._last: dict[tuple[GangKey, bool], Task[None]] = {}
        """The plan that the next one of a gang waits for; plans that only inform have a line of their own."""
        self._base_failed: dict[GangKey, int] = {}
        """The latest cycle when a base plan of the gang failed: up to that cycle decisions did not know of it."""
        self._refusals: dict[GangKey, int] = {}
        """Refusals in a row, of gangs that are still tried."""
        self._assumed: dict[str, tuple[float, WritePlan, BindPod]] = {}
        """By UID: Bindings that were sent and whose pod has had no event since, the oldest first."""
        self.tasks: set[Task[None]] = set()
        """The plans that are under way."""

    @property
    def is_busy(self) -> bool:
        return bool(self.tasks or self._assumed)

    def begin_cycle(self) -> None:
        """Plans that are taken from now on were decided in a new cycle."""
        self._cycle += 1
        if self._base_failed:
            under_way = {gang for gang, _ in self._last}
            self._base_failed = {gang: at for gang, at in self._base_failed.items() if gang in under_way}

    def take(self, plan: WritePlan) -> None:
        """Starts a plan."""
        keys = [(gang, plan.informs) for gang in plan.gangs]
        earlier = [self._last[key] for key in keys if key in self._last]
        task = self._transport.start(self._run(plan, self._cycle, earlier))
        if task is None:
            return
        self.tasks.add(task)
        for key in keys:
            self._last[key] = task
        task.add_done_callback(lambda done: self._ended(plan, done))

    def _ended(self, plan: WritePlan, task: Task[None]) -> None:
        self.tasks.discard(task)
        for gang in plan.gangs:
            if self._last.get((gang, plan.informs)) is task:
                del self._last[gang, plan.informs]

    # ---- assumed Bindings

    def observe(self, event: WatchEvent) -> None:
        """A pod's event: with a node, or its deletion, it ends the assumption."""
        if self._assumed and (event.type == "DELETED" or event.obj["spec"].get("nodeName")):
            self._assumed.pop(uid_of(event.obj), None)

    def due_s(self) -> float | None:
        """When the oldest assumed Binding is to be looked up, on the transport's clock."""
        return next((until for until, _, _ in self._assumed.values()), None)

    async def look_up(self) -> None:
        """Looks at pods whose event is overdue. One that is not bound after all waits again."""
        now = self._transport.time_s()
        for uid, (until, plan, write) in list(self._assumed.items()):
            if until > now:
                break
            bound = await self._is_bound(write)
            if self._assumed.pop(uid, None) is None:
                continue  # its event came meanwhile
            if bound:
                self._assumed[uid] = (now + EVENT_WITHIN_S, plan, write)
            else:
                self._refused(plan, write)
                self._wake()

    # ---- one plan

    async def _run(self, plan: WritePlan, cycle: int, earlier: list[Task[None]]) -> None:
        try:
            await self._carry_out(plan, cycle, earlier)
        except Exception as failure:
            if self._failed is None:
                raise
            self._failed(plan, failure)
            self._wake()

    async def _carry_out(self, plan: WritePlan, cycle: int, earlier: list[Task[None]]) -> None:
        if earlier:
            await self._transport.wait(earlier)
        if plan.needs_base and any(self._base_failed.get(gang, 0) >= cycle for gang in plan.gangs):
            self._fail(plan, list(plan.writes_that_count()))
            return
        decided_s = self._transport.time_s()
        refused: list[Write | None] = [None] if plan.has_no_object else []
        priority = WritePriority.DECISION
        for step in plan.steps:
            if step.if_accepted and refused:
                failed: list[Write] = list(step.writes)
            else:
                failed = await self._send_step(plan, step, decided_s, priority)
                priority = WritePriority.COMPLETION
            if not step.may_fail:
                refused += failed
        if refused:
            await self._back_off(plan)
            self._fail(plan, refused)
            self._wake()
        elif self._refusals:
            for gang in plan.gangs:
                self._refusals.pop(gang, None)

    def _fail(self, plan: WritePlan, refused: Iterable[Write | None]) -> None:
        for write in refused:
            self._refused(plan, write)
        if plan.is_base:
            self._base_failed.update(dict.fromkeys(plan.gangs, self._cycle))

    async def _send_step(self, plan: WritePlan, step: Step, decided_s: float, priority: WritePriority) -> list[Write]:
        """Sends the writes of a step; returns those that were refused."""
        writes = []
        for write in step.writes:
            if isinstance(write, EmitEvent):
                self._emit(write)
            else:
                writes.append(write)
        send = self._send_with_retries if step.may_fail else self._send
        accepted = await self._transport.send_all(send(plan, write, decided_s, priority) for write in writes)
        return [write for write, ok in zip(writes, accepted, strict=True) if not ok]

    async def _send(self, plan: WritePlan, write: Write, decided_s: float, priority: WritePriority) -> bool:
        if isinstance(write, BindPod):
            return await self._bind(plan, write, decided_s, priority)
        try:
            await self._transport.send(write, priority)
        except Refused:
            return False
        return True

    async def _bind(self, plan: WritePlan, write: BindPod, decided_s: float, priority: WritePriority) -> bool:
        self._assumed[write.uid] = (decided_s + EVENT_WITHIN_S, plan, write)  # its event may come before its answer
        accepted = True
        try:
            await self._transport.send(write, priority)
        except Refused as why:
            accepted = why.code == UNKNOWN and await self._is_bound(write)
            if not accepted:
                self._assumed.pop(write.uid, None)
        self._measure(accepted, self._transport.time_s() - decided_s, write.uid)
        if accepted:
            self._emit(pod_bound(write))
        return accepted

    async def _is_bound(self, write: BindPod) -> bool:
        """Whether a Binding whose answer was lost was carried out. Asks until there is an answer: the resources must
        not be given to another gang before."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                pod = await self._transport.get("Pod", write.namespace, write.name)
            except Refused:
                if not await self._transport.pause(pause_s):
                    return False
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            return pod is not None and uid_of(pod) == write.uid and pod["spec"].get("nodeName") == write.node

    async def _send_with_retries(
        self, plan: WritePlan, write: Write, decided_s: float, priority: WritePriority
    ) -> bool:
        pause_s = 20 * FIRST_PAUSE_S
        for _ in range(TRIES):
            try:
                await self._transport.send(write, priority)
                return True
            except Refused as why:
                if why.code in _FINAL or not await self._transport.pause(pause_s):
                    return False
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return False

    async def _back_off(self, plan: WritePlan) -> None:
        if len(self._refusals) > REMEMBERED:
            self._refusals.clear()
        count = max((self._refusals.get(gang, 0) for gang in plan.gangs), default=0)
        for gang in plan.gangs:
            self._refusals[gang] = count + 1
        await self._transport.pause(min(FIRST_PAUSE_S * 2 ** min(count, 20), LONGEST_PAUSE_S))
