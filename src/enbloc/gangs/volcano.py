"""Volcano's dialect: a PodGroup, and pods that name it by annotation (V1, M3). Queues are read by the engine.

Reads `scheduling.volcano.sh/v1beta1` PodGroup (`minMember`, `minTaskMember`, `minResources`, `queue`,
`priorityClassName`, and Koordinator's annotations on how it starts: K1) and of a Job only what its PodGroup does not
say: its name, and its templates' priority.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.api import volcano
from enbloc.api.kinds import view
from enbloc.api.meta import (
    Obj,
    Ref,
    annotations_of,
    condition_of,
    controller_key,
    controller_of,
    created_ns_of,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    number_in,
    uid_of,
)
from enbloc.api.workloads import MOST_PODS
from enbloc.api.writes import WatchEvent
from enbloc.config import Koordinator
from enbloc.gangs import topology
from enbloc.gangs.declared_groups import DeclaredGroups
from enbloc.gangs.dialect import NOTHING, Changed, refusal_of, without_object
from enbloc.gangs.gang_priority import GangPriorities, OwnPriority
from enbloc.gangs.gang_tree import fields_of
from enbloc.gangs.hints import hints_of, pod_hints
from enbloc.gangs.koordinator_values import start_complaints, start_fields
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, GangStatus, Membership, Template, with_records_of
from enbloc.gangs.volcano_sub_groups import (
    Partitions,
    Policies,
    partition_tree,
    partitions_fault,
    partitions_lack,
    partitions_of,
    read,
)
from enbloc.units import parse_timestamp

ENQUEUED = "Enqueued"
"""The condition that records when and how a group was enqueued (M6)."""

ATTEMPTED = "Attempted"
"""The condition of a group that was attempted since it was enqueued: it does not count against other gangs at enqueue
any more, whatever becomes of its pods (M6)."""

TRIED = frozenset({"Unschedulable", "QueueFull"})
"""Reasons of a group that was attempted."""

STARTED = frozenset({"Running", "Unknown", "Completed"})
"""Phases of a PodGroup of which members have run; they end when none of its pods is left."""


class Volcano(DeclaredGroups):
    """Gangs declared by Volcano's PodGroups."""

    name = "volcano"
    kinds = frozenset({volcano.POD_GROUP, volcano.JOB}) | GangPriorities.kinds

    def __init__(self, priorities: GangPriorities, koordinator: Koordinator = Koordinator()) -> None:  # noqa: B008
        super().__init__(priorities, koordinator)
        self._jobs: dict[str, Obj] = {}
        self._tasks_of_job: dict[str, _TaskFacts] = {}
        self._groups_of_job: dict[str, GangKey] = {}
        self._refused: dict[GangKey, Obj] = {}
        """Jobs whose PodGroup could not be created, under the key that it would have."""
        self._pods: dict[GangKey, dict[str, Obj]] = {}
        """The pods of each PodGroup, by UID: sub-groups are formed from their labels."""
        self._group_of_pod: dict[str, GangKey] = {}
        self._policies: dict[GangKey, Policies] = {}

    def observe(self, event: WatchEvent) -> Changed:
        if event.kind == volcano.JOB:
            return self._observe_job(event.obj, event.type == "DELETED")
        return super().observe(event)

    def observe_pod(self, pod: Obj, gone: bool) -> Changed:
        uid, key = uid_of(pod), None if gone else _group_of(pod)
        before = self._group_of_pod.pop(uid, None)
        if key is None and before is None:
            return NOTHING
        known = self._pods[before].pop(uid) if before is not None else None
        if before is not None and not self._pods[before]:
            del self._pods[before]
        if key is not None:
            self._pods.setdefault(key, {})[uid] = pod
            self._group_of_pod[uid] = key
        if before == key and known is not None and labels_of(known) == labels_of(pod):
            return NOTHING
        return Changed(tuple(one for one in dict.fromkeys((before, key)) if one is not None and one in self._policies))

    def member(self, pod: Obj) -> Membership | None:
        gang = _group_of(pod)
        if gang is None:
            return None
        annotations, labels, role = annotations_of(pod), labels_of(pod), volcano.role_of(pod)
        index = labels.get(volcano.TASK_INDEX) or annotations.get(volcano.TASK_INDEX)
        number, policies = number_in(index), self._policies.get(gang)
        of_role = self._partitions(gang).get(role) if policies is None else None
        if of_role is not None:
            return Membership(gang, of_role.role_of(role, number), number)
        return Membership(gang, (policies.role_of(labels) if policies else "") or role, number)

    def _partitions(self, key: GangKey) -> Mapping[str, Partitions]:
        """By role of its Job: the partitions of which not all are needed."""
        group = self._groups.get(key)
        facts = self._tasks_of_job.get(controller_key(group, volcano.JOB)) if group is not None else None
        return facts.partitions if facts is not None else {}

    def spec(self, key: GangKey) -> GangSpec | None:
        group = self._groups.get(key)
        if group is None:
            made = (self._refused.get(key) or {"spec": {}})["spec"]
            return without_object(key, self._refused.get(key), made.get("minAvailable"), made.get("queue") or "")
        job = self.job(group)
        facts = self._tasks_of_job.get(key_of(job)) if job is not None else None
        spec = _gang(key, group, job, facts or _NO_TASKS, self._priorities)
        start = start_fields(group, self._default_waiting_ns)
        spec = msgspec.structs.replace(spec, **start) if start else spec
        policies = self._policies.get(key)
        if policies is None:
            return _with_partitions(spec, facts.partitions) if facts is not None and facts.partitions else spec
        found = read(view(group, volcano.PodGroup).spec, policies, map(labels_of, self._pods.get(key, {}).values()))
        if found.tree is not None:
            fields = fields_of(found.tree, spec.minimum)
            return msgspec.structs.replace(spec, **{**fields, "topology": spec.topology})
        return msgspec.structs.replace(
            spec,
            minimum=max(spec.minimum, sum(found.minima.values())),
            minima=found.minima,
            topology_of_role=found.topology,
            unsupported=found.unsupported,
        )

    def job(self, group: Obj) -> Obj | None:
        """The Job that owns a PodGroup."""
        return self._jobs.get(controller_key(group, volcano.JOB))

    def complaints(self, obj: Obj) -> Iterator[str]:
        if obj["kind"] != "Pod":
            name = (obj.get("spec") or {}).get("priorityClassName") or ""
            yield from self._priorities.complaints(namespace_of(obj), name)
            if self.job(obj) is None:  # its PodGroup has copies of what the Job says
                yield from start_complaints(obj)

    def _observe_group(self, group: Obj, gone: bool) -> Changed:
        key, job = GangKey(self.name, namespace_of(group), name_of(group)), controller_key(group, volcano.JOB)
        before, partitions = self._policies.pop(key, None), self._partitions(key)
        changed = super()._observe_group(group, gone)
        written = (group.get("spec") or {}).get("subGroupPolicy")
        if written and not gone:
            self._policies[key] = before if before is not None and before.written == written else _policies(group)
        if job and gone:
            self._groups_of_job.pop(job, None)
        elif job:
            self._groups_of_job[job] = key
        # Its pods may have other roles now.
        regrouped = before is not self._policies.get(key) or partitions != self._partitions(key)
        return changed._replace(pods=(*changed.pods, *self._pods.get(key, {}).values())) if regrouped else changed

    def _observe_job(self, job: Obj, gone: bool) -> Changed:
        own = key_of(job)
        known, facts = self._jobs.get(own), self._tasks_of_job.get(own, _NO_TASKS)
        if gone:
            self._jobs.pop(own, None)
            self._tasks_of_job.pop(own, None)
        else:
            self._jobs[own] = job
        group = GangKey(self.name, namespace_of(job), f"{name_of(job)}-{uid_of(job)}")
        refused = refusal_of(self._refused.pop(group, None))
        if not gone and refusal_of(job):
            self._refused[group] = job
        gangs = [group] if refused != refusal_of(self._refused.get(group)) else []
        # From a real API server equal specs come as different objects.
        if not gone and known is not None and (known["spec"] is job["spec"] or known["spec"] == job["spec"]):
            return Changed(tuple(gangs))  # only its status changed
        if not gone:
            self._tasks_of_job[own] = _TaskFacts(
                _wave_numbers(job), _slices(job), _longest_run_ns(job), _partitions(job)
            )
        key = self._groups_of_job.get(own)
        if key is None:
            return Changed(tuple(gangs))
        regrouped = facts.partitions != self._partitions(key)
        pods = tuple(self._pods.get(key, {}).values()) if regrouped else ()
        return Changed(tuple(dict.fromkeys([*gangs, key])), pods)


