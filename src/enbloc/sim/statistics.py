"""The numbers of a run: how long pods waited, how full the nodes were, and what each gang did.

Fed with the same watch events as the timeline. Amounts are integrated in integers (nano-units × nanoseconds), so that
the figures are the same on every machine.
"""

from __future__ import annotations

from enbloc.api.arbitrator import SCHEDULING_SPEC
from enbloc.api.core import PodSpec
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import Obj, annotations_of, controller_of, labels_of, name_of, namespace_of, uid_of
from enbloc.api.requests import pod_requests
from enbloc.api.volcano import GROUP_NAME_KEYS
from enbloc.api.writes import WatchEvent
from enbloc.sim.clock import Clock
from enbloc.units import SECOND, parse_quantity

_GANG_CONTROLLERS = frozenset({"Job.batch.volcano.sh", "QueueJob.arbitrator.incubator.k8s.io"})
_GANG_KINDS = _GANG_CONTROLLERS | {
    "PodGroup.scheduling.volcano.sh",
    "PodGroup.scheduling.sigs.k8s.io",
    "PodGroup.scheduling.x-k8s.io",
    "PodGroup.scheduling.k8s.io",
}
_GANG_ANNOTATIONS = (*GROUP_NAME_KEYS, "gang.scheduling.koordinator.sh/name", "pod-group.scheduling.sigs.k8s.io/name")
_GANG_LABELS = ("pod-group.scheduling.sigs.k8s.io", "scheduling.x-k8s.io/pod-group")


class GangRecord:
    """What one gang did, in virtual nanoseconds."""

    __slots__ = ("bound", "came_at", "ended_at", "failed", "name", "nodes", "open", "started_at", "succeeded")

    def __init__(self, name: str, came_at: int, started_at: int) -> None:
        self.name = name
        self.came_at = came_at
        self.started_at = started_at
        self.ended_at = -1
        self.bound = 0
        self.open = 0
        """Pods that are bound and have not ended."""
        self.succeeded = 0
        self.failed = 0
        self.nodes: set[str] = set()


class _Pod:
    __slots__ = ("created_at", "gang", "node", "over", "requests")

    def __init__(self, created_at: int, gang: str) -> None:
        self.created_at = created_at
        self.gang = gang
        self.node = ""
        self.over = False
        self.requests: dict[str, int] = {}


