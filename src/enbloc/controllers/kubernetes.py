"""The conditions of Kubernetes' PodGroups: `PodGroupInitiallyScheduled`, which stays, and in v1alpha2
`PodGroupScheduled`, which tells of now. The scheduler's own condition is left as it is."""

from __future__ import annotations

from typing import Any

from enbloc.api import kubernetes
from enbloc.api.kubernetes import INITIALLY_SCHEDULED, SCHEDULED
from enbloc.api.meta import Obj, condition_of
from enbloc.controllers.group_status import GroupStatus, Members
from enbloc.controllers.podgroup import group_of as volcano_group_of
from enbloc.gangs.koordinator import gang_name
from enbloc.units import format_timestamp


def controller() -> GroupStatus:
    return GroupStatus(kubernetes.POD_GROUP, _group_of, _wanted)


def _group_of(pod: Obj) -> str:
    """The PodGroup a pod names, unless its gang is one of another dialect."""
    return "" if volcano_group_of(pod) or gang_name(pod) else kubernetes.group_name_of(pod)


def _wanted(group: Obj, members: Members, now: int) -> dict[str, Any]:
    scheduled = members.count("Scheduled", "Running", "Succeeded") >= _least(group)
    initially = condition_of(group, INITIALLY_SCHEDULED)
    once = scheduled or (initially is not None and initially.get("status") == "True")
    wanted = {INITIALLY_SCHEDULED: once}
    if group["apiVersion"].endswith("/v1alpha2"):
        wanted[SCHEDULED] = scheduled
    conditions = (group.get("status") or {}).get("conditions") or []
    others = [one for one in conditions if one.get("type") not in wanted]
    return {"conditions": [*others, *(_condition(group, kind, holds, now) for kind, holds in wanted.items())]}


def _condition(group: Obj, kind: str, holds: bool, now: int) -> dict[str, Any]:
    known = condition_of(group, kind)
    status = "True" if holds else "False"
    if known is not None and known.get("status") == status:
        return known
    reason = "Scheduled" if holds else "Unschedulable"
    message = "its minimum is scheduled" if holds else "its minimum is not scheduled"
    stamp = format_timestamp(now)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}


def _least(group: Obj) -> int:
    policy = (group.get("spec") or {}).get("schedulingPolicy") or {}
    return max(int((policy.get("gang") or {}).get("minCount") or 0), 1)
