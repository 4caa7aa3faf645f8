"""The PodGroup of a Job with `spec.scheduling`: made with it, and its minimum follows the Job's.

As Kubernetes 1.37 does with the gate WorkloadWithJob. The Workload that it makes as well is left out: nothing reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from enbloc.api import kubernetes
from enbloc.api.kinds import KINDS
from enbloc.api.meta import Obj, is_terminating, name_of, owned_metadata
from enbloc.api.workloads import JobSpec
from enbloc.api.writes import Create, Write
from enbloc.controllers.workloads.owned import dig, patch


def group_name(owner: Obj) -> str:
    """The PodGroup of a Job's pods; empty if the Job does not ask for one."""
    policy = dig(owner, "spec", "scheduling", "schedulingPolicy")
    return name_of(owner) if isinstance(policy, dict) and policy else ""


def group_writes(owner: Obj, spec: JobSpec, owned: Iterable[Obj]) -> list[Write]:
    """Creates the PodGroup, or lets its spec follow the Job's."""
    if not group_name(owner):
        return []
    wanted = _spec(owner, spec)
    known = next((one for one in owned if one["kind"] == "PodGroup"), None)
    if known is None:
        metadata = owned_metadata(owner, group_name(owner))
        api_version = KINDS[kubernetes.POD_GROUP].api_version
        return [Create({"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": wanted})]
    if is_terminating(known) or dig(known, "spec", "schedulingPolicy") == wanted["schedulingPolicy"]:
        return []
    return [patch(known, {"spec": {"schedulingPolicy": wanted["schedulingPolicy"]}})]


def _spec(owner: Obj, spec: JobSpec) -> dict[str, Any]:
    """All of `spec.scheduling`: what is not honoured holds the gang by its PodGroup (N1)."""
    scheduling = dict(dig(owner, "spec", "scheduling"))
    policy = dict(scheduling["schedulingPolicy"])
    if isinstance(policy.get("gang"), dict):
        policy["gang"] = {"minCount": spec.parallelism, **policy["gang"]}
    return {**scheduling, "schedulingPolicy": policy}
