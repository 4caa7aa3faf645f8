"""The pods and the SchedulingSpec of a QueueJob: how they are built, and how a pod is read back (A3, V0)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api import arbitrator, volcano
from enbloc.api.meta import (
    Obj,
    Ref,
    annotations_of,
    condition_of,
    is_terminating,
    name_of,
    number_in,
    owned_metadata,
    uid_of,
)
from enbloc.api.reasons import PendingReason
from enbloc.api.writes import Patch
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.queuejob_plan import QueueJobPlan, Slot
from enbloc.gangs.dialect import queue_named_by
from enbloc.gangs.own_annotations import without_own
from enbloc.units import is_label_value, parse_timestamp

TEMPLATE_HASH: Final = "enbloc.dev/template-hash"
ATTEMPT: Final = "enbloc.dev/attempt"
"""How many pods of this name failed, one after the other, before this one."""


class QueueJobPod(msgspec.Struct, frozen=True, gc=False):
    """One pod of a QueueJob as far as the controller reads it."""

    name: str
    uid: str
    phase: str
    terminating: bool
    unschedulable: bool
    template_hash: str
    attempt: int
    ended_ns: int
    """When its containers finished; of a pod that ran none, when it was created."""

    @property
    def is_alive(self) -> bool:
        """Whether it counts towards the minimum: it runs or has succeeded."""
        return self.phase in ("Running", "Succeeded") and not self.terminating

    @property
    def is_gone(self) -> bool:
        """Whether it has to be recreated."""
        return self.terminating or self.phase == "Failed"

    @property
    def is_lost(self) -> bool:
        """It failed, is being deleted, or cannot be scheduled (A5)."""
        return self.is_gone or self.unschedulable


def member_of(pod: Obj) -> QueueJobPod:
    status, annotations = pod.get("status") or {}, annotations_of(pod)
    phase = status.get("phase") or "Pending"
    scheduled = condition_of(pod, "PodScheduled") or {}
    refused = scheduled.get("status") == "False" and scheduled.get("reason") != PendingReason.SCHEDULING_GATED
    return QueueJobPod(
        name=name_of(pod),
        uid=uid_of(pod),
        phase=phase,
        terminating=is_terminating(pod),
        unschedulable=phase == "Pending" and refused and not pod["spec"].get("nodeName"),
        template_hash=annotations.get(TEMPLATE_HASH) or "",
        attempt=number_in(annotations.get(ATTEMPT)) or 0,
        ended_ns=_ended_ns(pod, status) if phase == "Failed" else 0,
    )


def _ended_ns(pod: Obj, status: dict[str, Any]) -> int:
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
    annotations = without_own(metadata.get("annotations") or {}) | {
        volcano.JOB_NAME: plan.name,
        volcano.QUEUE_NAME: queue,
        volcano.TASK_SPEC: role.name,
        volcano.TASK_INDEX: str(slot.index),
        TEMPLATE_HASH: role.template_hash,
    }
    if attempt:
        annotations[ATTEMPT] = str(attempt)
    spec: dict[str, Any] = role.template["spec"]
    if not spec.get("schedulerName"):
        spec = spec | {"schedulerName": plan.scheduler_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": owned_metadata(plan.obj, slot.name, labels=labels, annotations=annotations),
        "spec": spec,
    }


def new_spec(plan: QueueJobPlan) -> Obj:
    """The SchedulingSpec of a QueueJob: of its name, owned by it."""
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": "SchedulingSpec",
        "metadata": owned_metadata(plan.obj, plan.name, annotations={volcano.QUEUE_NAME: _queue_of(plan)}),
        "spec": _scheduling(plan),
    }


def spec_patch(found: Obj, plan: QueueJobPlan, failed_create: str | None = None) -> Patch | None:
    """The patch that brings an existing SchedulingSpec in line with its QueueJob; `None` if it is.

    `failed_create`: why a pod could not be created, empty if all could; `None`: as the object says now.
    """
    current, wanted = found.get("spec") or {}, _scheduling(plan)
    patch: dict[str, Any] = {}
    spec = difference(current, wanted) | {
        key: None for key in ("priorityClassName", "nodeSelector") if key in current and key not in wanted
    }
    if (current.get("priorityClassName") or "") != (wanted.get("priorityClassName") or ""):
        spec["priority"] = None  # admission sets the new class's
    if spec:
        patch["spec"] = spec
    annotations = difference(dict(annotations_of(found)), {volcano.QUEUE_NAME: _queue_of(plan)})
    if failed_create is not None and failed_create != annotations_of(found).get(volcano.FAILED_CREATE, ""):
        annotations[volcano.FAILED_CREATE] = failed_create or None
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    if not patch:
        return None
    return Patch(Ref(arbitrator.SCHEDULING_SPEC, plan.namespace, name_of(found)), patch, uid=uid_of(found))


def _scheduling(plan: QueueJobPlan) -> dict[str, Any]:
    """Without the priority: admission sets it from the class."""
    asked = plan.scheduling
    wanted: dict[str, Any] = {"minAvailable": plan.minimum}
    if asked.priority_class_name:
        wanted["priorityClassName"] = asked.priority_class_name
    if asked.node_selector:
        wanted["nodeSelector"] = asked.node_selector
    return wanted


def _queue_of(plan: QueueJobPlan) -> str:
    """A QueueJob has no field for its queue; Volcano's annotation or label names it."""
    return queue_named_by(plan.obj) or volcano.DEFAULT_QUEUE
