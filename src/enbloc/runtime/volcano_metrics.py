"""Cycles, pods and starts under the names, labels and units that Volcano's boards query: `metrics.compat: volcano`.

Its plugins have callbacks at both ends of a session; ours are rules inside the actions. What a cycle does before and
after its actions for all of them is under `plugin="all"`. The queues are in `engine_metrics`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from prometheus_client import Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

_MS: Final = tuple(5.0 * 2**power for power in range(15))
_JOB_MS: Final = tuple(32.0 * 2**power for power in range(18))
"""Gangs wait for minutes and hours; Volcano's own buckets end at 16 s."""
_STARTED: Final = 500
"""At most 500 gangs have a time of their own."""
_ASSUMED: Final = 20_000
"""At most 20,000 pods are waited for; `enbloc up` binds at once and asks for no answer."""
_ENDS: Final = {"begin": "OnSessionOpen", "end": "OnSessionClose"}


class VolcanoMetrics(Collector):
    """Counted by `CycleMetrics`, in milliseconds as there."""

    def __init__(self) -> None:
        def histogram(name: str, text: str, *labels: str, buckets: tuple[float, ...] = _MS) -> Histogram:
            return Histogram(f"volcano_{name}_milliseconds", text, labels, buckets=buckets, registry=None)

        self._cycle_ms = histogram("e2e_scheduling_latency", "one scheduling cycle")
        self._action_ms = histogram("action_scheduling_latency", "one action of a cycle", "action")
        self._plugin_ms = histogram(
            "plugin_scheduling_latency", "before and after the actions of a cycle, for all rules", "plugin", "OnSession"
        )
        self._session_ms = histogram("open_session_duration", "before the first action of a cycle")
        self._job_ms = histogram(
            "e2e_job_scheduling_latency", "from a gang's creation to its Bindings", buckets=_JOB_MS
        )
        self._task_ms = histogram(
            "task_scheduling_latency",
            "from a pod's creation to the event that reports it (Watched), the decision (Assumed), "
            "the answer of its Binding (Bound)",
            "stage",
            buckets=_JOB_MS,
        )
        self._stage_ms = histogram(
            "scheduling_stage_duration", "from the decision to the answer of a pod's Binding (Bind)", "stage"
        )
        self._attempts = Counter("volcano_schedule_attempts", "gangs that were bound", ["result"], registry=None)
        self._sum_ms = 0.0
        self._of_gangs: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._assumed_s: OrderedDict[str, float] = OrderedDict()
        """By UID of a pod whose Binding is not answered yet: from its creation to the decision."""
        self.victims = 0
        self.attempts = 0

    def took(self, part: str, seconds: float) -> None:
        """A part of a cycle: `begin`, an action, or `end`."""
        ms = seconds * 1_000
        self._sum_ms += ms
        if part not in _ENDS:
            self._action_ms.labels(part).observe(ms)
            return
        self._plugin_ms.labels("all", _ENDS[part]).observe(ms)
        if part == "begin":
            self._session_ms.observe(ms)
        else:
            self._cycle_ms.observe(self._sum_ms)
            self._sum_ms = 0.0

    def watched(self, seconds: float) -> None:
        """A pod was read from a watch, this long after its creation."""
        self._task_ms.labels("Watched").observe(seconds * 1_000)

    def assumed(self, seconds: float, uid: str) -> None:
        """A pod was decided to be bound, this long after its creation."""
        self._task_ms.labels("Assumed").observe(seconds * 1_000)
        self._assumed_s[uid] = seconds
        while len(self._assumed_s) > _ASSUMED:
            self._assumed_s.popitem(last=False)

    def bound(self, seconds: float, uid: str) -> None:
        """A pod's Binding was answered, this long after its decision."""
        self._stage_ms.labels("Bind").observe(seconds * 1_000)
        before_s = self._assumed_s.pop(uid, None)
        if before_s is not None:
            self._task_ms.labels("Bound").observe((before_s + seconds) * 1_000)

    def started(self, title: str, queue: str, seconds: float) -> None:
        namespace, _, name = title.partition("/")
        self._job_ms.observe(seconds * 1_000)
        self._attempts.labels("Success").inc()
        self._of_gangs[name, queue, namespace] = seconds * 1_000
        while len(self._of_gangs) > _STARTED:
            self._of_gangs.popitem(last=False)

    def collect(self) -> Iterator[Metric]:
        for one in (
            self._cycle_ms,
            self._action_ms,
            self._plugin_ms,
            self._session_ms,
            self._job_ms,
            self._task_ms,
            self._stage_ms,
            self._attempts,
        ):
            yield from one.collect()
        labels = ["job_name", "queue", "job_namespace"]
        durations = GaugeMetricFamily("volcano_e2e_job_scheduling_duration", "the same of one gang", labels=labels)
        for key, value in self._of_gangs.items():
            durations.add_metric(list(key), value)
        yield durations
        yield GaugeMetricFamily("volcano_pod_preemption_victims", "pods that were evicted", value=self.victims)
        yield GaugeMetricFamily(
            "volcano_total_preemption_attempts", "gangs that pods were evicted for", value=self.attempts
        )
