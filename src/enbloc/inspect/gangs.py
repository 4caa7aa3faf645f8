"""One row for each gang: its state, its pods, and the condition that says why it waits.

Which gang a pod belongs to is read by `GangRegistry`; what the scheduler decided is read from conditions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.api import arbitrator, core, volcano
from enbloc.api.kinds import view
from enbloc.api.meta import (
    Obj,
    annotations_of,
    condition_of,
    controller_of,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owner_key,
    uid_of,
)
from enbloc.api.reasons import PendingReason
from enbloc.api.requests import pod_requests
from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.gangs.claim_records import Record, by_role, with_nodes
from enbloc.gangs.hints import EXPECTED_START
from enbloc.gangs.lenient import LenientRegistry
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.priority_classes import PRIORITY_CLASS
from enbloc.gangs.registry import GangRegistry, queue_hint
from enbloc.inspect.gang_states import (
    CRASH_LOOP,
    FAILED,
    PREEMPTED,
    RANK,
    RUNNING,
    RUNS,
    WAITS,
    evicted_for,
    exit_codes,
    later_roles,
    losses,
    no_replicas,
    state_of,
    what_ended,
)
from enbloc.runtime.held_gangs import log_fault
from enbloc.units import NANO, instant_of, parse_timestamp

_Name = tuple[str, str]
"""Namespace and name."""
_SPARE: Final = 1_000
_FOR_ALL: Final = (PRIORITY_CLASS, "ResourceQuota")
"""Kinds that say something about gangs that do not name them."""
_JOBS: Final = (volcano.JOB, arbitrator.QUEUE_JOB)
Objects = Mapping[str, Sequence[Obj]]
"""By kind: what the API lists."""

KINDS: Final = tuple(sorted(GangRegistry.kinds)) + ("Pod",)
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
    """Why it waits: the message of the scheduler's condition. Of one that runs: why it crashes, or which roles come
    later."""
    reason: str = ""
    since: str = ""
    """The last transition of that condition."""
    expected_start: str = ""
    """When the scheduler expects it to start, if it has a forecast (R8)."""
    set_aside: Mapping[str, int] = {}
    """By node: how many of its pods have a claim there (a reservation or a nomination)."""
    room_aside: Mapping[str, Mapping[str, int]] = {}
    """By node: what these pods request, in nano-units by resource."""
    largest: Mapping[str, int] = {}
    """Nano-units by resource: the most that one of its waiting pods requests."""
    labels: Mapping[str, str] = {}
    """Of its object, else of its first pod by name."""
    exit_codes: Mapping[str, int] = {}
    """Of a gang that failed or crashes: exit codes other than 0, each with how many pods had it last."""

    @property
    def waits(self) -> bool:
        return self.state in WAITS

    @property
    def runs(self) -> bool:
        return self.state in RUNS


class Room(NamedTuple):
    """What the pods of one gang use, in nano-units by resource, and the names by which it is found."""

    of_queues: Mapping[str, Mapping[str, int]]
    on_nodes: Mapping[str, Mapping[str, int]]
    pod_aliases: Mapping[str, str]
    object_aliases: Mapping[str, str]


class Reading:
    """Listed objects, read: the gangs, and the pods of each. A later list is read by what differs in it: objects never
    change in place, so one that is the same object is unchanged."""

    def __init__(self, objects: Objects, config: Config | None = None) -> None:
        """`config`: the scheduler's, where it is known."""
        self.registry = LenientRegistry.of(config) if config is not None else LenientRegistry()
        self.members: dict[GangKey, list[tuple[str, Obj]]] = {}
        self.keys: list[GangKey] = []
        self._known: dict[str, dict[_Name, Obj]] = {}
        """By kind: what was listed last."""
        self._requests: dict[int, tuple[Obj, dict[str, int]]] = {}  # by id(), which the object here keeps unique
        self._pods_of: dict[GangKey, dict[_Name, tuple[str, Obj]]] = {}
        self._gang_of: dict[_Name, GangKey] = {}
        self._jobs: dict[str, Obj] = {}
        self._gang_of_job: dict[str, GangKey] = {}
        """By UID of a Job: the gang whose object it owns."""
        self._node_names: list[str] = []
        """Long records of claims have digests in place of these names."""
        self._rows: dict[GangKey, Gang | None] = {}
        self.rooms: dict[GangKey, Room] = {}
        self.update(objects)

    def update(self, objects: Objects) -> None:
        """Reads a newer list of everything."""
        self._node_names = [name_of(node) for node in objects.get("Node", ())]
        dirty: set[GangKey] = set()
        pods: dict[_Name, Obj] = {}
        for kind in (*sorted(self.registry.kinds), "Pod"):
            for event in self._changes(kind, objects.get(kind, ())):
                if kind == "Pod":
                    changed = self.registry.observe_pod(event.obj, event.type == "DELETED")
                    self._forget(_name(event.obj), dirty)
                    if event.type != "DELETED":
                        pods[_name(event.obj)] = event.obj
                else:
                    changed = self.registry.observe(event)
                    self._observe_job(event, dirty)
                    if kind in _FOR_ALL:
                        dirty.update(self._rows)
                dirty.update(changed.gangs)
                pods.update((_name(pod), pod) for pod in changed.pods if _name(pod) in self._known.get("Pod", {}))
        for name, pod in pods.items():
            self._forget(name, dirty)
            membership = self.registry.member(pod)
            self._pods_of.setdefault(membership.gang, {})[name] = (membership.role, pod)
            self._gang_of[name] = membership.gang
            dirty.add(membership.gang)
        self._refresh(dirty)

    def _changes(self, kind: str, objects: Sequence[Obj]) -> Iterator[WatchEvent]:
        """What differs from the last list: deletions first."""
        before = self._known.get(kind, {})
        now = self._known[kind] = {_name(obj): obj for obj in objects}
        for name, obj in before.items():
            if name not in now or uid_of(now[name]) != uid_of(obj):
                yield WatchEvent("DELETED", kind, obj)
        for name, obj in now.items():
            known = before.get(name)
            if known is not obj:
                is_new = known is None or uid_of(known) != uid_of(obj)
                yield WatchEvent("ADDED" if is_new else "MODIFIED", kind, obj)

    def _forget(self, pod: _Name, dirty: set[GangKey]) -> None:
        key = self._gang_of.pop(pod, None)
        if key is not None:
            self._pods_of[key].pop(pod, None)
            dirty.add(key)

    def _observe_job(self, event: WatchEvent, dirty: set[GangKey]) -> None:
        if event.kind in _JOBS:
            own = key_of(event.obj)
            self._jobs[own] = event.obj
            if event.type == "DELETED":
                del self._jobs[own]
            if own in self._gang_of_job:
                dirty.add(self._gang_of_job[own])

    def _refresh(self, dirty: set[GangKey]) -> None:
        """Makes the rows of gangs that changed anew."""
        for key in dirty:
            pods = self._pods_of.get(key)
            if pods:
                self.members[key] = [pods[name] for name in sorted(pods)]
            else:
                self.members.pop(key, None)
                self._pods_of.pop(key, None)
            self._rows.pop(key, None)
            self.rooms.pop(key, None)
            try:
                row = self._row(key, self.members.get(key, []))
                if row is not None or pods:
                    room = self._room(key, self.members.get(key, []), row.gang if row is not None else "")
                    self._rows[key], self.rooms[key] = row, room
            except Exception as failure:  # S8: one gang that cannot be shown hides no other
                log_fault(key, failure)
        self.keys = list(self._rows)
        if len(self._requests) > 2 * len(self._gang_of) + _SPARE:
            self._requests.clear()

    def gangs(self) -> list[Gang]:
        """Every gang: waiting ones first, each group in scheduling order (G8)."""
        return sorted((row for row in self._rows.values() if row is not None), key=order)

    def row(self, key: GangKey) -> Gang | None:
        return self._rows.get(key)

    def requests(self, pod: Obj) -> dict[str, int]:
        """The requests of a pod, in nano-units."""
        found = self._requests.get(id(pod))
        if found is None:
            found = self._requests[id(pod)] = (pod, pod_requests(view(pod["spec"], core.PodSpec)))
        return found[1]

    def aliases(self) -> dict[str, str]:
        """NAMESPACE/NAME of each gang's pods and object → the name of the gang."""
        found: dict[str, str] = {}
        for room in self.rooms.values():
            found.update(room.pod_aliases)
        for room in self.rooms.values():
            found.update(room.object_aliases)
        return found

    def _room(self, key: GangKey, members: list[tuple[str, Obj]], title: str) -> Room:
        spec, obj = self.registry.spec(key), self.registry.object(key)
        of_queues: dict[str, Counter[str]] = {}
        on_nodes: dict[str, Counter[str]] = {}
        for _, pod in members:
            node, pod_is = (pod.get("spec") or {}).get("nodeName"), pod_state(pod)
            if not node or pod_is not in _ON_A_NODE:
                continue
            requests = self.requests(pod)
            _add(on_nodes.setdefault(node, Counter()), {"pods": NANO, **requests})
            if pod_is != "leaving":
                _add(of_queues.setdefault(spec.queue if spec is not None else queue_hint(pod), Counter()), requests)
        pods = {f"{namespace_of(pod)}/{name_of(pod)}": title for _, pod in members}
        objects = {f"{namespace_of(obj)}/{name_of(obj)}": title} if obj is not None else {}
        return Room(of_queues, on_nodes, pods, objects)

    def _row(self, key: GangKey, members: list[tuple[str, Obj]]) -> Gang | None:
        registry = self.registry
        spec = registry.spec(key)
        if spec is None:
            if not members:
                return None
            created = min(instant_of(pod["metadata"].get("creationTimestamp")) for _, pod in members)
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
        own, group = [pod for _, pod in members], registry.object(key)
        owner = owner_key(group, controller_of(group)) if group is not None else ""
        if owner:
            self._gang_of_job[owner] = key
        job = self._jobs.get(owner)
        state = state_of(spec, pods, own, group, job)
        waits = state in WAITS
        condition = (_waiting_condition(group, own) or _own_condition(own)) if waits else {}
        is_others = condition.get("reason") == PendingReason.OTHER_SCHEDULER and registry.spec(key) is None
        # Whose PodGroup may be one of the other scheduler's API (N4).
        problem = "" if is_others else spec.problem or spec.fault
        message = problem or str(condition.get("message") or "") if waits else what_ended(state, own, job)
        if state == RUNNING:
            message = "; ".join(filter(None, (losses(spec, pods, own), later_roles(job, roles))))
        elif waits and not members and not message:
            message = no_replicas(job)
        if state == PREEMPTED:
            message = message or evicted_for(group)
        priorities = [(pod.get("spec") or {}).get("priority") or 0 for _, pod in members]
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
            created=spec.created_ns,
            message=message,
            reason=str(condition.get("reason") or ""),
            since=str(condition.get("lastTransitionTime") or ""),
            expected_start=_expected(registry.home(key)) if waits else "",
            set_aside=_set_aside(spec.observed.claims.values(), self._node_names) if waits else {},
            room_aside=self._room_aside(spec, members) if waits else {},
            largest=self._largest(own) if waits else {},
            labels=dict(labels_of(self._labelled(key, members))),
            exit_codes=exit_codes(own) if state in (CRASH_LOOP, FAILED) else {},
        )

    def _room_aside(self, spec: GangSpec, members: list[tuple[str, Obj]]) -> dict[str, dict[str, int]]:
        """What claims set aside by node: of pods by their names, of pods to come by their role's template."""
        found: dict[str, Counter[str]] = {}

        def add(nodes: Mapping[str, int], requests: Mapping[str, int]) -> None:
            for node, count in nodes.items():
                amounts = found.setdefault(node, Counter())
                for name, nanos in requests.items():
                    amounts[name] += count * nanos

        for kind, record in spec.observed.claims.items():
            named = with_nodes(record, self._node_names)
            if kind.names_pods:
                for _, pod in members:
                    add(named.places(name_of(pod)), self.requests(pod))
            for role, nodes in {} if kind.names_pods else by_role(named, spec.templates).items():
                if role in spec.templates:
                    add(nodes, pod_requests(view(dict(spec.templates[role].pod_spec), core.PodSpec)))
        return {node: dict(amounts) for node, amounts in sorted(found.items())}

    def _labelled(self, key: GangKey, members: list[tuple[str, Obj]]) -> Obj:
        found = self.registry.object(key)
        if found is None:
            found = min((pod for _, pod in members), key=name_of, default=None)
        return found if found is not None else {"metadata": {}}

    def _largest(self, pods: Sequence[Obj]) -> dict[str, int]:
        found: dict[str, int] = {}
        for pod in pods:
            if pod_state(pod) == "waiting":
                for name, nanos in self.requests(pod).items():
                    found[name] = max(nanos, found.get(name, 0))
        return found