class Statistics:
    """Sums, kept up to date event by event."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, _Pod] = {}
        self._nodes: dict[str, dict[str, int]] = {}
        self._used: dict[str, int] = {}
        self._allocatable: dict[str, int] = {}
        self._used_time: dict[str, int] = {}
        self._allocatable_time: dict[str, int] = {}
        self._counted_until = 0
        self._came_at: dict[str, int] = {}
        self._titles: dict[str, str] = {}
        """What people call the gangs of SchedulingSpecs, by the UID of their owner (A1)."""
        self._first_pod_at: int | None = None
        self._last_end_at: int | None = None
        self.waits: list[int] = []
        """Nanoseconds from creation to binding, in the order of the bindings."""
        self.gangs: dict[str, GangRecord] = {}
        """By name, in the order in which they first started."""

    def observe(self, event: WatchEvent) -> None:
        if event.kind == "Pod":
            self._observe_pod(event)
        elif event.kind == "Node":
            self._observe_node(event)
        elif event.type == "ADDED" and event.kind == SCHEDULING_SPEC:
            owner = controller_of(event.obj)
            if owner is not None:
                self._titles[owner["uid"]] = f"{namespace_of(event.obj)}/{owner['name']}"
        elif event.type == "ADDED" and event.kind in _GANG_KINDS:
            self._came_at.setdefault(f"{namespace_of(event.obj)}/{name_of(event.obj)}", self._clock.elapsed)

    def _observe_pod(self, event: WatchEvent) -> None:
        obj, uid, now = event.obj, uid_of(event.obj), self._clock.elapsed
        pod = self._pods.get(uid)
        if pod is None:
            pod = self._pods[uid] = _Pod(now, gang_name(obj))
            if self._first_pod_at is None:
                self._first_pod_at = now
        node = obj["spec"].get("nodeName") or ""
        if node and not pod.node:
            self._bound(pod, obj, node, now)
        phase = (obj.get("status") or {}).get("phase")
        gone = event.type == "DELETED"
        if (gone or phase in ("Succeeded", "Failed")) and not pod.over:
            self._over(pod, phase or "", now)
        if gone:
            del self._pods[uid]

    def _bound(self, pod: _Pod, obj: Obj, node: str, now: int) -> None:
        pod.node = node
        owner = controller_of(obj)
        if owner is not None and pod.gang == f"{namespace_of(obj)}/{name_of(obj)}":  # it speaks no dialect by itself
            pod.gang = self._titles.get(owner["uid"], pod.gang)
        pod.requests = pod_requests(view(obj["spec"], PodSpec))
        self.waits.append(now - pod.created_at)
        self._change(self._used, pod.requests, 1)
        gang = self.gangs.get(pod.gang)
        if gang is None:
            gang = self.gangs[pod.gang] = GangRecord(pod.gang, self._came_at.get(pod.gang, pod.created_at), now)
        gang.bound += 1
        gang.open += 1
        gang.ended_at = -1
        gang.nodes.add(node)

    def _over(self, pod: _Pod, phase: str, now: int) -> None:
        pod.over = True
        if not pod.node:
            return
        self._last_end_at = now
        self._change(self._used, pod.requests, -1)
        pod.requests = {}
        gang = self.gangs[pod.gang]
        gang.open -= 1
        gang.succeeded += phase == "Succeeded"
        gang.failed += phase == "Failed"
        if gang.open == 0:
            gang.ended_at = now

    def _observe_node(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        self._change(self._allocatable, self._nodes.pop(name, {}), -1)
        if event.type == "DELETED":
            return
        status = event.obj.get("status") or {}
        stated = status.get("allocatable") or status.get("capacity") or {}
        room = {resource: parse_quantity(amount).nanos for resource, amount in stated.items()}
        self._nodes[name] = room
        self._change(self._allocatable, room, 1)

    def _change(self, sums: dict[str, int], amounts: dict[str, int], sign: int) -> None:
        self._integrate(self._clock.elapsed)
        for resource, nanos in amounts.items():
            sums[resource] = sums.get(resource, 0) + sign * nanos

    def finish(self, end: int) -> None:
        """Counts what is used now up to the end."""
        self._integrate(end)

    def _integrate(self, until: int) -> None:
        passed = until - self._counted_until
        if passed <= 0:
            return
        self._counted_until += passed
        for sums, integral in ((self._used, self._used_time), (self._allocatable, self._allocatable_time)):
            for resource, nanos in sums.items():
                integral[resource] = integral.get(resource, 0) + nanos * passed

    def utilisation(self) -> dict[str, float]:
        """Resource → used part of what the nodes had, over the time up to the last change."""
        return {
            resource: round(self._used_time.get(resource, 0) / total, 4)
            for resource, total in sorted(self._allocatable_time.items())
            if total and (resource in ("cpu", "memory") or "/" in resource)
        }

    def waiting(self) -> dict[str, dict[str, float]]:
        """How long pods (from creation to binding) and gangs (from their coming to their first pod's binding) waited,
        in seconds; of those that still wait, `pending` tells."""
        gangs = [gang.started_at - gang.came_at for gang in self.gangs.values()]
        return {"gangs": _spread(gangs), "pods": _spread(self.waits)}

    def makespan(self) -> float | None:
        """Seconds from the first pod's creation to the last end of a pod."""
        if self._first_pod_at is None or self._last_end_at is None:
            return None
        return (self._last_end_at - self._first_pod_at) / SECOND


def _spread(nanos: list[int]) -> dict[str, float]:
    """The least, the middle, nearly the most and the most, in seconds, by nearest rank; empty for nothing."""
    if not nanos:
        return {}
    ordered = sorted(nanos)

    def rank(percent: int) -> float:
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] / SECOND

    return {"min": rank(0), "median": rank(50), "p95": rank(95), "max": rank(100)}


def gang_name(pod: Obj) -> str:
    """What the user would call the pod's gang: the job, the group, or the pod itself."""
    namespace = namespace_of(pod)
    owner = controller_of(pod)
    if owner is not None and owner.get("apiVersion") and kind_id(owner) in _GANG_CONTROLLERS:
        return f"{namespace}/{owner['name']}"
    annotations, labels = annotations_of(pod), labels_of(pod)
    for texts, keys in ((annotations, _GANG_ANNOTATIONS), (labels, _GANG_ANNOTATIONS + _GANG_LABELS)):
        for key in keys:
            if texts.get(key):
                return f"{namespace}/{texts[key]}"
    return f"{namespace}/{name_of(pod)}"
