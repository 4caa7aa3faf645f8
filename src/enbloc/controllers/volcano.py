"""The status of Volcano's PodGroups: how many members run or ended, and the phases that follow from it (K13).

`Pending` → `Inqueue` is written by the scheduler, and so are the conditions. One of them is written here too: a group
that ran and has lost all its pods was attempted (M6), though nothing else in the API shows it any more.
"""

from __future__ import annotations

from typing import Any

from enbloc.api import volcano
from enbloc.api.meta import Obj, controller_key, holds, key_of, name_of, namespace_of, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.controllers.group_status import SCHEDULED, GroupMembers, GroupStatus, Key
from enbloc.controllers.job_states import FINISHED
from enbloc.gangs.dialect import UNSCHEDULABLE
from enbloc.gangs.volcano import ATTEMPTED, STARTED, TRIED, lacks_sub_groups
from enbloc.units import format_timestamp

_COUNTED = ("Running", "Succeeded", "Failed")
_BOUND = (SCHEDULED, "Running", "Succeeded")


def controller() -> GroupStatus:
    return GroupStatus(VolcanoGroups())


class VolcanoGroups:
    kind = volcano.POD_GROUP
    other_kinds = frozenset({volcano.JOB})

    def __init__(self) -> None:
        self._jobs: dict[str, Obj] = {}
        """By key (S1)."""

    def group_of(self, pod: Obj) -> str:
        return volcano.group_name_of(pod)

    def observe_other(self, event: WatchEvent) -> Key | None:
        """A Job: its PodGroup is completed with it."""
        key = key_of(event.obj)
        if event.type == "DELETED":
            self._jobs.pop(key, None)
        else:
            self._jobs[key] = event.obj
        return namespace_of(event.obj), f"{name_of(event.obj)}-{uid_of(event.obj)}"

    def status(self, group: Obj, members: GroupMembers, now_ns: int) -> dict[str, Any]:
        phase = (group.get("status") or {}).get("phase") or ""
        found: dict[str, Any] = {name.lower(): members.count(name) for name in _COUNTED}
        found["phase"] = self._next_phase(group, phase, members)
        if phase in STARTED and found["phase"] == "Inqueue":
            found["conditions"] = _with_attempted(group, now_ns)
        return found

    def _next_phase(self, group: Obj, phase: str, members: GroupMembers) -> str:
        """Inqueue until the minimum runs; Running while it does or its members succeed; Unknown when a member runs,
        fewer are bound than the minimum and the others could not be placed; Completed when all ended; Inqueue again
        when no member is left (G7)."""
        minimum = (group.get("spec") or {}).get("minMember") or 0
        if phase in ("", "Pending"):
            return "Pending"
        if self._has_ended(group, phase, members, minimum):
            return "Completed"
        if members.count("Running") and _could_not_be_placed(group) and self._lacks_members(group, members):
            return "Unknown"
        ran = members.count("Running", "Succeeded")
        if ran and ran >= minimum:
            return "Running"
        return "Inqueue" if phase in ("Inqueue", "Completed") or not members.count(*_BOUND) else phase

    def _has_ended(self, group: Obj, phase: str, members: GroupMembers, minimum: int) -> bool:
        """A Job's group ends with its Job; any other when all its members ended, until new ones are created."""
        job = self._jobs.get(controller_key(group, volcano.JOB))
        if job is not None:
            state = (job.get("status") or {}).get("state") or {}
            return state.get("phase") in FINISHED or phase == "Completed"
        if not members.total:
            return phase == "Completed"
        return members.count("Succeeded", "Failed") == members.total >= minimum

    def _lacks_members(self, group: Obj, members: GroupMembers) -> bool:
        """Whether fewer members are bound than the minimum: in all, of a role, or of the sub-groups that it needs."""
        spec = group.get("spec") or {}
        roles = (spec.get("minTaskMember") or {}).items()
        if members.count(*_BOUND) < (spec.get("minMember") or 0):
            return True
        if any(members.count_of(role, *_BOUND) < (minimum or 0) for role, minimum in roles):
            return True
        job = self._jobs.get(controller_key(group, volcano.JOB))
        return lacks_sub_groups(group, job, ((member.role, member.labels) for member in members.those(*_BOUND)))


def _could_not_be_placed(group: Obj) -> bool:
    """Whether the scheduler says that an attempt to place the others failed. Members that do not exist yet, or that
    something else keeps waiting, were not attempted."""
    return (holds(group, UNSCHEDULABLE) or {}).get("reason") in TRIED


def _with_attempted(group: Obj, now_ns: int) -> list[dict[str, Any]]:
    others = [one for one in group["status"].get("conditions") or () if one.get("type") != ATTEMPTED]
    reason = {"reason": ATTEMPTED, "message": "it ran and has lost all its pods"}
    stamp = format_timestamp(now_ns)
    return [*others, {"type": ATTEMPTED, "status": "True", **reason, "lastTransitionTime": stamp}]
