"""The conditions of Kubernetes' PodGroups: `PodGroupInitiallyScheduled`, which stays True, and in v1alpha2
`PodGroupScheduled`, which follows the pods. The scheduler's own condition is left as it is."""

from __future__ import annotations

from typing import Any

from enbloc.api import kubernetes, volcano
from enbloc.api.kubernetes import INITIALLY_SCHEDULED, SCHEDULED
from enbloc.api.meta import Obj, condition_of, holds
from enbloc.controllers.group_status import SCHEDULED as POD_SCHEDULED
from enbloc.controllers.group_status import GroupKind, GroupMembers, GroupStatus
from enbloc.gangs.dialect import UNSCHEDULABLE
from enbloc.gangs.koordinator import gang_name
from enbloc.listing import plural
from enbloc.units import format_timestamp


def controller() -> GroupStatus:
    return GroupStatus(KubernetesGroups())


class KubernetesGroups(GroupKind):
    kind = kubernetes.POD_GROUP

    def group_of(self, pod: Obj) -> str:
        """The PodGroup that a pod names, unless its gang is one of another dialect."""
        name = kubernetes.group_name_of(pod)
        return "" if name and (volcano.group_name_of(pod) or gang_name(pod)) else name

    def status(self, group: Obj, members: GroupMembers, now_ns: int) -> dict[str, Any]:
        count = members.count(POD_SCHEDULED, "Running", "Succeeded")
        scheduled = count >= _minimum(group)
        wanted = {INITIALLY_SCHEDULED: scheduled or holds(group, INITIALLY_SCHEDULED) is not None}
        if group["apiVersion"].endswith("/v1alpha2"):
            wanted[SCHEDULED] = scheduled
        conditions = (group.get("status") or {}).get("conditions") or []
        others = [one for one in conditions if one.get("type") not in wanted]
        own = [_condition(group, kind, holds, count, now_ns) for kind, holds in wanted.items()]
        return {"conditions": [*others, *own]}


def _condition(group: Obj, kind: str, holds: bool, count: int, now_ns: int) -> dict[str, Any]:
    """A condition with the reason and the numbers: while it does not hold, those of the scheduler (G10)."""
    known = condition_of(group, kind)
    status = "True" if holds else "False"
    text = f"{plural(count, 'pod')} {'is' if count == 1 else 'are'} scheduled, the minimum is {_minimum(group)}"
    reason, message = ("Scheduled", text) if holds else _why(group, text)
    if known is not None and known.get("status") == status:
        if holds or (known.get("reason"), known.get("message")) == (reason, message):
            return known
        return known | {"reason": reason, "message": message}
    stamp = format_timestamp(now_ns)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}


def _why(group: Obj, text: str) -> tuple[str, str]:
    """Why the minimum is not scheduled: as the scheduler's condition says, else the numbers alone."""
    waits = holds(group, UNSCHEDULABLE) or {}
    return waits.get("reason") or "Unschedulable", waits.get("message") or text


def _minimum(group: Obj) -> int:
    policy = (group.get("spec") or {}).get("schedulingPolicy") or {}
    return max(int((policy.get("gang") or {}).get("minCount") or 0), 1)
