"""What a scheduler decides and how long that takes, counted cycle by cycle, for `enbloc up` and `enbloc run` alike.

The engine owns no clock: it names its parts as it runs them (`timed`), and the time is taken here.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.registry import Collector

from enbloc.api.meta import Obj
from enbloc.engine.decisions import Bind, Decision, Enqueue, Evict, SetAside, TimeOut
from enbloc.engine.engine import Engine
from enbloc.gangs.claim_records import ClaimKind
from enbloc.runtime.volcano_metrics import VolcanoMetrics
from enbloc.units import SECOND, parse_timestamp

CYCLE_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
START_S: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 4 * 3_600, 12 * 3_600, 24 * 3_600, 3 * 24 * 3_600)
SIZES: Final = ((1, "1"), (8, "2-8"), (64, "9-64"), (512, "65-512"))
"""Size classes of gangs, by pods: the upper bound, and the label."""
LARGEST: Final = "513+"


def size_class(pods: int) -> str:
    return next((label for most, label in SIZES if pods <= most), LARGEST)


class CycleMetrics:
    """One for each process; a scheduler that is replaced goes on counting here."""

    def __init__(self, *, volcano: bool = False) -> None:
        """`volcano`: also under the names that Volcano's boards query."""
        self._start_s = Histogram(
            "enbloc_gang_start_seconds",
            "From the creation of a gang to the Bindings of its minimum, by queue and size class (pods).",
            ["queue", "size"],
            buckets=START_S,
            registry=None,
        )
        self._action_s = Histogram(
            "enbloc_action_seconds",
            "One action of a scheduling cycle; `begin` and `end` are what surrounds the actions.",
            ["action"],
            buckets=CYCLE_S,
            registry=None,
        )
        self._decisions = Counter(
            "enbloc_decisions",
            "Decisions of the engine: bind, evict, enqueue, claim, release, timeout.",
            ["kind"],
            registry=None,
        )
        self._bound_pods = Counter(
            "enbloc_bound_pods", "Pods that were decided to be bound, by queue.", ["queue"], registry=None
        )
        self._evictions = Counter(
            "enbloc_evictions",
            "Pods that were decided to be evicted, by queue and reason.",
            ["queue", "reason"],
            registry=None,
        )
        self._claims = Counter(
            "enbloc_claims", "Claims that began: reservations, holds, nominations, waves.", ["kind"], registry=None
        )
        self._faults = Counter(
            "enbloc_internal_errors",
            "What raised in this program: a gang is held with reason InternalError, or a step is repeated.",
            registry=None,
        )
        self.volcano = VolcanoMetrics() if volcano else None
        self.collectors: list[Collector] = [
            self._start_s,
            self._action_s,
            self._decisions,
            self._bound_pods,
            self._evictions,
            self._claims,
            self._faults,
            *([self.volcano] if self.volcano is not None else []),
        ]

    def failed(self) -> None:
        """Something raised (S8)."""
        self._faults.inc()

    def bound(self, seconds: float, uid: str) -> None:
        """A pod's Binding was answered, this long after its decision."""
        if self.volcano is not None:
            self.volcano.bound(seconds, uid)

    def watched(self, pod: Obj, now_ns: int) -> None:
        """A new pod of ours was read from a watch."""
        if self.volcano is not None and not (pod.get("spec") or {}).get("nodeName"):
            created_ns = parse_timestamp(pod["metadata"]["creationTimestamp"])
            self.volcano.watched(max(0, now_ns - created_ns) / SECOND)

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        began_s = time.perf_counter()
        try:
            yield
        finally:
            took_s = time.perf_counter() - began_s
            self._action_s.labels(part).observe(took_s)
            if self.volcano is not None:
                self.volcano.took(part, took_s)

    def decided(self, engine: Engine, decision: Decision, now_ns: int) -> None:
        if isinstance(decision, Bind):
            self._bound(engine, decision, now_ns)
        elif isinstance(decision, Evict):
            self._decisions.labels("evict").inc()
            gang = engine.state.gangs.get(decision.gang)
            self._evictions.labels(gang.spec.queue if gang is not None else "", decision.reason).inc()
            if self.volcano is not None:
                self.volcano.victims += 1
        elif isinstance(decision, Enqueue):
            self._decisions.labels("enqueue").inc()
        elif isinstance(decision, TimeOut):
            self._decisions.labels("timeout").inc()
        elif isinstance(decision, SetAside):
            self._decisions.labels("release" if decision.record is None else "claim").inc()
            if decision.record is not None:
                self._claims.labels(str(decision.kind)).inc()
                if self.volcano is not None and decision.kind is ClaimKind.PREEMPT:
                    self.volcano.attempts += 1

    def _bound(self, engine: Engine, decision: Bind, now_ns: int) -> None:
        self._decisions.labels("bind").inc()
        first = engine.state.gangs.get(decision.gang)
        self._bound_pods.labels(first.spec.queue if first is not None else "").inc(len(decision.placements))
        if self.volcano is not None:
            for place in decision.placements:
                task = engine.state.tasks.get(place.uid)
                if task is not None:
                    self.volcano.assumed(max(0, now_ns - task.created_ns) / SECOND, place.uid)
        if not decision.commits:
            return
        for key in (decision.gang, *decision.others):
            gang = engine.state.gangs.get(key)
            if gang is None:
                continue
            waited_s = max(0, now_ns - gang.spec.created_ns) / SECOND
            self._start_s.labels(gang.spec.queue, size_class(len(gang.tasks))).observe(waited_s)
            if self.volcano is not None:
                self.volcano.started(gang.spec.title, gang.spec.queue, waited_s)