def lacks_sub_groups(group: Obj, job: Obj | None, bound: Iterable[tuple[str, Mapping[str, str]]]) -> bool:
    """Whether fewer sub-groups or partitions are bound as a whole than a PodGroup needs (T0). `job`: the Job that owns
    it, if one does. `bound`: role and labels of each member that is bound."""
    if (group.get("spec") or {}).get("subGroupPolicy"):
        return _policies(group).lack(labels for _, labels in bound)
    partitions = _partitions(job) if job is not None else {}
    return partitions_lack(partitions, ((role, number_in(labels.get(volcano.TASK_INDEX))) for role, labels in bound))


def _policies(group: Obj) -> Policies:
    return Policies(group["spec"]["subGroupPolicy"], view(group, volcano.PodGroup).spec.sub_group_policy or [])


def _group_of(pod: Obj) -> GangKey | None:
    name = volcano.group_name_of(pod)
    return GangKey(Volcano.name, namespace_of(pod), name) if name else None


class _TaskFacts(NamedTuple):
    """What the tasks of a Job say, read once: its gang is read in every wave."""

    wave_of: dict[str, int]
    slices_of_role: dict[str, tuple[topology.PodTopology, ...]]
    longest_run_ns: int | None
    partitions: Mapping[str, Partitions] = {}
    """Of roles that do not need all of them."""


