"""One row for each gang: its state, its pods, and the condition that says why it waits.

What a gang is, and which pods it has, is the engine's state; what the scheduler decided is read from conditions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from enbloc.api import arbitrator, core, volcano
from enbloc.api.kinds import kind_id, view
from enbloc.api.meta import (
    Obj,
    annotations_of,
    condition_of,
    controller_of,
    holds,
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
from enbloc.config import Config, parse
from enbloc.config.vocabulary import SCHEDULER_NAMES
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.gangs.claim_records import by_role, with_nodes
from enbloc.gangs.dialect import Changed
from enbloc.gangs.hints import EXPECTED_START
from enbloc.gangs.model import GangKey
from enbloc.gangs.record_digests import TRUSTING
from enbloc.gangs.registry import GangRegistry
from enbloc.inspect.gang_states import (
    CRASH_LOOP,
    FAILED,
    RANK,
    RUNS,
    WAITS,
    exit_codes,
    state_of,
    what_happened,
)
from enbloc.runtime.event_reader import EventReader
from enbloc.runtime.held_gangs import log_fault
from enbloc.runtime.own_records import TrustedRecords
from enbloc.units import parse_timestamp

_Name = tuple[str, str]
"""Namespace and name."""
_JOBS: Final = (volcano.JOB, arbitrator.QUEUE_JOB)
Objects = Mapping[str, Sequence[Obj]]
"""By kind: what the API lists."""

KINDS: Final = tuple(sorted(GangRegistry.kinds)) + ("Pod",)


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


class _EveryName(frozenset[str]):
    """Of schedulers: pods of all of them are shown."""

    def __contains__(self, name: object) -> bool:
        return True


class Reading(EventReader):
    """Listed objects, as the engine of a scheduler has them that attempts nothing, and a row for each gang. A later
    list is read by what differs in it: objects never change in place, so one that is the same object is unchanged."""

    def __init__(self, objects: Objects, config: Config | None = None) -> None:
        """`config`: the scheduler's, where it is known."""
        super().__init__(config or parse(None), _EveryName(), TRUSTING, records=TrustedRecords(TRUSTING))
        self.state = self.engine.state
        self.rows: dict[GangKey, Gang] = {}
        self.known: dict[str, dict[_Name, Obj]] = {}
        """By kind: what was listed last."""
        self._pods: dict[str, Obj] = {}
        """By UID."""
        self._gang_of_job: dict[str, GangKey] = {}
        """By UID of a Job: the gang whose object it owns."""
        self._dirty: set[GangKey] = set()
        """Gangs whose rows are to be made anew."""
        self.update(objects)

    def update(self, objects: Objects) -> None:
        """Reads a newer list of everything."""
        self._try_again(time.time_ns())
        for kind in (*sorted(self.kinds - {"Pod"}), "Pod"):
            for event in self._changes(kind, objects.get(kind, ())):
                self._observe(event)
        self.read_changed()
        state = self.state
        self._dirty.update(state.dirty, self.rows.keys() - state.gangs.keys())
        for noted in (state.dirty, state.unmarked, state.events):
            noted.clear()
        state.settle()
        self.engine.compact()
        for key in self._dirty:
            self._refresh(key)
        self._dirty.clear()

    def _changes(self, kind: str, objects: Sequence[Obj]) -> Iterator[WatchEvent]:
        """What differs from the last list: deletions first."""
        before = self.known.get(kind, {})
        now = self.known[kind] = {(namespace_of(obj), name_of(obj)): obj for obj in objects}
        for name, obj in before.items():
            if name not in now or uid_of(now[name]) != uid_of(obj):
                yield WatchEvent("DELETED", kind, obj)
        for name, obj in now.items():
            known = before.get(name)
            if known is not obj:
                is_new = known is None or uid_of(known) != uid_of(obj)
                yield WatchEvent("ADDED" if is_new else "MODIFIED", kind, obj)

    def _observe(self, event: WatchEvent) -> None:
        """Also marks the gangs whose rows change, by what the engine does not read too."""
        if event.kind in _JOBS and (gang := self._gang_of_job.get(key_of(event.obj))):
            self._dirty.add(gang)
        elif event.kind == "Pod":
            uid = uid_of(event.obj)
            self._pods[uid] = event.obj
            if event.type == "DELETED":
                del self._pods[uid]
            elif task := self.state.tasks.get(uid):
                self._dirty.add(task.gang.key)
        self.observe(event)
        self.torn = False  # S8: one object that cannot be read hides no other

    def _apply(self, changed: Changed) -> None:
        self._dirty.update(changed.gangs)
        super()._apply(changed)

    def _read_complaints(self, obj: Obj, gone: bool) -> None:
        """The scheduler's to report."""

    def _pod_held_by(self, pod: Obj, key: GangKey) -> str:
        return ""  # so is this

    def _refresh(self, key: GangKey) -> None:
        """Makes the row of a gang that changed anew."""
        self.rows.pop(key, None)
        gang = self.state.gangs.get(key)
        try:
            if gang is not None:
                self.rows[key] = self._row(gang)
        except Exception as failure:  # S8: one gang that cannot be shown hides no other
            log_fault(key, failure)

    def gangs(self) -> list[Gang]:
        """Every gang: waiting ones first, each group in scheduling order (G8)."""
        return sorted(self.rows.values(), key=order)

    def members(self, key: GangKey) -> list[tuple[Task, Obj]]:
        """The pods of a gang, by name."""
        tasks = sorted(self.state.gangs[key].tasks.values(), key=attrgetter("name"))
        return [(task, self._pods[task.uid]) for task in tasks]

    def object(self, key: GangKey) -> Obj | None:
        """The object that carries a gang's conditions."""
        return self._object(key)

    def requests(self, task: Task) -> dict[str, int]:
        """In nano-units."""
        return self.state.resources.nanos(task.cls.request)

    def aliases(self) -> dict[str, str]:
        """NAMESPACE/NAME of each gang's pods and object → the name of the gang."""
        found: dict[str, str] = {}
        for key, row in self.rows.items():
            tasks = self.state.gangs[key].tasks.values()
            found.update({f"{task.namespace}/{task.name}": row.gang for task in tasks})
        for key, row in self.rows.items():
            if ref := self.state.gangs[key].spec.object:
                found[f"{ref.namespace}/{ref.name}"] = row.gang
        return found

    def _row(self, gang: GangState) -> Gang:
        spec, members, group = gang.spec, self.members(gang.key), self.object(gang.key)
        pods, job = [pod for _, pod in members], self._job_of(gang.key, group)
        counts = Counter(map(pod_state, pods))
        roles: dict[str, Counter[str]] = {}
        for task, pod in members:
            roles.setdefault(task.role, Counter())[pod_state(pod)] += 1
        state = state_of(gang, counts, pods, group, job)
        row = Gang(
            gang=spec.title,
            dialect=spec.dialect or gang.key.dialect,
            queue=spec.queue,
            state=state,
            priority=gang.priority,
            minimum=gang.minima.total,
            minima=dict(gang.minima.by_role),
            pods=counts,
            roles=dict(sorted(roles.items())),
            nodes=Counter(task.node for task, _ in members if task.node),
            created=spec.created_ns,
            message=what_happened(state, gang, counts, pods, job),
            labels=dict(labels_of(group or next(iter(pods), {"metadata": {}}))),
            exit_codes=exit_codes(pods) if state in (CRASH_LOOP, FAILED) else {},
        )
        return self._with_reason(row, gang, group, members) if row.waits else row

    def _with_reason(self, row: Gang, gang: GangState, group: Obj | None, members: list[tuple[Task, Obj]]) -> Gang:
        """Why it waits, and what room is set aside for it."""
        pods = [pod for _, pod in members]
        condition = _waiting_condition(group, pods) or _own_condition(pods)
        is_others = condition.get("reason") == PendingReason.OTHER_SCHEDULER and self._registry.spec(gang.key) is None
        # Whose PodGroup may be one of the other scheduler's API (N4).
        problem = "" if is_others else gang.spec.problem or gang.spec.fault
        largest: Counter[str] = Counter()
        for request in {task.cls.request for task, pod in members if pod_state(pod) == "waiting"}:
            largest |= Counter(self.state.resources.nanos(request))
        aside, room = self._aside(gang)
        return replace(
            row,
            message=problem or str(condition.get("message") or "") or row.message,
            reason=str(condition.get("reason") or ""),
            since=str(condition.get("lastTransitionTime") or ""),
            expected_start=_expected(self._registry.home(gang.key)),
            set_aside=dict(sorted(aside.items())),
            room_aside=dict(sorted(room.items())),
            largest=dict(largest),
        )

    def _aside(self, gang: GangState) -> tuple[Counter[str], dict[str, Counter[str]]]:
        """What claims set aside by node, in pods and in nano-units: of pods by their names, of pods to come by their
        role's template."""
        counts: Counter[str] = Counter()
        room: dict[str, Counter[str]] = {}
        for kind, record in gang.spec.observed.claims.items():
            if kind.names_pods:
                requests = {task.name: self.requests(task) for task in gang.tasks.values()}
            else:
                specs = {role: view(dict(one.pod_spec), core.PodSpec) for role, one in gang.spec.templates.items()}
                requests = {role: pod_requests(spec) for role, spec in specs.items()}
            named = with_nodes(record, [node for _, node in self.known["Node"]])
            for name, nodes in by_role(named, requests).items():
                for node, count in nodes.items():
                    counts[node] += count
                    amounts = room.setdefault(node, Counter())
                    for resource, nanos in requests.get(name, {}).items():
                        amounts[resource] += count * nanos
        return counts, room

    def _job_of(self, key: GangKey, group: Obj | None) -> Obj | None:
        """The Job that owns the gang's object."""
        owner = controller_of(group) if group is not None else None
        if group is None or owner is None:
            return None
        own = owner_key(group, owner)
        self._gang_of_job[own] = key
        job = self.known.get(kind_id(owner), {}).get((key.namespace, owner.get("name", "")))
        return job if job is not None and key_of(job) == own else None


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
        condition = holds(obj, "Unschedulable")
        if condition is not None:
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
