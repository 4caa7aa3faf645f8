"""kube-arbitrator's kinds under their own names: SchedulingSpec and QueueJob (A1, A3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from enbloc.api.core import PodTemplate
from enbloc.api.meta import LabelSelector, TypedObject, View
from enbloc.api.volcano import JobState

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


class QueueJobStatus(View):
    state: JobState | None = None
    min_available: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    met: int = 0
    """The largest `minAvailable` that ran since its pods were last all new (A5: "once it ran")."""
    created: dict[str, int] | None = None
    """How many pods of each role it had: a lost one is distinguished from one that was never created (A4)."""
    restarts: int = 0
    """How often all pods were deleted and recreated because too few were left."""
    restart_at: str | None = None
    """While it restarts: when its pods are recreated."""
    completed_generation: int = 0
    """The generation with which every pod succeeded; another one is reconciled again."""
    conditions: list[dict[str, Any]] | None = None
    """Why it waits (G10)."""


class QueueJob(TypedObject):
    spec: QueueJobSpec
    status: QueueJobStatus | None = None


def _by_lower_case(*views: type[View]) -> dict[str, str]:
    return {name.lower(): name for view in views for name in view.__struct_encode_fields__}


_FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "": {"spec": "spec", "specs": "spec", "status": "status", "metadata": "metadata"},
    "spec": _by_lower_case(QueueJobSpec, SchedulingTemplate),
    "task": _by_lower_case(TaskSpec),
}
"""Lower-case spelling → field, at each level of our kinds; pod templates are Kubernetes'."""


def canonical(obj: Any) -> Any:
    """An object of kube-arbitrator's kinds with its field names in this API's spelling: Go reads JSON without regard to
    case, and the original writes `SchedSpec`, `TaskSpecs` and `Specs` (A3). Other objects are returned unchanged."""
    if not isinstance(obj, dict) or not str(obj.get("apiVersion")).startswith(f"{GROUP}/"):
        return obj
    found = _respelled(obj, "")
    if not isinstance(found.get("spec"), dict):
        return found
    spec = _respelled(found["spec"], "spec")
    for name in ("schedSpec", "schedulingSpec"):
        if isinstance(spec.get(name), dict):
            spec = spec | {name: _respelled(spec[name], "spec")}
    if isinstance(spec.get("taskSpecs"), list):
        spec = spec | {
            "taskSpecs": [_respelled(task, "task") if isinstance(task, dict) else task for task in spec["taskSpecs"]]
        }
    return found if spec is found["spec"] else found | {"spec": spec}


def _respelled(fields: dict[str, Any], level: str) -> dict[str, Any]:
    """The same mapping if every name is spelled right; a field that is there in the right spelling too wins."""
    known = _FIELDS[level]
    wrong = [key for key in fields if known.get(str(key).lower(), key) != key]
    if not wrong:
        return fields
    named = {known[key.lower()]: fields[key] for key in wrong if known[key.lower()] not in fields}
    return {key: value for key, value in fields.items() if key not in wrong} | named


def default_task_name(index: int) -> str:
    """The name of a role without one."""
    return f"task{index}"
