"""The control plane on a cluster that answers at once: scheduler and controllers, stepped by the owner of the clock.

It keeps nothing that the API does not know: a restart is a new one on the same cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import Refused, WatchEvent, Write
from enbloc.cluster.embedded.settle import ROUNDS, Restless
from enbloc.cluster.port import Cluster, Watch
from enbloc.config import Config, Tenancy, default_scheduler_name
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.controllers import coscheduling, kai, koordinator, kubernetes, volcano
from enbloc.controllers.controller import Controller
from enbloc.controllers.job import JobController
from enbloc.controllers.job_plugins import KeyPair, rsa_key_pair
from enbloc.controllers.queue import QueueController
from enbloc.controllers.queuejob import QueueJobController
from enbloc.controllers.workloads.controller import WorkloadController
from enbloc.engine.engine import Engine
from enbloc.gangs.record_digests import SIMULATED, Keyring
from enbloc.runtime.cycle_metrics import CycleMetrics
from enbloc.runtime.guarded_controller import GuardedController
from enbloc.runtime.scheduler import Scheduler, listing_order
from enbloc.runtime.transport import ImmediateTransport
from enbloc.units import SECOND, format_timestamp

MICROSECOND: Final = SECOND // 1_000_000
MOST_CYCLES: Final = 100
"""At most this many cycles follow each other at one instant while none of them writes anything."""


def controllers(
    key_pair: KeyPair = rsa_key_pair,
    scheduler_name: str = SCHEDULER_NAMES[0],
    ours: frozenset[str] | None = None,
    tenancy: Tenancy = Tenancy(),  # noqa: B008 - it is frozen
) -> list[Controller]:
    """All controllers, in the order in which they run. `ours`: scheduler names; jobs of others are left alone."""
    return [
        JobController(key_pair, scheduler_name, ours, tenancy),
        volcano.controller(),
        koordinator.controller(),
        coscheduling.controller(),
        kubernetes.controller(),
        kai.controller(),
        QueueController(),
        QueueJobController(scheduler_name, ours, tenancy),
    ]


class ControllerWrites(Protocol):
    """How controllers write where webhooks are asked first."""

    @property
    def is_waiting(self) -> bool:
        """Whether webhooks were asked that have not answered."""
        ...

    def execute(self, controller: Controller, write: Write, /) -> bool:
        """Whether it was stored; False: it waits for webhooks. Raises `Refused`."""
        ...

    def repeat(self, now_ns: int, /) -> bool:
        """Executes the writes that were answered. Whether any was stored."""
        ...

    def close(self) -> None: ...


class ControlPlane:
    """Scheduler and controllers of one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        config: Config,
        scheduler_names: frozenset[str],
        key_pair: KeyPair = rsa_key_pair,
        more: Sequence[Controller] = (),
        keyring: Keyring = SIMULATED,
        metrics: CycleMetrics | None = None,
        writes: ControllerWrites | None = None,
    ) -> None:
        """`more`: controllers beside this project's own; `keyring` signs records (S2); `metrics` counts decisions;
        `writes`: where webhooks are asked about what controllers write."""
        self._cluster = cluster
        self._writes = writes
        self._transport = ImmediateTransport(cluster)
        self.scheduler = Scheduler(self._transport, config, scheduler_names, keyring, metrics=metrics)
        own = controllers(key_pair, default_scheduler_name(config), scheduler_names, config.tenancy)
        count = metrics.failed if metrics is not None else lambda: None
        self._controllers = [GuardedController(one, self._known, count) for one in (*own, *more)]
        self._watch = self._list_and_watch()

    @property
    def engine(self) -> Engine:
        return self.scheduler.engine

    def _list_and_watch(self) -> Watch:
        """Lists every kind that a component observes, then watches from there."""
        kinds = self.scheduler.kinds.union(*(controller.kinds for controller in self._controllers))
        oldest: int | None = None
        for kind in sorted(kinds, key=listing_order):
            objects, version = self._cluster.list(kind)
            oldest = version if oldest is None else min(oldest, version)
            for obj in objects:
                self._observe(WatchEvent("ADDED", kind, obj))
        return self._cluster.watch(kinds, oldest or 0)

    def _known(self, kind: str) -> list[Obj]:
        return self._cluster.list(kind)[0]

    def _observe(self, event: WatchEvent) -> None:
        if event.kind in self.scheduler.kinds:
            self.scheduler.observe(event)
        for controller in self._controllers:
            if event.kind in controller.kinds:
                controller.observe(event)

    def _catch_up(self) -> None:
        for event in self._watch.drain():
            self._observe(event)
        self._transport.events_read()

    def reconcile(self, now_ns: int) -> bool:
        """Runs the controllers until none has a write left, or one waits for webhooks. Returns whether anything was
        written."""
        if self._awaits_webhooks():
            return False
        wrote = self._writes is not None and self._writes.repeat(now_ns)
        for _ in range(ROUNDS):
            if self._awaits_webhooks():
                return wrote
            self._catch_up()
            again = False
            for controller in self._controllers:
                for write in controller.reconcile(now_ns):
                    try:
                        if self._writes is None:
                            self._cluster.execute(write)
                            again = True
                        else:
                            again = self._writes.execute(controller, write) or again
                    except Refused as error:
                        controller.refused(write, error, now_ns)
                self._catch_up()
                if self._awaits_webhooks():
                    return wrote or again
            if not again:
                return wrote
            wrote = True
        raise Restless(f"the controllers still write after {ROUNDS} rounds at one instant")

    def _awaits_webhooks(self) -> bool:
        return self._writes is not None and self._writes.is_waiting

    def schedule(self, now_ns: int) -> bool:
        """Runs a scheduling cycle. Returns whether anything was written. What a cycle changed may help other gangs: if
        it wrote nothing that comes back as an event, the next cycle follows at once."""
        self._transport.set_time(now_ns)
        self._catch_up()
        before = self._transport.sent
        self.scheduler.status_writer.send_ready()
        for _ in range(MOST_CYCLES):
            self.scheduler.cycle(now_ns)
            if self.scheduler.torn:
                self._catch_up()
                self.scheduler.rebuild(self._known)
            elif self._transport.sent > before or not self.scheduler.busy():
                break
        self._catch_up()
        return self._transport.sent > before

    def due(self) -> int | None:
        """The next instant (ns) at which a timer fires; `None` without one."""
        timers = [self.scheduler.due(), self._status_due(), *(controller.due() for controller in self._controllers)]
        return min((timer for timer in timers if timer is not None), default=None)

    def _status_due(self) -> int | None:
        due_s = self.scheduler.status_writer.due_s()
        return None if due_s is None else int(due_s * SECOND) + MICROSECOND  # never before it: floats round

    def pending(self) -> list[dict[str, Any]]:
        """The gangs that wait, and why, as JSON; with the numbers of now."""
        self._catch_up()
        self.engine.rediagnose()
        found: list[dict[str, Any]] = msgspec.to_builtins(self.engine.pending())
        for entry in found:
            at_ns = entry.pop("expected_start_ns")
            if at_ns is not None:
                entry["expectedStart"] = format_timestamp(at_ns)
        workloads = [one.inner for one in self._controllers if isinstance(one.inner, WorkloadController)]
        refused = {entry["gang"]: entry for one in workloads for entry in one.waiting()}
        return [entry for entry in found if entry["gang"] not in refused] + list(refused.values())

    def close(self) -> None:
        self._watch.close()
        if self._writes is not None:
            self._writes.close()
