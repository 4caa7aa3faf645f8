"""The control plane on a cluster that answers late: woken by watch events and timers, it never polls.

An event wakes it; a few milliseconds later, so that events which come together are read together, every controller that
does not wait for its own writes begins a round and the scheduler runs a cycle. Cycles go on while earlier writes are
under way. Engine, controllers, executor and status writer are those of virtual time; only the transport differs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from typing import Final

from enbloc.api import volcano
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import WatchEvent
from enbloc.cluster.port import LiveCluster
from enbloc.config import Config, default_scheduler_name
from enbloc.controllers.built_in_queues import BuiltInQueues
from enbloc.controllers.controller import Controller
from enbloc.controllers.group_status import GroupStatus
from enbloc.controllers.job_plugins import KeyPair, rsa_key_pair
from enbloc.gangs.model import GangKey
from enbloc.gangs.record_digests import Keyring
from enbloc.runtime.control_plane import controllers
from enbloc.runtime.controller_runner import ControllerRunner
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.engine_metrics import EngineMetrics
from enbloc.runtime.expectations import Observed
from enbloc.runtime.guarded_controller import GuardedController
from enbloc.runtime.live_transport import LiveTransport
from enbloc.runtime.metrics import Metrics
from enbloc.runtime.recorder import Recorder
from enbloc.runtime.scheduler import Scheduler
from enbloc.runtime.status_writer import StatusWriter
from enbloc.runtime.task_group import TaskGroup
from enbloc.runtime.write_queue import WriteQueue
from enbloc.units import SECOND

SCHEDULER: Final = "scheduler"
CONTROLLERS: Final = "controllers"

GATHER_S: Final = 0.003
"""Events that come within this time of the first are read together."""
REST: Final = 4
"""The pause after a turn is this many times the CPU time that the turn took: a busy cluster is read no more often than
pays. On a machine on which others are busy a turn lasts longer, and is not a reason to rest longer."""
LONGEST_REST_S: Final = 0.25
END_WITHIN_S: Final = 10.0
FLUSH_WITHIN_S: Final = 2.0


class LiveControlPlane:
    """Scheduler and controllers of one cluster, or either of them."""

    def __init__(
        self,
        cluster: LiveCluster,
        config: Config,
        scheduler_names: frozenset[str],
        clock: Callable[[], int],
        keyring: Keyring,
        parts: Collection[str] = (SCHEDULER, CONTROLLERS),
        metrics: Metrics | None = None,
        key_pair: KeyPair = rsa_key_pair,
        recorder: Recorder | None = None,
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics or Metrics()
        self._queue = WriteQueue(cluster, self._metrics)
        self._observed = Observed()
        self._woken = asyncio.Event()
        self._status_changed = asyncio.Event()
        self._tasks = TaskGroup()
        self._transport = LiveTransport(cluster, self._queue, self._tasks)
        self.leads = False
        """Whether it decides and writes; until then it only observes."""
        self.is_ready = False
        """Whether all existing objects were observed."""
        self.scheduler: Scheduler | None = None
        self._names = scheduler_names
        self._counted = self._metrics.count_decisions(volcano=config.volcano_metrics)
        if SCHEDULER in parts:
            self.scheduler = self._make_scheduler(config, keyring, recorder)
            self._status_writer = self.scheduler.status_writer
        else:
            self._status_writer = StatusWriter(self._transport, _no_subject, self._status_changed.set)
        controllers = _controllers(key_pair, config, scheduler_names) if CONTROLLERS in parts else ()
        self._runners = [self._make_runner(controller) for controller in controllers]
        self._runners_by_kind: dict[str, list[ControllerRunner]] = {}
        for runner in self._runners:
            for kind in runner.kinds:
                self._runners_by_kind.setdefault(kind, []).append(runner)
        self._look_up: asyncio.Task[None] | None = None
        self._unread_since_s: float | None = None
        """When the first event came that no turn has read yet."""

    def _make_scheduler(self, config: Config, keyring: Keyring, recorder: Recorder | None) -> Scheduler:
        scheduler = Scheduler(
            self._transport,
            config,
            self._names,
            keyring,
            self.wake,
            self._status_changed.set,
            self._metrics.binding,
            self._counted,
        )
        scheduler.translator.recorder = recorder
        self._metrics.registry.register(EngineMetrics(lambda: scheduler.engine, volcano=config.volcano_metrics))
        return scheduler

    def _make_runner(self, controller: Controller) -> ControllerRunner:
        return ControllerRunner(
            GuardedController(controller, self._known, self._counted.failed),
            self._tasks,
            self._queue,
            self._observed,
            self._status_writer.emit,
            self.wake,
            only_reports=isinstance(controller, GroupStatus),
        )

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that its parts observe."""
        kinds = self.scheduler.kinds if self.scheduler is not None else frozenset[str]()
        return kinds.union(self._runners_by_kind)

    # ---- events

    async def start(self) -> None:
        """Lists everything, and watches from then on. Decides nothing until `lead`."""
        await self._cluster.start(self.kinds, self._observe)
        if self.scheduler is not None and not self._cluster.serves(volcano.QUEUE):
            for queue in self._known(volcano.QUEUE):
                self.scheduler.observe(WatchEvent("ADDED", volcano.QUEUE, queue))
        self.is_ready = True

    def _known(self, kind: str) -> Iterable[Obj]:
        """The objects of a kind as they were last observed."""
        if kind == volcano.QUEUE and not self._cluster.serves(kind):
            return volcano.BUILT_IN_QUEUES  # no Queue can exist: all gangs are in the default queue
        return self._cluster.known(kind)

    def _observe(self, event: WatchEvent) -> None:
        try:
            self.observe(event)
        except Exception as failure:
            self._tasks.fail(failure)
            raise

    def observe(self, event: WatchEvent) -> None:
        self._observed.observe(event)
        if self._unread_since_s is None:
            self._unread_since_s = self._transport.time_s()
        if self.scheduler is not None and event.kind in self.scheduler.kinds:
            if self.is_ready and event.kind == "Pod" and event.type == "ADDED":
                self._count_watched(self._counted, self.scheduler, event.obj)
            self.scheduler.observe(event)
        for runner in self._runners_by_kind.get(event.kind, ()):
            runner.observe(event)
        self._woken.set()

    def _count_watched(self, counted: CycleMetrics, scheduler: Scheduler, pod: Obj) -> None:
        """Pods of the first list are not counted, which came while no scheduler watched; nor are those of a later one
        that are known already."""
        known = scheduler.engine.state.tasks.get(pod["metadata"].get("uid", ""))
        if known is None and (pod.get("spec") or {}).get("schedulerName", "") in self._names:
            counted.watched(pod, self._clock())

    def wake(self) -> None:
        self._woken.set()

    # ---- turns

    def lead(self) -> None:
        """From now on this one decides and writes."""
        self.leads = True
        self.wake()

    async def run(self) -> None:
        """Turn by turn, until cancelled. Raises the first exception of any part."""
        self._tasks.start(self._write_status())
        self._tasks.start(self._turns())
        await self._tasks.wait_for_failure()

    async def _turns(self) -> None:
        rest_s = 0.0
        loop = asyncio.get_running_loop()
        while True:
            await self._wait()
            await asyncio.sleep(max(GATHER_S, rest_s))
            self._woken.clear()
            if not self.leads:
                for runner in self._runners:
                    runner.catch_up()
                if self.scheduler is not None:
                    self.scheduler.translator.read_changed()
                    self.scheduler.engine.compact()
                continue
            begin_s, used_s = loop.time(), time.thread_time()
            self._turn()
            if self._unread_since_s is not None:
                self._metrics.event_lag_s.observe(max(0.0, self._transport.time_s() - self._unread_since_s))
                self._unread_since_s = None
            taken_s = min(loop.time() - begin_s, time.thread_time() - used_s)  # what others used of it does not count
            rest_s = min(REST * taken_s, LONGEST_REST_S)

    async def _write_status(self) -> None:
        """Sends status updates when they are ready."""
        while True:
            self._status_changed.clear()
            self._status_writer.send_ready()
            due_s = self._status_writer.due_s()
            wait_s = None if due_s is None else max(0.001, due_s - self._transport.time_s())
            try:
                await asyncio.wait_for(self._status_changed.wait(), wait_s)
            except TimeoutError:
                pass

    async def _flush_status(self, within_s: float) -> None:
        """Before the end: sends the updates that wait, as far as time allows."""
        until_s = self._transport.time_s() + within_s
        self._status_writer.release()
        while self._status_writer.is_sending and self._transport.time_s() < until_s:
            await asyncio.sleep(0.01)

    def _turn(self) -> None:
        now_ns = self._clock()
        for runner in self._runners:
            runner.begin(now_ns)
        if self.scheduler is None:
            return
        if self.scheduler.torn and not self.scheduler.executor.is_busy:
            self.scheduler.rebuild(self._known)
        with self._metrics.cycle_s.time():
            self.scheduler.cycle(now_ns)
        awaits_writes = self.scheduler.torn and self.scheduler.executor.is_busy  # each answer wakes
        if self.scheduler.busy() and not awaits_writes:  # what a cycle changed may help other gangs
            self.wake()
        due_s = self.scheduler.executor.due_s()
        if due_s is not None and due_s <= self._transport.time_s() and (self._look_up is None or self._look_up.done()):
            self._look_up = self._tasks.start(self.scheduler.executor.look_up())

    async def _wait(self) -> None:
        """Until an event comes or a timer fires."""
        if self._woken.is_set():
            return
        try:
            await asyncio.wait_for(self._woken.wait(), self._due_in_s() if self.leads else None)
        except TimeoutError:
            pass

    def _due_in_s(self) -> float | None:
        timers = [runner.controller.due() for runner in self._runners if not runner.is_under_way]
        late_s = None
        held_s = min((left_s for runner in self._runners if (left_s := runner.held_s()) is not None), default=None)
        if self.scheduler is not None:
            timers.append(self.scheduler.due())
            late_s = self.scheduler.executor.due_s()
        due_ns = min((timer for timer in timers if timer is not None), default=None)
        waits = [] if due_ns is None else [(due_ns - self._clock()) / SECOND]
        if held_s is not None:
            waits.append(held_s)
        if late_s is not None:
            waits.append(late_s - self._transport.time_s())
        return max(0.0, min(waits)) if waits else None

    # ---- the end

    async def end(self, within_s: float = END_WITHIN_S) -> None:
        """No new cycles; finishes what is under way, in bounded time, then writes the status updates that wait."""
        self.leads = False
        until_s = self._transport.time_s() + within_s
        self._transport.end()
        await asyncio.gather(
            *(runner.end(within_s) for runner in self._runners),
            *([self._transport.finish(self.scheduler.executor.tasks, within_s)] if self.scheduler is not None else []),
        )
        await self._flush_status(max(0.0, min(FLUSH_WITHIN_S, until_s - self._transport.time_s())))
        self.stop_writing()

    def stop_writing(self) -> None:
        """At once, whatever is under way: another process leads."""
        self.leads = False
        self._queue.seal()
        self._tasks.cancel()

    # ---- metrics and tests

    def measure(self) -> None:
        """Updates the gauges."""
        self._metrics.writes_waiting.set(self._queue.waiting)
        self._metrics.status_updates_waiting.set(self._status_writer.waiting)
        self._metrics.leader.set(self.leads)
        if self.scheduler is not None:
            self._metrics.pending_gangs.set(len(self.scheduler.engine.pending()))
            self._metrics.reserved_nodes.set(len(self.scheduler.engine.parts.claims.closing.nodes()))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way or waits to be written (for tests and benchmarks)."""
        return not (
            self._woken.is_set()
            or self._queue.under_way
            or self._queue.waiting
            or self._status_writer.is_busy
            or any(runner.is_under_way or (self.leads and runner.has_unread) for runner in self._runners)
            or (self.scheduler is not None and self.scheduler.executor.is_busy)
        )


def _controllers(key_pair: KeyPair, config: Config, ours: frozenset[str]) -> list[Controller]:
    return [BuiltInQueues(), *controllers(key_pair, default_scheduler_name(config), ours, config.tenancy)]


def _no_subject(gang: GangKey | None, ref: Ref, uid: str) -> Obj | None:
    """Without a scheduler there are Events to emit, and no conditions."""
    return None