_NO_TASKS: Final = _TaskFacts({}, {}, None)


def _with_partitions(spec: GangSpec, partitions: Mapping[str, Partitions]) -> GangSpec:
    """T0: a gang of which some partitions are needed."""
    fault = partitions_fault(partitions.values())
    if spec.waves and not fault:
        fault = "minPartitions below totalPartitions beside dependsOn is not honoured in this version"
    if fault:
        return msgspec.structs.replace(spec, unsupported=fault)
    fields = fields_of(partition_tree(spec.minima, partitions), spec.minimum)
    return msgspec.structs.replace(spec, **{**fields, "topology": spec.topology, "first_wave": {}})


def _gang(key: GangKey, group: Obj, job: Obj | None, tasks: _TaskFacts, priorities: GangPriorities) -> GangSpec:
    """A PodGroup as a gang; `job` is the Job that owns it, if one does."""
    typed = view(group, volcano.PodGroup)
    spec = typed.spec
    owner = controller_of(group)
    job_name = owner.get("name") if owner is not None and owner.get("kind") == "Job" else None
    status = typed.status or volcano.PodGroupStatus()
    own = priorities.own(key.namespace, spec.priority_class_name)
    pods_priority = _templates_priority(job, key.namespace, priorities) if job is not None else None
    if own.value is None:
        own = OwnPriority(pods_priority)
    waves = _waves(group, spec, job)
    is_whole_job = annotations_of(group).get(volcano.WHOLE_JOB) == "true"
    before_start = status.phase in ("", "Pending", "Inqueue")
    templates = _templates(spec.min_task_member or {}, job, priorities) if is_whole_job else {}
    return GangSpec(
        key=key,
        title=f"{key.namespace}/{job_name or key.name}",
        created_ns=created_ns_of(group),
        minimum=max(spec.min_member - sum(waves.later.values()), sum(waves.begun.values())),
        minima=waves.begun,
        waves=annotations_of(group).get(volcano.DEPENDENT_JOB) == "true",
        wave_of=tasks.wave_of,
        more_waves=waves.more,
        later={role: template for role, template in templates.items() if role in waves.later},
        templates=templates,
        first_wave=_templates(waves.begun, job, priorities) if before_start else {},
        queue=spec.queue or DEFAULT_QUEUE,
        **own.fields(priorities.classes.default if pods_priority is None else pods_priority),
        min_resources=_nanos(spec),
        object=Ref(volcano.POD_GROUP, key.namespace, key.name),
        object_uid=uid_of(group),
        observed=_status(group, status.phase),
        topology=topology.of_network_topology(spec.network_topology or _job_topology(job)),
        slices_of_role=tasks.slices_of_role,
        failed_create=annotations_of(group).get(volcano.FAILED_CREATE, ""),
        recreated_by_us=job is not None and "deletionTimestamp" not in job["metadata"],
        hints=hints_of(group),
        longest_run_ns=tasks.longest_run_ns,
        never_preempts=priorities.classes.never_preempts(spec.priority_class_name),
    )


def _partitions(job: Obj) -> dict[str, Partitions]:
    found = {task.get("name") or "": partitions_of(task.get("partitionPolicy")) for task in _tasks(job)}
    return {role: partitions for role, partitions in found.items() if partitions is not None}


def _slices(job: Obj | None) -> dict[str, tuple[topology.PodTopology, ...]]:
    """T3: the partitions of a task are slices of its pods by index."""
    found: dict[str, tuple[topology.PodTopology, ...]] = {}
    for task in _tasks(job):
        policy = task.get("partitionPolicy")
        place = topology.of_network_topology(policy.get("networkTopology")) if isinstance(policy, dict) else None
        size = policy.get("partitionSize") if isinstance(policy, dict) else None
        if place is not None and isinstance(size, int) and size > 0 and partitions_of(policy) is None:
            found[task.get("name") or ""] = (topology.PodTopology(place, slices=(size,)),)
    return found


def _job_topology(job: Obj | None) -> Any:
    return job["spec"].get("networkTopology") if job is not None else None


def _status(group: Obj, phase: str) -> GangStatus:
    status = GangStatus(
        enqueued=phase not in ("", "Pending"),
        enqueued_at_ns=_enqueued_at_ns(group),
        enqueued_by=(condition_of(group, ENQUEUED) or {}).get("reason") or "",
        tried=(condition_of(group, ATTEMPTED) or {}).get("status") == "True",
        started=phase in ("Running", "Completed"),  # one whose decision was cut off may be Unknown (G11)
        finished=phase == "Completed",
    )
    return with_records_of(group, status)


