"""The pods of a QueueJob, and its SchedulingSpec: how they are made, and how a pod is read back (A3, V0)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api import arbitrator, volcano
from enbloc.api.meta import (
    Obj,
    Ref,
    annotations_of,
    condition_of,
    controller_reference,
    is_terminating,
    labels_of,
    name_of,
    uid_of,
)
from enbloc.api.writes import Patch
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot
from enbloc.units import is_label_value, parse_timestamp

TEMPLATE_HASH: Final = "enbloc.dev/template-hash"
ATTEMPT: Final = "enbloc.dev/attempt"
"""How many pods of this name failed, one after the other, before this one."""

DEFAULT_QUEUE: Final = "default"


class Member(msgspec.Struct, frozen=True, gc=False):
    """One pod of a QueueJob, as far as the controller cares."""

    name: str
    uid: str
    phase: str
    terminating: bool
    unschedulable: bool
    template_hash: str
    attempt: int
    ended_at: int
    """When its containers ended; of a pod that never had any, when it was made."""

    @property
    def is_alive(self) -> bool:
        """Whether it counts towards the minimum that ran: it runs or has succeeded."""
        return self.phase in ("Running", "Succeeded") and not self.terminating

    @property
    def is_gone(self) -> bool:
        """Whether another one will have to be made in its place."""
        return self.terminating or self.phase == "Failed"

    @property
    def is_lost(self) -> bool:
        """It failed, is being deleted, or cannot be scheduled (A5)."""
        return self.is_gone or self.unschedulable


def member_of(pod: Obj) -> Member:
    status, notes = pod.get("status") or {}, annotations_of(pod)
    phase = status.get("phase") or "Pending"
    scheduled = condition_of(pod, "PodScheduled") or {}
    refused = scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable"
    attempt = notes.get(ATTEMPT) or ""
    return Member(
        name=name_of(pod),
        uid=uid_of(pod),
        phase=phase,
        terminating=is_terminating(pod),
        unschedulable=phase == "Pending" and refused and not pod["spec"].get("nodeName"),
        template_hash=notes.get(TEMPLATE_HASH) or "",
        attempt=int(attempt) if attempt.isascii() and attempt.isdecimal() and len(attempt) < 10 else 0,
        ended_at=_ended_at(pod, status) if phase == "Failed" else 0,
    )


def _ended_at(pod: Obj, status: dict[str, Any]) -> int:
    ends = [
        ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        for container in status.get("containerStatuses") or ()
    ]
    known = [parse_timestamp(end) for end in ends if end]
    return max(known) if known else parse_timestamp(pod["metadata"]["creationTimestamp"])


def new_pod(plan: QueueJobPlan, slot: Slot, attempt: int) -> Obj:
    role = slot.role
    metadata: dict[str, Any] = role.template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {}) | {
        volcano.JOB_NAME: plan.name,
        volcano.JOB_NAMESPACE: plan.namespace,
        volcano.TASK_SPEC: role.name,
        volcano.TASK_INDEX: str(slot.index),
        arbitrator.QUEUE_JOB_LABEL: plan.name,
    }
    queue = _queue_of(plan)
    if is_label_value(queue):
        labels[volcano.QUEUE_NAME] = queue
    notes = dict(metadata.get("annotations") or {}) | {
        volcano.JOB_NAME: plan.name,
        volcano.QUEUE_NAME: queue,
        volcano.TASK_SPEC: role.name,
        volcano.TASK_INDEX: str(slot.index),
        TEMPLATE_HASH: role.template_hash,
    }
    if attempt:
        notes[ATTEMPT] = str(attempt)
    spec: dict[str, Any] = role.template["spec"]
    if not spec.get("schedulerName"):
        spec = spec | {"schedulerName": plan.scheduler_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": slot.name,
            "namespace": plan.namespace,
            "labels": labels,
            "annotations": notes,
            "ownerReferences": [controller_reference(plan.obj)],
        },
        "spec": spec,
    }


def new_spec(plan: QueueJobPlan) -> Obj:
    """The SchedulingSpec of a QueueJob: of its name, owned by it."""
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": "SchedulingSpec",
        "metadata": {
            "name": plan.name,
            "namespace": plan.namespace,
            "annotations": {volcano.QUEUE_NAME: _queue_of(plan)},
            "ownerReferences": [controller_reference(plan.obj)],
        },
        "spec": _scheduling(plan),
    }


def spec_patch(found: Obj, plan: QueueJobPlan) -> Patch | None:
    """What in an existing SchedulingSpec no longer says what the QueueJob does."""
    is_now, wanted = found.get("spec") or {}, _scheduling(plan)
    patch: dict[str, Any] = {}
    spec = difference(is_now, wanted) | {
        key: None for key in ("priorityClassName", "nodeSelector") if key in is_now and key not in wanted
    }
    if (is_now.get("priorityClassName") or "") != (wanted.get("priorityClassName") or ""):
        spec["priority"] = None  # admission fills in the new class's
    if spec:
        patch["spec"] = spec
    notes = difference(dict(annotations_of(found)), {volcano.QUEUE_NAME: _queue_of(plan)})
    if notes:
        patch["metadata"] = {"annotations": notes}
    if not patch:
        return None
    return Patch(Ref(arbitrator.SCHEDULING_SPEC, plan.namespace, name_of(found)), patch, uid=uid_of(found))


def _scheduling(plan: QueueJobPlan) -> dict[str, Any]:
    """Its priority is left out: admission fills it in from the class."""
    asked = plan.scheduling
    wanted: dict[str, Any] = {"minAvailable": plan.minimum}
    if asked.priority_class_name:
        wanted["priorityClassName"] = asked.priority_class_name
    if asked.node_selector:
        wanted["nodeSelector"] = asked.node_selector
    return wanted


def _queue_of(plan: QueueJobPlan) -> str:
    """QueueJobs know no queues; one that is annotated or labelled as Volcano's users do it is in that queue."""
    for where in (annotations_of(plan.obj), labels_of(plan.obj)):
        for key in volcano.QUEUE_KEYS:
            if where.get(key):
                return where[key]
    return DEFAULT_QUEUE
