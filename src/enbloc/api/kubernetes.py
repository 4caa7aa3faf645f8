"""Kubernetes' own PodGroup (`scheduling.k8s.io`), which pods name in `spec.schedulingGroup`, and its Workload."""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.meta import Obj, TypedObject, View

GROUP = "scheduling.k8s.io"
POD_GROUP = f"PodGroup.{GROUP}"
WORKLOAD = f"Workload.{GROUP}"
COMPOSITE_POD_GROUP = f"CompositePodGroup.{GROUP}"

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""A condition that stays True: the minimum was scheduled once."""
SCHEDULED = "PodGroupScheduled"
"""A condition of v1alpha2: the minimum is scheduled now."""


class GangPolicy(View):
    min_count: int = 0


class SchedulingPolicy(View):
    """One of the two: `gang` starts together, `basic` one by one."""

    gang: GangPolicy | None = None
    basic: dict[str, Any] | None = None


class PodGroupSpec(View):
    scheduling_policy: SchedulingPolicy = msgspec.field(default_factory=SchedulingPolicy)
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_constraints: dict[str, Any] | None = None
    disruption_mode: str | dict[str, Any] | None = None
    """`Pod` or `PodGroup` in v1alpha2, `{single: {}}` or `{all: {}}` in v1beta1."""
    parent_composite_pod_group_name: str = ""


class PodGroupStatus(View):
    conditions: list[dict[str, Any]] | None = None


class PodGroup(TypedObject):
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus | None = None


class GroupGangPolicy(View):
    min_group_count: int = 0


class GroupPolicy(View):
    """One of the two: of `gang` at least `min_group_count` groups start together, of `basic` each by itself."""

    gang: GroupGangPolicy | None = None
    basic: dict[str, Any] | None = None


class CompositePodGroupSpec(View):
    scheduling_policy: GroupPolicy = msgspec.field(default_factory=GroupPolicy)
    priority_class_name: str = ""
    preemption_policy: str = ""
    scheduling_constraints: dict[str, Any] | None = None
    disruption_mode: str | dict[str, Any] | None = None
    parent_composite_pod_group_name: str = ""


class CompositePodGroup(TypedObject):
    spec: CompositePodGroupSpec = msgspec.field(default_factory=CompositePodGroupSpec)
    status: PodGroupStatus | None = None


def group_name_of(pod: Obj) -> str:
    """The PodGroup that a pod names; empty if it names none."""
    named = pod["spec"].get("schedulingGroup")
    name = named.get("podGroupName") if isinstance(named, dict) else None
    return name if isinstance(name, str) else ""


def workload_reference_of(pod: Obj) -> str:
    """`WORKLOAD/GROUP[/REPLICA]` that a pod names in `spec.workloadRef` (v1alpha1); empty if it names none."""
    named = pod["spec"].get("workloadRef")
    if not isinstance(named, dict):
        return ""
    parts = [named.get(key) for key in ("name", "podGroup", "podGroupReplicaKey")]
    texts = [part if isinstance(part, str) else "" for part in parts]
    return "/".join(text for text in texts if text) if texts[0] and texts[1] else ""