def _enqueued_at_ns(group: Obj) -> int | None:
    condition = condition_of(group, ENQUEUED) or {}
    try:
        return parse_timestamp(condition.get("lastTransitionTime"))
    except ValueError:
        return None


class _Waves(NamedTuple):
    """The minima of the roles that have begun, what the others will add to the total, and whether there are others."""

    begun: dict[str, int]
    later: dict[str, int]
    more: bool


def _waves(group: Obj, spec: volcano.PodGroupSpec, job: Obj | None) -> _Waves:
    """D3: roles whose wave has not begun do not count yet; one without a minimum would have counted with its replicas
    towards the total. The controller records which have begun."""
    minima = spec.min_task_member or {}
    annotations = annotations_of(group)
    if annotations.get(volcano.DEPENDENT_JOB) != "true" or volcano.BEGUN_ROLES not in annotations:
        return _Waves({role: count for role, count in minima.items() if count > 0}, {}, False)
    begun = annotations[volcano.BEGUN_ROLES].split(",")
    replicas = {task.get("name", ""): task.get("replicas") or 0 for task in _tasks(job)}
    minima = minima | {role: replicas[role] for role in _awaited(job, begun) if not minima.get(role)}
    return _Waves(
        {role: count for role, count in minima.items() if count > 0 and role in begun},
        {role: count or replicas.get(role, 0) for role, count in minima.items() if role not in begun},
        any(role not in begun for role in minima),
    )


def _awaited(job: Obj | None, begun: list[str]) -> set[str]:
    """Begun roles without a minimum on which a later role waits: all their replicas must run before it begins (D2)."""
    defaulted = annotations_of(job).get(volcano.DEFAULTED_MINIMA, "").split(",") if job else ()
    later = [task for task in _tasks(job) if task.get("name", "") not in begun]
    named = {name for task in later for name in (task.get("dependsOn") or {}).get("name") or ()}
    return named.intersection(begun, defaulted)


def _tasks(job: Obj | None) -> list[Obj]:
    return (job or {}).get("spec", {}).get("tasks") or []


def _wave_numbers(job: Obj | None) -> dict[str, int]:
    """How many waves come before each role's own. Admission refuses cycles; the loop ends for one, too."""
    needs = {task.get("name", ""): (task.get("dependsOn") or {}).get("name") or () for task in _tasks(job)}
    found = dict.fromkeys(needs, 0)
    dependent = [(role, names) for role, names in needs.items() if names]
    for _ in needs:
        changed = False
        for role, names in dependent:
            number = max((found[name] + 1 for name in names if name in found), default=0)
            changed = changed or number != found[role]
            found[role] = number
        if not changed:  # roles are mostly listed after those they depend on: twice is enough then
            break
    return found if any(found.values()) else {}


def _templates(minima: Mapping[str, int], job: Obj | None, priorities: GangPriorities) -> dict[str, Template]:
    found = {}
    inherited = job["spec"].get("priorityClassName") or "" if job is not None else ""
    if job is not None and not priorities.counts(namespace_of(job), inherited):
        inherited = ""
    for task in _tasks(job):
        name = task.get("name") or ""
        replicas = task.get("replicas")
        count = min(minima.get(name, 0), MOST_PODS if replicas is None else replicas, MOST_PODS)
        if count > 0:
            template = task["template"]
            labels = (template.get("metadata") or {}).get("labels") or {}
            asked = topology.of_pod({"metadata": template.get("metadata") or {}})
            spec = template["spec"]
            if inherited and not spec.get("priorityClassName"):  # as its pods will be
                spec = {**spec, "priorityClassName": inherited}
            found[name] = Template(count, spec, labels, asked)
    return found


def _nanos(spec: volcano.PodGroupSpec) -> dict[str, int] | None:
    if not spec.min_resources:
        return None
    return {name: quantity.nanos for name, quantity in spec.min_resources.items() if quantity.nanos > 0}


def _longest_run_ns(job: Obj | None) -> int | None:
    times = [pod_hints(task["template"]).run_time_ns for task in _tasks(job)]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _templates_priority(job: Obj, namespace: str, priorities: GangPriorities) -> int | None:
    """The highest of its templates'; `None` if a template's class does not count before its pods exist (S3)."""
    found, inherited = [], job["spec"].get("priorityClassName") or ""
    for name in {task["template"]["spec"].get("priorityClassName") or "" for task in _tasks(job)}:
        if not priorities.counts(namespace, name):
            return None
        value = priorities.of_template(namespace, name, inherited)
        if value is not None:
            found.append(value)
    return max(found, default=None)
