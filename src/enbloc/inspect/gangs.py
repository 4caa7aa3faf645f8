"""One row for each gang: its state, its pods, and the condition that says why it waits.

Which gang a pod belongs to is read by `GangRegistry`; what the scheduler decided is read from conditions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, annotations_of, condition_of, is_terminating, labels_of, name_of, namespace_of
from enbloc.api.reasons import PendingReason
from enbloc.api.requests import pod_requests
from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.gangs.claim_records import Record
from enbloc.gangs.hints import EXPECTED_START
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.registry import GangRegistry, queue_hint
from enbloc.units import parse_timestamp

Objects = Mapping[str, Sequence[Obj]]
"""By kind: what the API lists."""

KINDS: Final = tuple(sorted(GangRegistry.kinds)) + ("Pod",)
WAITING, RUNNING, FAILED, FINISHED = "Waiting", "Running", "Failed", "Finished"
STATES: Final = (WAITING, RUNNING, FAILED, FINISHED)
_ON_A_NODE: Final = ("running", "starting", "leaving")


class Gang(msgspec.Struct, frozen=True, rename="camel"):
    """One gang."""

    gang: str
    """NAMESPACE/NAME of the Job, PodGroup or pod that its author wrote."""
    dialect: str
    queue: str
    state: str
    priority: int
    minimum: int
    minima: Mapping[str, int]
    pods: Mapping[str, int]
    """Pods by state: waiting, starting, running, succeeded, failed, leaving."""
    roles: Mapping[str, Mapping[str, int]]
    nodes: Mapping[str, int]
    """By node: how many of its pods are there."""
    created: int
    message: str = ""
    """Why it waits: the message of the scheduler's condition."""
    reason: str = ""
    since: str = ""
    """The last transition of that condition."""
    expected_start: str = ""
    """When the scheduler expects it to start, if it has a forecast (R8)."""
    set_aside: Mapping[str, int] = {}
    """By node: how many of its pods have a claim there (a reservation or a nomination)."""
    needs: Mapping[str, int] = {}
    """Nano-units by resource: the requests of the pods that its minimum still needs, if they are known."""
    largest: Mapping[str, int] = {}
    """The same for its largest waiting pod."""
    labels: Mapping[str, str] = {}
    """Of its object, else of its first pod by name."""


class Reading:
    """Listed objects, read once: the gangs, and the pods of each."""

    def __init__(self, objects: Objects, config: Config | None = None) -> None:
        """`config`: the scheduler's, where it is known."""
        self.registry = (
            GangRegistry(config.arbitrator, config.koordinator, config.tenancy)
            if config is not None
            else GangRegistry()
        )
        self._requests: dict[int, dict[str, int]] = {}  # by id(): the listed objects stay alive
        self.members: dict[GangKey, list[tuple[str, Obj]]] = {}
        keys: dict[GangKey, None] = {}
        for kind in KINDS:
            for obj in objects.get(kind, ()):
                event = WatchEvent("ADDED", kind, obj)
                changed = self.registry.observe_pod(obj, False) if kind == "Pod" else self.registry.observe(event)
                keys.update(dict.fromkeys(changed.gangs))
        for pod in objects.get("Pod", ()):
            membership = self.registry.member(pod)
            self.members.setdefault(membership.gang, []).append((membership.role, pod))
        self.keys: list[GangKey] = list({**keys, **dict.fromkeys(self.members)})

    def gangs(self) -> list[Gang]:
        """Every gang: waiting ones first, each group in scheduling order (G8)."""
        rows = (self._row(key, self.members.get(key, [])) for key in self.keys)
        return sorted((row for row in rows if row is not None), key=order)

    def requests(self, pod: Obj) -> dict[str, int]:
        """The requests of a pod, in nano-units."""
        found = self._requests.get(id(pod))
        if found is None:
            found = self._requests[id(pod)] = pod_requests(view(pod["spec"], core.PodSpec))
        return found

    def aliases(self) -> dict[str, str]:
        """NAMESPACE/NAME of each gang's pods and object → the name of the gang."""
        found: dict[str, str] = {}
        for key, members in self.members.items():
            spec = self.registry.spec(key)
            if spec is not None:
                found.update((f"{namespace_of(pod)}/{name_of(pod)}", spec.title) for _, pod in members)
        for key in self.keys:
            obj, spec = self.registry.object(key), self.registry.spec(key)
            if obj is not None and spec is not None:
                found[f"{namespace_of(obj)}/{name_of(obj)}"] = spec.title
        return found

    def queue_of_pods(self) -> dict[tuple[str, str], str]:
        """By a pod's namespace and name."""
        found = {}
        for key, members in self.members.items():
            spec = self.registry.spec(key)
            for _, pod in members:
                queue = spec.queue if spec is not None else queue_hint(pod)
                found[namespace_of(pod), name_of(pod)] = queue
        return found

    def _row(self, key: GangKey, members: list[tuple[str, Obj]]) -> Gang | None:
        registry = self.registry
        spec = registry.spec(key)
        if spec is None:
            if not members:
                return None
            created = min(_instant(pod) for _, pod in members)
            spec = registry.undeclared(key, created, queue_hint(members[0][1]))
        roles: dict[str, dict[str, int]] = {}
        pods: dict[str, int] = {}
        nodes: dict[str, int] = {}
        for role, pod in members:
            pod_is = pod_state(pod)
            counts = roles.setdefault(role, {})
            counts[pod_is] = counts.get(pod_is, 0) + 1
            pods[pod_is] = pods.get(pod_is, 0) + 1
            if pod_is in _ON_A_NODE and (node := (pod.get("spec") or {}).get("nodeName")):
                nodes[node] = nodes.get(node, 0) + 1
        state = _state(spec, pods)
        found = _waiting_condition(registry.object(key), [pod for _, pod in members]) if state == WAITING else None
        condition = found or (_own_condition([pod for _, pod in members]) if state == WAITING else {})
        priorities = [(pod.get("spec") or {}).get("priority") or 0 for _, pod in members]
        needs, largest = self._needs(spec, members, pods) if state == WAITING else ({}, {})
        return Gang(
            gang=spec.title,
            dialect=spec.dialect or key.dialect,
            queue=spec.queue,
            state=state,
            priority=spec.priority if spec.priority is not None else max(priorities, default=0),
            minimum=spec.minimum,
            minima=dict(spec.minima),
            pods=pods,
            roles=dict(sorted(roles.items())),
            nodes=nodes,
            created=spec.created,
            message=spec.problem or str(condition.get("message") or ""),
            reason=str(condition.get("reason") or ""),
            since=str(condition.get("lastTransitionTime") or ""),
            expected_start=_expected(registry.home(key)) if state == WAITING else "",
            set_aside=_set_aside(spec.observed.claims.values()) if state == WAITING else {},
            needs=needs,
            largest=largest,
            labels=dict(labels_of(self._labelled(key, members))),
        )

    def _labelled(self, key: GangKey, members: list[tuple[str, Obj]]) -> Obj:
        found = self.registry.object(key)
        if found is None:
            found = min((pod for _, pod in members), key=name_of, default=None)
        return found if found is not None else {"metadata": {}}

    def _needs(
        self, spec: GangSpec, members: list[tuple[str, Obj]], pods: Mapping[str, int]
    ) -> tuple[dict[str, int], dict[str, int]]:
        """The requests of the waiting pods that its minimum lacks, the first by name; for pods that do not exist yet
        the `minResources` of its object."""
        lacks = spec.minimum - pods.get("running", 0) - pods.get("starting", 0) - pods.get("succeeded", 0)
        waiting = sorted((pod for _, pod in members if pod_state(pod) == "waiting"), key=name_of)
        if len(waiting) < lacks and not pods.get("running"):
            needs = dict(spec.min_resources or {})
            return needs, needs if lacks == 1 else {}
        total: Counter[str] = Counter()
        largest: dict[str, int] = {}
        for pod in waiting[: max(lacks, 0)]:
            requests = self.requests(pod)
            total.update(requests)
            for name, nanos in requests.items():
                largest[name] = max(nanos, largest.get(name, 0))
        return dict(total), largest


