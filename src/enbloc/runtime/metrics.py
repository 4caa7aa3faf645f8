"""The metrics of a control plane. Labels are bound once: counting must cost next to nothing."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from enbloc.runtime.cycle_metrics import CycleMetrics

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """One for each process; tests may have several."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._cycle: CycleMetrics | None = None
        binds = Counter("enbloc_binds", "Bindings that were sent.", ["result"], registry=self.registry)
        self._accepted = binds.labels("taken")
        self._rejected = binds.labels("refused")
        self._bind_s = Histogram(
            "enbloc_bind_seconds", "From the decision to the answer.", buckets=_SECONDS, registry=self.registry
        )
        self.cycle_s = Histogram(
            "enbloc_cycle_seconds", "One scheduling cycle.", buckets=_SECONDS, registry=self.registry
        )
        self.pending_gangs = Gauge("enbloc_pending_gangs", "Gangs that wait.", registry=self.registry)
        self.reserved_nodes = Gauge(
            "enbloc_reserved_nodes", "Nodes that are reserved for starving gangs.", registry=self.registry
        )
        self.writes_waiting = Gauge("enbloc_writes_waiting", "Writes that wait to be sent.", registry=self.registry)
        self.status_updates_waiting = Gauge(
            "enbloc_status_updates_waiting", "Objects with a status update or Event to write.", registry=self.registry
        )
        self._refused = Counter(
            "enbloc_refused_writes", "Writes that the API refused.", ["code"], registry=self.registry
        )
        self.leader = Gauge("enbloc_leader", "Whether this replica is the one that writes.", registry=self.registry)
        self.clock_skew_s = Gauge(
            "enbloc_clock_skew_seconds", "How far the wall clock has jumped since the start.", registry=self.registry
        )

        self.event_lag_s = Histogram(
            "enbloc_event_lag_seconds",
            "From a watch event to the end of the turn that read it.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._requests_s = Histogram(
            "enbloc_api_request_seconds",
            "Requests to the API server by method and code, one attempt each; code 0: no answer.",
            ["method", "code"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._retries = Counter(
            "enbloc_api_retries", "Attempts that followed one that failed.", ["method"], registry=self.registry
        )

    def count_decisions(self, *, volcano: bool) -> CycleMetrics:
        """Decisions and action times of the process's scheduler."""
        self._cycle = CycleMetrics(volcano=volcano)
        for collector in self._cycle.collectors:
            self.registry.register(collector)
        return self._cycle

    def requested(self, method: str, code: int, seconds: float, again: bool) -> None:
        """One attempt of a request to the API server was answered, or given up."""
        self._requests_s.labels(method, str(code)).observe(seconds)
        if again:
            self._retries.labels(method).inc()

    def binding(self, accepted: bool, seconds: float, uid: str = "") -> None:
        """A pod's Binding was answered, this long after its plan was started."""
        if accepted:
            self._accepted.inc()
            self._bind_s.observe(seconds)
            if self._cycle is not None:
                self._cycle.bound(seconds, uid)
        else:
            self._rejected.inc()

    def refused(self, code: int) -> None:
        self._refused.labels(str(code)).inc()
