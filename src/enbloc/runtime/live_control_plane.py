"""The control plane on a cluster that answers late: events in, errands out, nothing polls.

An event wakes it; a few milliseconds are given to those that come with it; then every controller that is not waiting
for its own writes begins a round, and the scheduler runs one cycle. What is decided goes out while later cycles run.
The rules are those of virtual time: the same engine, the same controllers, and errands that are carried out in the same
order (`courier`). What differs is only that the API answers late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import WatchEvent
from enbloc.cluster.port import LiveCluster
from enbloc.config import Config
from enbloc.controllers.built_in_queues import BuiltInQueues
from enbloc.controllers.plugins.ssh import KeyPair, rsa_key_pair
from enbloc.gangs.model import GangKey
from enbloc.runtime.binder import Binder
from enbloc.runtime.control_plane import controllers
from enbloc.runtime.controller_runner import ControllerRunner
from enbloc.runtime.expectations import Expectations
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.scheduler import Scheduler
from enbloc.runtime.status_writer import StatusWriter
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.write_plans import StatusUpdate
from enbloc.runtime.write_queue import WriteQueue
from enbloc.units import SECOND

SCHEDULER: Final = "scheduler"
CONTROLLERS: Final = "controllers"

GATHER_S: Final = 0.003
"""What comes within this time of an event is looked at together with it."""
REST: Final = 4
"""After a turn there is a rest of so many times what it took: a busy cluster is not looked at more often than pays."""
LONGEST_REST_S: Final = 0.25
END_WITHIN_S: Final = 10.0
SAY_WITHIN_S: Final = 2.0


class LiveControlPlane:
    """Scheduler and controllers of one cluster, or either of them."""

    def __init__(
        self,
        cluster: LiveCluster,
        config: Config,
        scheduler_names: frozenset[str],
        clock: Callable[[], int],
        parts: Collection[str] = (SCHEDULER, CONTROLLERS),
        metrics: Metrics | None = None,
        key_pair: KeyPair = rsa_key_pair,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._outbox = WriteQueue(cluster, self._metrics)
        self._seen = Expectations()
        self._woken = asyncio.Event()
        self._crew = TaskGroup()
        self.leads = False
        """Whether it decides and writes; until then it only looks."""
        self.is_ready = False
        """Whether all that exists was seen."""
        self.scheduler = Scheduler(None, config, scheduler_names) if SCHEDULER in parts else None
        self._board = StatusWriter(
            self._crew, self._outbox, self.scheduler.subject if self.scheduler is not None else _nobody
        )
        self._courier: Binder | None = None
        if self.scheduler is not None:
            self._courier = Binder(
                self._crew, cluster, self._outbox, self.scheduler.refused, self._board.tell, self.wake, self._metrics
            )
        self._rounds = [
            ControllerRunner(controller, self._crew, self._outbox, self._seen, self._board.tell, self.wake)
            for controller in ([BuiltInQueues(), *controllers(key_pair)] if CONTROLLERS in parts else ())
        ]
        self._rounds_by_kind: dict[str, list[ControllerRunner]] = {}
        for rounds in self._rounds:
            for kind in rounds.kinds:
                self._rounds_by_kind.setdefault(kind, []).append(rounds)
        self._look_up: asyncio.Task[None] | None = None

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that somebody in here looks at."""
        kinds = Scheduler.kinds if self.scheduler is not None else frozenset[str]()
        return kinds.union(self._rounds_by_kind)

    # ---- in

    async def start(self) -> None:
        """Reads all there is, and follows it from then on. Decides nothing until `lead`."""
        await self._cluster.start(self.kinds, self._observe)
        if self.scheduler is not None and not self._cluster.serves(volcano.QUEUE):
            for queue in volcano.BUILT_IN_QUEUES:  # nobody can make one: all gangs are in the default queue
                self.scheduler.observe(WatchEvent("ADDED", volcano.QUEUE, queue))
        self.is_ready = True

    def _observe(self, event: WatchEvent) -> None:
        try:
            self.observe(event)
        except Exception as bug:
            self._crew.report(bug)
            raise

    def observe(self, event: WatchEvent) -> None:
        self._seen.observe(event)
        if self.scheduler is not None and event.kind in Scheduler.kinds:
            if event.kind == "Pod" and self._courier is not None:
                self._courier.observe(event)
            self.scheduler.observe(self._board.observe(event))
        for rounds in self._rounds_by_kind.get(event.kind, ()):
            rounds.observe(event)
        self._woken.set()

    def wake(self) -> None:
        self._woken.set()

    # ---- out

    def lead(self) -> None:
        """From now on this one decides and writes."""
        self.leads = True
        self.wake()

    async def run(self) -> None:
        """Turn by turn, until it is cancelled or ended. A bug in any part of it ends it with that bug."""
        self._crew.send(self._board.run())
        self._crew.send(self._turn_by_turn())
        await self._crew.bug()

    async def _turn_by_turn(self) -> None:
        rest_s = 0.0
        loop = asyncio.get_running_loop()
        while True:
            await self._wait()
            await asyncio.sleep(max(GATHER_S, rest_s))
            self._woken.clear()
            if not self.leads:
                if self.scheduler is not None:
                    self.scheduler.engine.tidy()
                continue
            begin = loop.time()
            self._turn()
            rest_s = min(REST * (loop.time() - begin), LONGEST_REST_S)

    def _turn(self) -> None:
        now = self._clock()
        for rounds in self._rounds:
            rounds.begin(now)
        if self.scheduler is None or self._courier is None:
            return
        with self._metrics.cycle_s.time():
            for errand in self.scheduler.errands(now):
                if isinstance(errand, StatusUpdate):
                    self._board.put(errand)
                else:
                    self._courier.take(errand)
        if self.scheduler.engine.busy():  # what a cycle changes may help others
            self.wake()
        late_s = self._courier.due_s()
        if (
            late_s is not None
            and late_s <= asyncio.get_running_loop().time()
            and (self._look_up is None or self._look_up.done())
        ):
            self._look_up = self._crew.send(self._courier.look_up())

    async def _wait(self) -> None:
        """Until something happens, or is due."""
        if self._woken.is_set():
            return
        try:
            await asyncio.wait_for(self._woken.wait(), self._due_in_s() if self.leads else None)
        except TimeoutError:
            pass

    def _due_in_s(self) -> float | None:
        """How long until something has to be looked at though nothing happens."""
        timers = [rounds.controller.due() for rounds in self._rounds if not rounds.is_under_way]
        if self.scheduler is not None:
            timers.append(self.scheduler.due())
        due = min((timer for timer in timers if timer is not None), default=None)
        waits = [] if due is None else [(due - self._clock()) / SECOND]
        late_s = self._courier.due_s() if self._courier is not None else None
        if late_s is not None:
            waits.append(late_s - asyncio.get_running_loop().time())
        return max(0.0, min(waits)) if waits else None

    # ---- the end

    async def end(self, within_s: float = END_WITHIN_S) -> None:
        """No new cycles; what is under way is finished, in bounded time; what can still be said is said."""
        self.leads = False
        loop = asyncio.get_running_loop()
        until = loop.time() + within_s
        await asyncio.gather(
            *(rounds.end(within_s) for rounds in self._rounds),
            *([self._courier.end(within_s)] if self._courier is not None else []),
        )
        await self._board.flush(max(0.0, min(SAY_WITHIN_S, until - loop.time())))
        self.stop_writing()

    def stop_writing(self) -> None:
        """At once, whatever is under way: another one leads."""
        self.leads = False
        self._outbox.seal()
        self._crew.dismiss()

    # ---- for those who look

    def measure(self) -> None:
        """Brings the gauges up to date."""
        self._metrics.writes_waiting.set(self._outbox.waiting)
        self._metrics.notices_waiting.set(self._board.waiting)
        self._metrics.leader.set(self.leads)
        if self.scheduler is not None:
            self._metrics.pending_gangs.set(len(self.scheduler.pending()))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way or waits to be written (for tests and benchmarks)."""
        return not (
            self._woken.is_set()
            or self._outbox.under_way
            or self._outbox.waiting
            or self._board.is_busy
            or any(rounds.is_under_way for rounds in self._rounds)
            or (self._courier is not None and self._courier.is_busy)
        )


def _nobody(gang: GangKey | None, ref: Ref, uid: str) -> Obj | None:
    """Without a scheduler there are Events to tell, and no conditions."""
    return None
