"""Volcano's kinds under Volcano's own names: Job, PodGroup, Queue, Command."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api.core import PodTemplate
from enbloc.api.meta import LabelSelector, Obj, Quantities, TypedObject, View, annotations_of, labels_of

JOB = "Job.batch.volcano.sh"
POD_GROUP = "PodGroup.scheduling.volcano.sh"
QUEUE = "Queue.scheduling.volcano.sh"
COMMAND = "Command.bus.volcano.sh"

ROOT_QUEUE: Final = "root"
DEFAULT_QUEUE: Final = "default"

# Keys that Volcano's users select on and write (V0, V1, M3).
GROUP_NAME_KEYS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
QUEUE_KEYS = ("volcano.sh/queue-name", "scheduling.volcano.sh/queue-name")
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
"""On the owner of ordinary pods: they are a gang of at least this many (V1)."""
DEQUEUE_STRATEGY: Final = "volcano.sh/dequeue-strategy"
"""On a Queue without `spec.dequeueStrategy`: the same."""
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
"""On a Queue, `true`: it was closed with its parent and is opened with it (V4)."""
IMMUNITY: Final = "enbloc.dev/immunity"
WITHIN_SHARE: Final = "within-share"
"""Value of `IMMUNITY` on a Queue: `preemptable: "false"` and `cooldown-time` count only up to its share (S6)."""
NAMESPACE_QUEUE = "scheduling.volcano.sh/queue-name"
"""On a Namespace: the queue of its Jobs and PodGroups that name none, or `default` (V4)."""
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_RETRY = "volcano.sh/job-retry-count"
QUEUE_NAME = "volcano.sh/queue-name"
DEPENDENT_JOB = "dependent-job"
FAILED_CREATE = "enbloc.dev/failed-create"
"""On the object of a gang: why the API server refused to create one of its pods (N4)."""
BEGUN_ROLES = "enbloc.dev/begun-roles"
"""On the PodGroup of a dependent job: the roles whose wave has begun. A role that began stays begun (D3)."""
DEFAULTED_MINIMA = "enbloc.dev/defaulted-minima"
"""On a Job: the roles, and `*` for the job, whose minimum admission defaulted. It follows the replicas (M2)."""
WHOLE_JOB = "enbloc.dev/depends-on-gang"
"""On a dependent job: its first wave starts only if all waves fit together (D5)."""


class LifecyclePolicy(View):
    action: str = ""
    event: str = ""
    events: list[str] | None = None
    exit_code: int | None = None
    exit_codes: list[int] | None = None
    timeout: str | None = None


class DependsOn(View):
    name: list[str] | None = None
    iteration: str = ""


class TaskSpec(View):
    template: PodTemplate
    name: str = ""
    replicas: int = 0
    min_available: int | None = None
    policies: list[LifecyclePolicy] | None = None
    depends_on: DependsOn | None = None
    max_retry: int | None = None
    topology_policy: str = ""


class VolumeSpec(View):
    mount_path: str = ""
    volume_claim_name: str = ""
    volume_claim: dict[str, Any] | None = None


class JobSpec(View):
    tasks: list[TaskSpec] | None = None
    scheduler_name: str = ""
    min_available: int | None = None
    volumes: list[VolumeSpec] | None = None
    policies: list[LifecyclePolicy] | None = None
    plugins: dict[str, list[str] | None] | None = None
    running_estimate: str | None = None
    queue: str = ""
    max_retry: int | None = None
    ttl_seconds_after_finished: int | None = None
    priority_class_name: str = ""
    min_success: int | None = None


class JobState(View):
    phase: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class JobStatus(View):
    state: JobState | None = None
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    version: int = 0
    retry_count: int = 0
    conditions: list[dict[str, Any]] | None = None
    controlled_resources: dict[str, str] | None = None


class Job(TypedObject):
    spec: JobSpec
    status: JobStatus | None = None


class SubGroupPolicy(View):
    name: str = ""
    sub_group_size: int | None = None
    min_sub_groups: int | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    network_topology: dict[str, Any] | None = None


class PodGroupSpec(View):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    queue: str = ""
    priority_class_name: str = ""
    min_resources: Quantities | None = None
    network_topology: dict[str, Any] | None = None
    sub_group_policy: list[SubGroupPolicy] | None = None


class PodGroupStatus(View):
    phase: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: list[dict[str, Any]] | None = None


class PodGroup(TypedObject):
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus | None = None


class Guarantee(View):
    resource: Quantities | None = None


class QueueSpec(View):
    weight: int | None = None
    capability: Quantities | None = None
    deserved: Quantities | None = None
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    priority: int = 0
    parent: str = ""
    dequeue_strategy: str = ""
    type: str = ""


class QueueStatus(View):
    state: str = ""


class Queue(TypedObject):
    spec: QueueSpec = msgspec.field(default_factory=QueueSpec)
    status: QueueStatus | None = None


class CommandObject(TypedObject):
    action: str = ""
    target: dict[str, Any] | None = None
    reason: str = ""
    message: str = ""


def _queue(name: str, **spec: Any) -> Obj:
    api_version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1, **spec}}


BUILT_IN_QUEUES: Final = (_queue(ROOT_QUEUE), _queue(DEFAULT_QUEUE, parent=ROOT_QUEUE))
"""The queues that always exist (V4)."""


CLOSED: Final = ("Closed", "Closing")


def group_name_of(pod: Obj) -> str:
    """The PodGroup that a pod names; empty if it names none."""
    annotations = annotations_of(pod)
    if annotations:
        for key in GROUP_NAME_KEYS:
            name = annotations.get(key)
            if name:
                return name
    return ""


def role_of(pod: Obj) -> str:
    """The role that a pod names (M3); empty if it names none."""
    return annotations_of(pod).get(TASK_SPEC) or labels_of(pod).get(TASK_SPEC) or ""


def parent_of(queue: Obj) -> str:
    """The parent of a queue; empty for `root` alone."""
    if queue["metadata"]["name"] == ROOT_QUEUE:
        return ""
    parent: str = (queue.get("spec") or {}).get("parent") or ROOT_QUEUE
    return parent


def state_of(queue: Obj) -> str:
    state: str = (queue.get("status") or {}).get("state") or "Open"
    return state
