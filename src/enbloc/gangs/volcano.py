"""Volcano's dialect: a PodGroup, and pods that name it by annotation (V1, M3). Queues are the engine's own.

Reads `scheduling.volcano.sh/v1beta1` PodGroup (`minMember`, `minTaskMember`, `minResources`, `queue`,
`priorityClassName`) and of a Job only what its PodGroup does not say: its name, and its templates' priority.
"""

from __future__ import annotations

from collections.abc import Callable

from enbloc.api import volcano
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, Ref, annotations_of, controller_of, labels_of, name_of, namespace_of, uid_of
from enbloc.gangs.model import DEFAULT_QUEUE, GangKey, GangSpec, Membership
from enbloc.units import parse_timestamp

NAME = "volcano"

STARTED = frozenset({"Running", "Unknown", "Completed"})
"""Phases of a PodGroup whose minimum has run; it leaves them when none of its pods is left."""

PriorityOf = Callable[[str], int | None]
"""The value of a priority class by name, of no name what counts without one; `None` if there is no such class."""


def member(pod: Obj) -> Membership | None:
    """The gang a pod says it belongs to in this dialect, if it says so."""
    annotations = annotations_of(pod)
    for key in volcano.GROUP_NAME_KEYS:
        group = annotations.get(key)
        if group:
            labels = labels_of(pod)
            role = annotations.get(volcano.TASK_SPEC) or labels.get(volcano.TASK_SPEC) or ""
            index = labels.get(volcano.TASK_INDEX) or annotations.get(volcano.TASK_INDEX)
            return Membership(GangKey(NAME, namespace_of(pod), group), role, _number(index))
    return None


def gang(group: Obj, job: Obj | None, priority_of: PriorityOf) -> GangSpec:
    """A PodGroup as a gang; `job` is the Job that owns it, if one does."""
    typed = view(group, volcano.PodGroup)
    spec = typed.spec
    namespace, name = namespace_of(group), name_of(group)
    owner = controller_of(group)
    owned_by_job = owner is not None and owner.get("kind") == "Job"
    status = typed.status or volcano.PodGroupStatus()
    priority = priority_of(spec.priority_class_name) if spec.priority_class_name else None
    if priority is None and job is not None:
        priority = _templates_priority(job, priority_of)
    created = typed.metadata.creation_timestamp
    return GangSpec(
        key=GangKey(NAME, namespace, name),
        title=f"{namespace}/{owner['name'] if owner and owned_by_job else name}",
        created=parse_timestamp(created) if created else 0,
        minimum=max(spec.min_member, 0),
        minima={role: count for role, count in (spec.min_task_member or {}).items() if count > 0},
        queue=spec.queue or DEFAULT_QUEUE,
        priority=priority,
        min_resources=_nanos(spec),
        let_in=status.phase not in ("", "Pending"),
        started=status.phase in STARTED,
        finished=status.phase == "Completed",
        object=Ref(volcano.POD_GROUP, namespace, name),
        object_uid=uid_of(group),
    )


def early(key: GangKey, created: int) -> GangSpec:
    """Pods came before their PodGroup: they collect, and wait for it (K4, V5)."""
    return GangSpec(
        key=key,
        title=f"{key.namespace}/{key.name}",
        created=created,
        minimum=1,
        problem=f"PodGroup {key.namespace}/{key.name} does not exist",
    )


def _nanos(spec: volcano.PodGroupSpec) -> dict[str, int] | None:
    if not spec.min_resources:
        return None
    return {name: quantity.nanos for name, quantity in spec.min_resources.items() if quantity.nanos > 0}


def _templates_priority(job: Obj, priority_of: PriorityOf) -> int | None:
    found = []
    for task in job["spec"].get("tasks") or ():
        value = priority_of(task["template"]["spec"].get("priorityClassName") or "")
        if value is not None:
            found.append(value)
    return max(found, default=None)


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None
