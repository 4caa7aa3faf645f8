"""kube-arbitrator's kinds under their own names: SchedulingSpec and QueueJob (A1, A3)."""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.core import PodTemplate
from enbloc.api.meta import LabelSelector, Obj, TypedObject, View, controller_of

GROUP = "arbitrator.incubator.k8s.io"
API_VERSION = f"{GROUP}/v1alpha1"
SCHEDULING_SPEC = f"SchedulingSpec.{GROUP}"
QUEUE_JOB = f"QueueJob.{GROUP}"
KAR_SCHEDULER = "kar-scheduler"

QUEUE_JOB_LABEL = "enbloc.dev/queuejob"
"""On the pods of a QueueJob: its name. What `spec.selector` selects."""


class SchedulingTemplate(View):
    """A scheduling template. An absent `minAvailable` is 0, in a QueueJob all its pods."""

    priority_class_name: str = ""
    priority: int | None = None
    node_selector: dict[str, str] | None = None
    min_available: int | None = None


class SchedulingSpecStatus(View):
    conditions: list[dict[str, Any]] | None = None


class SchedulingSpec(TypedObject):
    spec: SchedulingTemplate = msgspec.field(default_factory=SchedulingTemplate)
    status: SchedulingSpecStatus | None = None


class TaskSpec(View):
    template: PodTemplate
    replicas: int = 1
    name: str = ""


class QueueJobSpec(View):
    sched_spec: SchedulingTemplate | None = None
    scheduling_spec: SchedulingTemplate | None = None
    """Another name for the same."""
    task_specs: list[TaskSpec] | None = None
    scheduler_name: str = ""
    selector: LabelSelector | None = None


class QueueJobState(View):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class QueueJobStatus(View):
    state: QueueJobState | None = None
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    met: int = 0
    """The largest `minAvailable` that ran since its pods were last all new (A5: "once it ran")."""
    restarts: int = 0
    """How often all pods were deleted and recreated because too few were left."""
    restart_at: str | None = None
    """While it restarts: when its pods are recreated."""
    completed_generation: int = 0
    """The generation with which every pod succeeded; another one is reconciled again."""


class QueueJob(TypedObject):
    spec: QueueJobSpec
    status: QueueJobStatus | None = None


def default_task_name(index: int) -> str:
    """The name of a role without one."""
    return f"task{index}"


def queue_job_uid(obj: Obj) -> str | None:
    """The UID of the QueueJob that controls an object."""
    owner = controller_of(obj)
    if owner is None or owner.get("kind") != "QueueJob" or not str(owner.get("apiVersion")).startswith(f"{GROUP}/"):
        return None
    uid: str | None = owner.get("uid")
    return uid
