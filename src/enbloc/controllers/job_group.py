"""A Job's PodGroup: how it is created and how it follows the Job (M3, D1, D3). Its status is not written here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from enbloc.api import koordinator, volcano
from enbloc.api.meta import Obj, Ref, annotations_of, labels_of, owned_metadata, uid_of
from enbloc.api.writes import Patch
from enbloc.controllers.job_roles import JobPlan, minimum_resources, preserved_annotations
from enbloc.controllers.merge_diff import difference
from enbloc.units import format_amount

COPIED: Final = (
    koordinator.MODE,
    koordinator.GROUPS,
    koordinator.GANG_GROUPS,
    koordinator.WAITING_TIME,
    koordinator.MATCH_POLICY,
)
"""Annotations that an existing group follows, too (K1)."""


def new_group(plan: JobPlan, begun: Collection[str], priorities: Mapping[str, int]) -> Obj:
    metadata = owned_metadata(plan.obj, plan.group_name)
    annotations = preserved_annotations(plan) | _wave_annotations(plan, begun)
    if annotations:
        metadata["annotations"] = annotations
    if labels_of(plan.obj):
        metadata["labels"] = dict(labels_of(plan.obj))
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": _group_spec(plan, begun, priorities),
    }


def group_patch(
    group: Obj, plan: JobPlan, begun: Collection[str], priorities: Mapping[str, int], failed_create: str | None = None
) -> Patch | None:
    """The patch that brings an existing group in line with its job; `None` if it is.

    `failed_create`: why a pod could not be created, empty if all could; `None`: as the group says now.
    """
    patch: dict[str, Any] = {}
    spec = difference(group.get("spec") or {}, _group_spec(plan, begun, priorities))
    if spec:
        patch["spec"] = spec
    annotations = difference(dict(annotations_of(group)), _wave_annotations(plan, begun))
    ours, theirs = annotations_of(group), annotations_of(plan.obj)
    annotations |= {key: theirs.get(key) for key in COPIED if ours.get(key) != theirs.get(key)}
    if failed_create is not None and failed_create != annotations_of(group).get(volcano.FAILED_CREATE, ""):
        annotations[volcano.FAILED_CREATE] = failed_create or None
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    if not patch:
        return None
    return Patch(Ref(volcano.POD_GROUP, plan.namespace, plan.group_name), patch, uid=uid_of(group))


def begun_roles(group: Obj | None) -> frozenset[str]:
    """The roles that the group records as begun."""
    recorded = annotations_of(group).get(volcano.BEGUN_ROLES, "") if group else ""
    return frozenset(name for name in recorded.split(",") if name)


def _wave_annotations(plan: JobPlan, begun: Collection[str]) -> dict[str, str]:
    if not plan.is_dependent:
        return {}
    names = ",".join(role.name for role in plan.roles if role.name in begun)
    return {volcano.DEPENDENT_JOB: "true", volcano.BEGUN_ROLES: names}


def _group_spec(plan: JobPlan, begun: Collection[str], priorities: Mapping[str, int]) -> dict[str, Any]:
    resources = minimum_resources(plan, begun, priorities)
    spec: dict[str, Any] = {
        "minMember": plan.minimum,
        "minTaskMember": {role.name: role.minimum for role in plan.roles},
        "queue": plan.queue,
        "minResources": {resource: format_amount(resource, nanos) for resource, nanos in resources.items()},
    }
    if plan.spec.priority_class_name:
        spec["priorityClassName"] = plan.spec.priority_class_name
    return spec
