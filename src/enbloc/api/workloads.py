"""Kubernetes' own kinds that make pods (`apps`, `batch`), as far as the embedded cluster's controllers read them.

Defaults are the API server's; it also writes them into objects (`cluster/embedded/api/workload_defaults.py`).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api.core import Condition, PersistentVolumeClaimSpec, PodTemplate
from enbloc.api.meta import LabelSelector, ObjectMeta, TypedObject, View

REPLICA_SET: Final = "ReplicaSet.apps"
DEPLOYMENT: Final = "Deployment.apps"
STATEFUL_SET: Final = "StatefulSet.apps"
DAEMON_SET: Final = "DaemonSet.apps"
CONTROLLER_REVISION: Final = "ControllerRevision.apps"
JOB: Final = "Job.batch"
CRON_JOB: Final = "CronJob.batch"

TEMPLATE_HASH: Final = "pod-template-hash"
REVISION_HASH: Final = "controller-revision-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
COMPLETION_INDEX: Final = "batch.kubernetes.io/job-completion-index"
JOB_TRACKING: Final = "batch.kubernetes.io/job-tracking"
"""The finalizer that keeps a finished pod until its Job has counted it."""
CONTROLLER_UID_LABELS: Final = ("batch.kubernetes.io/controller-uid", "controller-uid")
JOB_NAME_LABELS: Final = ("batch.kubernetes.io/job-name", "job-name")

MOST_PODS: Final = 100_000
"""At most this many pods of one object are made."""


class ReplicaSetSpec(View):
    selector: LabelSelector
    template: PodTemplate
    replicas: int = 1
    min_ready_seconds: int = 0


class ReplicaSet(TypedObject):
    spec: ReplicaSetSpec


class RollingUpdate(View):
    """Numbers of pods, or shares of all (`25%`). `partition` is a StatefulSet's."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int = 0


class UpdateStrategy(View):
    """Of a StatefulSet, a DaemonSet, and under the name `strategy` of a Deployment."""

    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class DeploymentSpec(View):
    selector: LabelSelector
    template: PodTemplate
    replicas: int = 1
    strategy: UpdateStrategy = msgspec.field(default_factory=UpdateStrategy)
    min_ready_seconds: int = 0
    revision_history_limit: int = 10
    progress_deadline_seconds: int = 600
    paused: bool = False


class ConditionsStatus(View):
    conditions: list[Condition] | None = None


class Deployment(TypedObject):
    spec: DeploymentSpec
    status: ConditionsStatus | None = None


class ClaimTemplate(View):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec


class Ordinals(View):
    start: int = 0


class StatefulSetSpec(View):
    selector: LabelSelector
    template: PodTemplate
    replicas: int = 1
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    update_strategy: UpdateStrategy = msgspec.field(default_factory=UpdateStrategy)
    volume_claim_templates: list[ClaimTemplate] | None = None
    ordinals: Ordinals | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class StatefulSetStatus(View):
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(TypedObject):
    spec: StatefulSetSpec
    status: StatefulSetStatus | None = None


class DaemonSetSpec(View):
    selector: LabelSelector
    template: PodTemplate
    update_strategy: UpdateStrategy = msgspec.field(default_factory=UpdateStrategy)
    min_ready_seconds: int = 0
    revision_history_limit: int = 10


class DaemonSet(TypedObject):
    spec: DaemonSetSpec


class ControllerRevision(TypedObject):
    revision: int
    data: dict[str, Any] | None = None


class JobSpec(View):
    template: PodTemplate
    selector: LabelSelector | None = None
    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False
    manual_selector: bool = False
    managed_by: str = "kubernetes.io/job-controller"


class UncountedPods(View):
    """UIDs of finished pods that no counter contains yet."""

    succeeded: list[str] | None = None
    failed: list[str] | None = None


class JobStatus(View):
    succeeded: int = 0
    failed: int = 0
    completed_indexes: str = ""
    start_time: str | None = None
    completion_time: str | None = None
    uncounted_terminated_pods: UncountedPods | None = None
    conditions: list[Condition] | None = None


class Job(TypedObject):
    spec: JobSpec
    status: JobStatus | None = None


class JobTemplate(View):
    spec: JobSpec
    metadata: ObjectMeta | None = None


class CronJobSpec(View):
    schedule: str
    job_template: JobTemplate
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    successful_jobs_history_limit: int = 3
    failed_jobs_history_limit: int = 1


class CronJobStatus(View):
    last_schedule_time: str | None = None
    last_successful_time: str | None = None


class CronJob(TypedObject):
    spec: CronJobSpec
    status: CronJobStatus | None = None
