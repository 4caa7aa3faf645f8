"""The figures of a simulation: waiting times, use of the nodes, and what each gang did.

Computed from the same watch events as the timeline. Amounts are integrated in integers (nano-units × nanoseconds), so
that the figures are the same on every machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from enbloc.api.arbitrator import SCHEDULING_SPEC
from enbloc.api.core import PodSpec
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import Obj, condition_of, holds, name_of, namespace_of, uid_of
from enbloc.api.requests import pod_requests
from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.gangs.lenient import LenientRegistry
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.priority_classes import PRIORITY_CLASS
from enbloc.gangs.registry import GangRegistry, queue_hint
from enbloc.runtime.held_gangs import log_fault
from enbloc.sim.clock import Clock
from enbloc.units import SECOND, natural_key, parse_quantity, parse_timestamp

_GANG_KINDS = GangRegistry.kinds - {PRIORITY_CLASS, SCHEDULING_SPEC}
"""Objects whose creation is the arrival of a gang of the same name."""


SAMPLES: Final = 2_000


class GangRecord(msgspec.Struct, eq=False):
    """What one gang did, in virtual nanoseconds."""

    name: str
    arrived_ns: int
    started_ns: int
    dialect: str = ""
    queue: str = ""
    priority: int = 0
    why: str = ""
    """Why it had waited before it started: the last reason that was reported."""
    ended_ns: int = -1
    bound: int = 0
    running: int = 0
    """Pods that are bound and have not ended."""
    succeeded: int = 0
    failed: int = 0
    nodes: set[str] = set()
    evicted: int = 0
    """Pods that were evicted."""
    evicted_ns: int | None = None
    """The first eviction."""
    restarted_ns: int | None = None
    """The first Binding after it."""

    @property
    def outcome(self) -> str:
        if self.running:
            return "running"
        return "failed" if self.failed else "succeeded" if self.succeeded else "removed"

    def shown(self) -> dict[str, Any]:
        """As JSON: times in seconds."""
        return {
            "gang": self.name,
            "dialect": self.dialect,
            "queue": self.queue,
            "priority": self.priority,
            "came": self.arrived_ns / SECOND,
            "started": self.started_ns / SECOND,
            "ended": None if self.running else self.ended_ns / SECOND,
            "waited": (self.started_ns - self.arrived_ns) / SECOND,
            "why": self.why,
            "pods": self.bound,
            "nodes": sorted(self.nodes, key=natural_key),
            "outcome": self.outcome,
        }


class _Pod(msgspec.Struct, eq=False):
    created_ns: int
    key: GangKey
    why: str = ""
    gang: str = ""
    queue: str = ""
    node: str = ""
    ended: bool = False
    evicted: bool = False
    requests: dict[str, int] = {}


class Statistics:
    """Sums, updated event by event."""

    def __init__(self, clock: Clock, config: Config) -> None:
        self._clock = clock
        self._registry = LenientRegistry.of(config)
        self._titles: dict[GangKey, str] = {}
        self._pods: dict[str, _Pod] = {}
        self._nodes: dict[str, dict[str, int]] = {}
        self._used: dict[str, int] = {}
        self._allocatable: dict[str, int] = {}
        self._used_time: dict[str, int] = {}
        self._allocatable_time: dict[str, int] = {}
        self._integrated_until_ns = 0
        self._used_by_queue: dict[str, dict[str, int]] = {}
        self._samples: list[tuple[int, dict[str, float], dict[str, dict[str, float]]]] = []
        """When the use changed, and the fraction of each resource that was used from then on: in all, by queue."""
        self._arrived_ns: dict[str, int] = {}
        self._why: dict[str, str] = {}
        """Title → why the gang waits or waited last, as its object said."""
        self._why_of_pods: dict[GangKey, str] = {}
        """The same, as its pods said last."""
        self._alive: Counter[GangKey] = Counter()
        """The pods that exist."""
        self._declared: dict[GangKey, GangSpec] = {}
        """Gangs with an object, as they were when it was created."""
        self._removed: dict[str, dict[str, Any]] = {}
        """Title → a gang that was deleted before it started."""
        self._first_of: dict[GangKey, int] = {}
        """Creation of the SchedulingSpec, or of the first pod where pods alone declare the gang."""
        self._first_pod_ns: int | None = None
        self._last_end_ns: int | None = None
        self.waits: list[int] = []
        """Nanoseconds from creation to binding, in the order of the bindings."""
        self.gangs: dict[str, GangRecord] = {}
        """By title, in the order in which they first started."""

    def adopt(self, objects: Iterable[Obj]) -> None:
        """Objects that existed before the run, with the times that they say: those are negative."""
        for obj in sorted(objects, key=lambda one: one["kind"] == "Pod"):
            event = WatchEvent("ADDED", kind_id(obj), obj)
            created_ns = self._since_begin(obj["metadata"].get("creationTimestamp"))
            if event.kind == "Pod":
                started_ns = self._since_begin((obj.get("status") or {}).get("startTime"))
                self._observe_pod(event, max(started_ns, created_ns), created_ns)
                continue
            self.observe(event, created_ns)

    def _since_begin(self, text: object) -> int:
        """A time as nanoseconds since the start; 0 if there is none, or if it is later."""
        try:
            return min(parse_timestamp(text) - self._clock.begin_ns, 0)
        except ValueError:
            return 0

    def started(self) -> int:
        """How many gangs started in this run."""
        return sum(1 for gang in self.gangs.values() if gang.started_ns >= 0)

    def observe(self, event: WatchEvent, created_ns: int | None = None) -> None:
        """S8: an object that cannot be read is not counted."""
        try:
            self._observe(event, created_ns)
        except Exception as failure:
            log_fault((event.kind, namespace_of(event.obj), name_of(event.obj)), failure)

    def _observe(self, event: WatchEvent, created_ns: int | None) -> None:
        if event.kind == "Pod":
            self._observe_pod(event, self._clock.elapsed_ns)
        elif event.kind == "Node":
            self._observe_node(event)
        elif event.kind in self._registry.kinds:
            now_ns = self._clock.elapsed_ns if created_ns is None else created_ns
            for key in self._registry.observe(event).gangs:
                self._titles.pop(key, None)
                self._note_why(key)
                if event.type == "ADDED" and event.kind == SCHEDULING_SPEC:
                    self._first_of[key] = now_ns
                self._note_object(key, event.type, now_ns)
            if event.type == "ADDED" and event.kind in _GANG_KINDS:
                self._arrived_ns.setdefault(f"{namespace_of(event.obj)}/{name_of(event.obj)}", now_ns)

    def _note_object(self, key: GangKey, change: str, now_ns: int) -> None:
        if change == "MODIFIED" or (change == "ADDED" and key in self._declared):
            return  # many objects may be one gang
        spec = self._registry.spec(key)
        if change == "ADDED" and spec is not None:
            self._declared[key] = spec
        elif change == "DELETED" and spec is None and key in self._declared:
            self._note_removed(key, self._declared.pop(key), 0, now_ns)

    def _note_removed(self, key: GangKey, spec: GangSpec, priority: int, now_ns: int) -> None:
        came_ns = self._arrived_ns.get(spec.title, self._first_of.get(key, now_ns))
        if spec.title not in self.gangs:
            gang = GangRecord(spec.title, came_ns, now_ns)
            gang.dialect, gang.queue = spec.dialect or key.dialect, spec.queue
            gang.priority = spec.priority if spec.priority is not None else priority
            gang.why = self._why.get(spec.title) or self._why_of_pods.get(key, "")
            self._removed[spec.title] = gang.shown() | {"started": None, "ended": now_ns / SECOND}

    def _note_why(self, key: GangKey) -> None:
        obj = self._registry.object(key)
        condition = holds(obj, "Unschedulable") if obj is not None else None
        if condition is None:
            return
        spec = self._registry.spec(key)
        if spec is not None:
            self._why[spec.title] = str(condition.get("message") or "")

    def _observe_pod(self, event: WatchEvent, now_ns: int, created_ns: int | None = None) -> None:
        obj, uid = event.obj, uid_of(event.obj)
        created_ns = now_ns if created_ns is None else created_ns
        pod = self._pods.get(uid)
        if pod is None:
            pod = self._pods[uid] = _Pod(created_ns, self._registry.member(obj).gang)
            self._first_of.setdefault(pod.key, created_ns)
            self._alive[pod.key] += 1
            if self._first_pod_ns is None:
                self._first_pod_ns = created_ns
        node = obj["spec"].get("nodeName") or ""
        if node and not pod.node:
            self._bound(pod, obj, node, now_ns)
        elif not node:
            condition = condition_of(obj, "PodScheduled")
            pod.why = str((condition or {}).get("message") or "") or pod.why
            if pod.why:
                self._why_of_pods[pod.key] = pod.why
        phase = (obj.get("status") or {}).get("phase")
        gone = event.type == "DELETED"
        if pod.node and not pod.evicted and holds(obj, "DisruptionTarget"):
            self._evicted(pod, now_ns)
        if (gone or phase in ("Succeeded", "Failed")) and not pod.ended:
            self._ended(pod, phase or "", now_ns)
        if gone:
            del self._pods[uid]
            self._alive[pod.key] -= 1
            if pod.node:
                self._registry.observe_pod(obj, gone=True)
            elif not self._alive[pod.key] and self._registry.spec(pod.key) is None:
                spec = self._registry.undeclared(pod.key, 0, queue_hint(obj))
                self._note_removed(pod.key, spec, obj["spec"].get("priority") or 0, now_ns)

    def _bound(self, pod: _Pod, obj: Obj, node: str, now_ns: int) -> None:
        pod.node = node
        pod.gang, key = self._title(obj)
        pod.requests = pod_requests(view(obj["spec"], PodSpec))
        if now_ns >= 0:
            self.waits.append(now_ns - pod.created_ns)
        self._change(self._used, pod.requests, 1)
        gang = self.gangs.get(pod.gang)
        if gang is not None and gang.evicted_ns is not None and gang.restarted_ns is None:
            gang.restarted_ns = now_ns
        if gang is None:
            arrived_ns = self._arrived_ns.get(pod.gang, self._first_of.get(key, pod.created_ns))
            gang = self.gangs[pod.gang] = GangRecord(pod.gang, arrived_ns, now_ns)
            self._describe(gang, key, obj, pod.why if now_ns > arrived_ns else "")
        pod.queue = gang.queue
        self._change(self._used_by_queue.setdefault(pod.queue, {}), pod.requests, 1)
        gang.bound += 1
        gang.running += 1
        gang.ended_ns = -1
        gang.nodes.add(node)

    def _evicted(self, pod: _Pod, now_ns: int) -> None:
        pod.evicted = True
        gang = self.gangs[pod.gang]
        if now_ns >= 0:
            gang.evicted += 1
            gang.evicted_ns = now_ns if gang.evicted_ns is None else gang.evicted_ns

    def _describe(self, gang: GangRecord, key: GangKey, pod: Obj, why: str) -> None:
        spec = self._registry.spec(key) or self._registry.undeclared(key, 0, queue_hint(pod))
        gang.dialect, gang.queue = spec.dialect or key.dialect, spec.queue
        gang.priority = spec.priority if spec.priority is not None else pod["spec"].get("priority") or 0
        if gang.started_ns > gang.arrived_ns:
            gang.why = why or self._why.get(gang.name) or self._why_of_pods.get(key, "")

    def shown(self, pending: Iterable[Mapping[str, Any]], end_ns: int) -> list[dict[str, Any]]:
        """Every gang of the run: those that started, those that wait, those that were deleted before they started. One
        that lost all its pods, at `stopped`, and waits again has not ended."""
        waiting = {entry["gang"]: entry for entry in pending}
        shown = [gang.shown() for gang in self.gangs.values()]
        for one in shown:
            if one["ended"] is not None and one["gang"] in waiting:
                why = waiting[one["gang"]]["message"]
                one |= {"ended": None, "stopped": one["ended"], "why": why, "outcome": "waiting"}
        first_of = {self._title_of(key, ""): at for key, at in self._first_of.items()}
        never = [entry for title, entry in waiting.items() if title not in self.gangs]
        gone = [one for title, one in self._removed.items() if title not in self.gangs and title not in waiting]
        return shown + [self._waiting_gang(entry, first_of, end_ns) for entry in never] + gone

    def _waiting_gang(self, entry: Mapping[str, Any], first_of: Mapping[str, int], end_ns: int) -> dict[str, Any]:
        came_ns = self._arrived_ns.get(entry["gang"], first_of.get(entry["gang"]))
        return {
            **{key: entry[key] for key in ("gang", "dialect", "queue", "priority")},
            "came": None if came_ns is None else came_ns / SECOND,
            "started": None,
            "ended": None,
            "waited": None if came_ns is None else (end_ns - came_ns) / SECOND,
            "why": entry["message"],
            "pods": 0,
            "nodes": [],
            "outcome": "waiting",
        }

    def _title(self, pod: Obj) -> tuple[str, GangKey]:
        """What the user calls the gang of a pod that is bound."""
        self._registry.observe_pod(pod, gone=False)
        key = self._registry.member(pod).gang
        return self._title_of(key, queue_hint(pod)), key

    def _title_of(self, key: GangKey, queue: str) -> str:
        title = self._titles.get(key)
        if title is None:
            spec = self._registry.spec(key) or self._registry.undeclared(key, 0, queue)
            title = self._titles[key] = spec.title
        return title

    def _ended(self, pod: _Pod, phase: str, now_ns: int) -> None:
        pod.ended = True
        if not pod.node:
            return
        self._last_end_ns = now_ns
        self._change(self._used, pod.requests, -1)
        self._change(self._used_by_queue[pod.queue], pod.requests, -1)
        pod.requests = {}
        gang = self.gangs[pod.gang]
        gang.running -= 1
        gang.succeeded += phase == "Succeeded"
        gang.failed += phase == "Failed"
        if gang.running == 0:
            gang.ended_ns = now_ns

    def _observe_node(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        self._change(self._allocatable, self._nodes.pop(name, {}), -1)
        if event.type == "DELETED":
            return
        status = event.obj.get("status") or {}
        stated = status.get("allocatable") or status.get("capacity") or {}
        amounts = {resource: parse_quantity(amount).nanos for resource, amount in stated.items()}
        self._nodes[name] = amounts
        self._change(self._allocatable, amounts, 1)

    def _change(self, sums: dict[str, int], amounts: dict[str, int], sign: int) -> None:
        self._integrate(self._clock.elapsed_ns)
        for resource, nanos in amounts.items():
            sums[resource] = sums.get(resource, 0) + sign * nanos

    def finish(self, end_ns: int) -> None:
        """Integrates up to the end."""
        self._integrate(end_ns)

    def _integrate(self, until_ns: int) -> None:
        passed_ns = until_ns - self._integrated_until_ns
        if passed_ns <= 0:
            return
        self._sample()
        self._integrated_until_ns += passed_ns
        for sums, integral in ((self._used, self._used_time), (self._allocatable, self._allocatable_time)):
            for resource, nanos in sums.items():
                integral[resource] = integral.get(resource, 0) + nanos * passed_ns

    def _sample(self) -> None:
        """Every second sample is dropped when there are too many: a long run has a coarser curve."""
        use, by_queue = self._fractions(self._used), self._use_by_queue()
        if not self._samples or self._samples[-1][1:] != (use, by_queue):
            self._samples.append((self._integrated_until_ns, use, by_queue))
        if len(self._samples) > SAMPLES:
            self._samples = self._samples[::2]

    def _fractions(self, used: Mapping[str, int]) -> dict[str, float]:
        return {name: used.get(name, 0) / total for name, total in self._allocatable.items() if total}

    def _use_by_queue(self) -> dict[str, dict[str, float]]:
        """Only what is used."""
        fractions = {queue: self._fractions(used) for queue, used in sorted(self._used_by_queue.items())}
        found = {queue: {name: part for name, part in parts.items() if part} for queue, parts in fractions.items()}
        return {queue: parts for queue, parts in found.items() if parts}

    def series(self, end_ns: int) -> list[dict[str, Any]]:
        """The use of each resource over time, in all and by queue, as JSON."""
        samples = [*self._samples, (end_ns, self._fractions(self._used), self._use_by_queue())]
        return [
            {
                "t": at / SECOND,
                "use": {name: round(part, 4) for name, part in use.items()},
                "queues": {
                    queue: {name: round(part, 4) for name, part in parts.items()} for queue, parts in by_queue.items()
                },
            }
            for at, use, by_queue in samples
        ]

    def utilisation(self) -> dict[str, float]:
        """By resource: the fraction of the nodes' allocatable that was used, over the time up to the last change."""
        return {
            resource: round(self._used_time.get(resource, 0) / total, 4)
            for resource, total in sorted(self._allocatable_time.items())
            if total and (resource in ("cpu", "memory") or "/" in resource)
        }

    def waiting(self) -> dict[str, dict[str, float]]:
        """Seconds from creation to binding for pods, from arrival to the first binding for gangs. Those that still wait
        are not counted: they are in `pending`."""
        gangs = [gang.started_ns - gang.arrived_ns for gang in self.gangs.values() if gang.started_ns >= 0]
        return {"gangs": _distribution(gangs), "pods": _distribution(self.waits)}

    def makespan(self) -> float | None:
        """Seconds from the first pod's creation to the last end of a pod."""
        if self._first_pod_ns is None or self._last_end_ns is None:
            return None
        return (self._last_end_ns - self._first_pod_ns) / SECOND


def _distribution(nanos: list[int]) -> dict[str, float]:
    """Minimum, median, p95 and maximum in seconds, by nearest rank; empty without values."""
    if not nanos:
        return {}
    ordered = sorted(nanos)

    def rank(percent: int) -> float:
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] / SECOND

    return {"min": rank(0), "median": rank(50), "p95": rank(95), "max": rank(100)}