def order(gang: Gang) -> tuple[int, str, int, int, str]:
    return (STATES.index(gang.state), gang.queue, -gang.priority, gang.created, gang.gang)


def _expected(home: Obj | None) -> str:
    text = annotations_of(home).get(EXPECTED_START, "") if home is not None else ""
    try:
        parse_timestamp(text)
    except ValueError:
        return ""
    return text


def _set_aside(records: Iterable[Record]) -> dict[str, int]:
    """Node → number of pods for which room is set aside there."""
    found: Counter[str] = Counter()
    for record in records:
        for nodes in record.slots.values():
            found.update(nodes)
    return dict(sorted(found.items()))


def _state(spec: GangSpec, pods: Mapping[str, int]) -> str:
    alive = pods.get("running", 0) + pods.get("starting", 0)
    ended = pods.get("succeeded", 0) + pods.get("failed", 0)
    if spec.observed.finished or (ended and not alive and not pods.get("waiting")):
        return FAILED if pods.get("failed", 0) and pods.get("succeeded", 0) < max(spec.minimum, 1) else FINISHED
    if alive and alive + pods.get("succeeded", 0) >= spec.minimum:
        return RUNNING
    return WAITING


def pod_state(pod: Obj) -> str:
    """`waiting` for a node, `starting` on one, `running`, `succeeded`, `failed`, `leaving`."""
    phase = (pod.get("status") or {}).get("phase")
    if phase in ("Succeeded", "Failed"):
        return str(phase).lower()
    if is_terminating(pod):
        return "leaving"
    if not (pod.get("spec") or {}).get("nodeName"):
        return "waiting"
    return "running" if phase == "Running" else "starting"


def _waiting_condition(obj: Obj | None, pods: list[Obj]) -> dict[str, Any] | None:
    """The condition that says why: on the gang's object, else on its first pod that waits."""
    if obj is not None:
        condition = condition_of(obj, "Unschedulable")
        if condition is not None and condition.get("status") == "True":
            return condition
    for pod in sorted(pods, key=name_of):
        condition = condition_of(pod, "PodScheduled")
        if condition is not None and condition.get("status") == "False" and condition.get("message"):
            return condition
    return None


def _own_condition(pods: list[Obj]) -> dict[str, Any]:
    """What the pods themselves say where the scheduler says nothing: gates, and names of other schedulers (N4)."""
    waiting = [pod["spec"] for pod in pods if pod_state(pod) == "waiting"]
    gates = sorted({gate["name"] for spec in waiting for gate in spec.get("schedulingGates") or ()})
    if gates:
        return {"reason": PendingReason.SCHEDULING_GATED, "message": f"held by scheduling gate {', '.join(gates)}"}
    names = sorted({spec.get("schedulerName") or "default-scheduler" for spec in waiting} - set(SCHEDULER_NAMES))
    if names:
        text = f"not reported by enbloc: schedulerName is {', '.join(names)}"
        return {"reason": PendingReason.OTHER_SCHEDULER, "message": text}
    return {}


def _instant(obj: Obj) -> int:
    try:
        return parse_timestamp(obj["metadata"].get("creationTimestamp"))
    except ValueError:
        return 0
