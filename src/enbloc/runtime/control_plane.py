"""The control plane on one cluster: scheduler and controllers, each fed by watches, stepped by whoever owns the clock.

Nothing in here outlives it: a restart is a new one on the same cluster.
"""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.settle import ROUNDS, Restless
from enbloc.cluster.port import Cluster, Watch
from enbloc.config import Config
from enbloc.controllers import coscheduling, koordinator, kubernetes, volcano
from enbloc.controllers.controller import Controller
from enbloc.controllers.job import JobController
from enbloc.controllers.plugins.ssh import KeyPair, rsa_key_pair
from enbloc.controllers.queue import QueueController
from enbloc.controllers.queuejob import QueueJobController
from enbloc.runtime.scheduler import Scheduler
from enbloc.units import format_timestamp


def controllers(key_pair: KeyPair = rsa_key_pair) -> list[Controller]:
    """All of them, in the order in which they are asked."""
    return [
        JobController(key_pair),
        volcano.controller(),
        koordinator.controller(),
        coscheduling.controller(),
        kubernetes.controller(),
        QueueController(),
        QueueJobController(),
    ]


class ControlPlane:
    """Scheduler and controllers of one cluster."""

    def __init__(
        self, cluster: Cluster, config: Config, scheduler_names: frozenset[str], key_pair: KeyPair = rsa_key_pair
    ) -> None:
        self._cluster = cluster
        self.scheduler = Scheduler(cluster, config, scheduler_names)
        self._controllers = controllers(key_pair)
        self._watch = self._open()

    def _open(self) -> Watch:
        """Lists everything that anybody here looks at, then watches from there."""
        kinds = Scheduler.kinds.union(*(controller.kinds for controller in self._controllers))
        oldest: int | None = None
        for kind in sorted(kinds, key=_listing_order):
            objects, version = self._cluster.list(kind)
            oldest = version if oldest is None else min(oldest, version)
            for obj in objects:
                self._spread(WatchEvent("ADDED", kind, obj))
        return self._cluster.watch(kinds, oldest or 0)

    def _spread(self, event: WatchEvent) -> None:
        if event.kind in Scheduler.kinds:
            self.scheduler.observe(event)
        for controller in self._controllers:
            if event.kind in controller.kinds:
                controller.observe(event)

    def _catch_up(self) -> None:
        for event in self._watch.drain():
            self._spread(event)

    def reconcile(self, now: int) -> bool:
        """Runs the controllers until none has anything to do. Says whether anything was written."""
        wrote = False
        for _ in range(ROUNDS):
            self._catch_up()
            again = False
            for controller in self._controllers:
                for write in controller.reconcile(now):
                    try:
                        self._cluster.execute(write)
                        again = True
                    except Refused as error:
                        controller.refused(write, error, now)
                self._catch_up()
            if not again:
                return wrote
            wrote = True
        raise Restless(f"the controllers still write after {ROUNDS} rounds at one instant")

    def schedule(self, now: int) -> bool:
        """One scheduling cycle. Says whether anything was written."""
        self._catch_up()
        wrote = self.scheduler.schedule(now)
        self._catch_up()
        return wrote

    def due(self) -> int | None:
        """The next instant at which something has to be looked at though nothing happens."""
        timers = [self.scheduler.due(), *(controller.due() for controller in self._controllers)]
        return min((timer for timer in timers if timer is not None), default=None)

    def pending(self) -> list[dict[str, Any]]:
        """The gangs that wait, and why, as they are shown to people."""
        self._catch_up()
        found: list[dict[str, Any]] = msgspec.to_builtins(self.scheduler.pending())
        for entry in found:
            at = entry.pop("expected_start")
            if at is not None:
                entry["expectedStart"] = format_timestamp(at)
        return found

    def close(self) -> None:
        self._watch.close()


def _listing_order(kind: str) -> tuple[bool, str]:
    """Pods last: what they belong to is known by then, and nothing has to be read twice."""
    return (kind == "Pod", kind)
