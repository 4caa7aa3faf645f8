"""KAI's PodGroup (`scheduling.run.ai`) and the keys of its pods, under their own names."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from enbloc.api.meta import Obj, TypedObject, View, annotations_of

GROUP: Final = "scheduling.run.ai"
POD_GROUP: Final = f"PodGroup.{GROUP}"

GROUP_NAME: Final = "pod-group-name"
"""On a pod, as an annotation: its PodGroup."""
SUBGROUP: Final = "kai.scheduler/subgroup-name"
"""On a pod, as a label: its subgroup."""
QUEUE: Final = "kai.scheduler/queue"
"""On a pod, its owner or its PodGroup, as a label: the queue."""
NON_PREEMPTIBLE: Final = "non-preemptible"


class TopologyConstraint(View):
    topology: str = ""
    required_topology_level: str = ""
    preferred_topology_level: str = ""


class SubGroup(View):
    name: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    parent: str | None = None
    topology_constraint: TopologyConstraint | None = None


class PodGroupSpec(View):
    min_member: int | None = None
    min_sub_group: int | None = None
    queue: str = ""
    priority_class_name: str = ""
    preemptibility: str = ""
    topology_constraint: TopologyConstraint | None = None
    sub_groups: list[SubGroup] | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: int | None = None
    backoff_limit: int | None = None
    completions: int | None = None
    parallelism: int | None = None


class PodGroupStatus(View):
    phase: str = ""
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: list[dict[str, Any]] | None = None
    scheduling_conditions: list[dict[str, Any]] | None = None
    resources_status: dict[str, Any] | None = None


class PodGroup(TypedObject):
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus | None = None


def group_name_of(pod: Obj) -> str:
    """The PodGroup that a pod names; empty if it names none."""
    return annotations_of(pod).get(GROUP_NAME) or ""


def minima_of(spec: PodGroupSpec) -> dict[str, int]:
    """The minimum of each subgroup, as KAI defaults it: 1."""
    return {one.name: 1 if one.min_member is None else one.min_member for one in spec.sub_groups or ()}


def minimum_of(spec: PodGroupSpec) -> int:
    """The members that start together. A PodGroup without a minimum needs its subgroups', or one member."""
    minima = sum(max(minimum, 0) for minimum in minima_of(spec).values())
    if spec.min_member is None:
        return minima if spec.sub_groups else 1
    return max(spec.min_member, minima)
