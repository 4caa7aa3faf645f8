"""The status of KAI's PodGroups: how many members wait, run or ended, and a phase that follows from it.

Why a group waits is the scheduler's condition, which is not touched here.
"""

from __future__ import annotations

from typing import Any

from enbloc.api import kai, kubernetes, volcano
from enbloc.api.kinds import view
from enbloc.api.meta import Obj
from enbloc.controllers.group_status import SCHEDULED, GroupKind, GroupMembers, GroupStatus
from enbloc.gangs.kai import minimum_of
from enbloc.gangs.koordinator import gang_name


def controller() -> GroupStatus:
    return GroupStatus(KaiGroups())


class KaiGroups(GroupKind):
    kind = kai.POD_GROUP

    def group_of(self, pod: Obj) -> str:
        """The PodGroup that a pod names, unless its gang is one of another dialect."""
        name = kai.group_name_of(pod)
        others = name and (volcano.group_name_of(pod) or gang_name(pod) or kubernetes.group_name_of(pod))
        return "" if others else name

    def status(self, group: Obj, members: GroupMembers, now_ns: int) -> dict[str, Any]:
        return {
            "phase": _phase(group, members),
            "pending": members.count("Pending", SCHEDULED),
            "running": members.count("Running"),
            "succeeded": members.count("Succeeded"),
            "failed": members.count("Failed"),
        }


def _phase(group: Obj, members: GroupMembers) -> str:
    minimum = max(minimum_of(view(group, kai.PodGroup).spec), 1)
    succeeded, failed = members.count("Succeeded"), members.count("Failed")
    if members.total and succeeded + failed == members.total:
        return "Succeeded" if succeeded >= minimum else "Failed"
    before = (group.get("status") or {}).get("phase")
    ran = members.count("Running", "Succeeded")
    return "Running" if ran >= minimum or (before == "Running" and ran) else "Pending"