def _add(counts: Counter[str], more: Mapping[str, int]) -> None:
    for name, nanos in more.items():
        counts[name] += nanos


def _name(obj: Obj) -> _Name:
    return namespace_of(obj), name_of(obj)


def order(gang: Gang) -> tuple[int, str, int, int, str]:
    """Of rows: by state, queue, priority, age, name. Plugins that order gangs (G8) are not known here."""
    return (RANK[gang.state], gang.queue, -gang.priority, gang.created, gang.gang)


def _expected(home: Obj | None) -> str:
    text = annotations_of(home).get(EXPECTED_START, "") if home is not None else ""
    try:
        parse_timestamp(text)
    except ValueError:
        return ""
    return text


def _set_aside(records: Iterable[Record], node_names: Sequence[str]) -> dict[str, int]:
    """Node → number of pods for which room is set aside there."""
    found: Counter[str] = Counter()
    for record in records:
        for nodes in with_nodes(record, node_names).slots.values():
            found.update(nodes)
    return dict(sorted(found.items()))


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


_OF_API_SERVER: Final = "Scheduling is blocked due to non-empty scheduling gates"
"""What an API server writes on a pod with gates: it names none of them (N4)."""


def _waiting_condition(obj: Obj | None, pods: list[Obj]) -> dict[str, Any] | None:
    """The condition that says why: on the gang's object, else on its first pod that waits, of its minimum if it may."""
    if obj is not None:
        condition = condition_of(obj, "Unschedulable")
        if condition is not None and condition.get("status") == "True":
            return condition
    of_surplus = None
    for pod in sorted(pods, key=name_of):
        condition = condition_of(pod, "PodScheduled")
        if condition is None or condition.get("status") != "False":
            continue
        message = str(condition.get("message") or "")
        if message and condition.get("reason") == PendingReason.SURPLUS:
            of_surplus = of_surplus or condition
        elif message and not message.startswith(_OF_API_SERVER):
            return condition
    return of_surplus


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
