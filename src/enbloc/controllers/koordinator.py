"""The status of Koordinator's PodGroups (K13): Pending → PreScheduling → Scheduling → Scheduled → Running → an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from enbloc.api import koordinator, volcano
from enbloc.api.meta import Obj
from enbloc.controllers.group_status import SCHEDULED, GroupKind, GroupMembers, GroupStatus
from enbloc.gangs.koordinator import gang_name
from enbloc.units import format_timestamp

PHASES = ("Pending", "PreScheduling", "Scheduling", "Scheduled", "Running")
FINAL = ("Finished", "Failed")


def controller() -> GroupStatus:
    return GroupStatus(KoordinatorGroups())


class KoordinatorGroups(GroupKind):
    """Also the base of scheduler-plugins' groups, which differ in kind and phases."""

    kind = koordinator.POD_GROUP
    phases: Sequence[str] = PHASES

    def group_of(self, pod: Obj) -> str:
        """The PodGroup that a pod names, unless it belongs to a Volcano PodGroup: then that is its gang."""
        name = gang_name(pod)
        return "" if name and volcano.group_name_of(pod) else name

    def status(self, group: Obj, members: GroupMembers, now_ns: int) -> dict[str, Any]:
        wanted = _end(group, members) or self.phase(group, members)
        return {"phase": _step_towards(group, wanted, self.phases), **_counts(group, members, now_ns)}

    def phase(self, group: Obj, members: GroupMembers) -> str:
        """The phase that the members call for, ends aside."""
        minimum = minimum_of(group)
        scheduled = members.count(SCHEDULED, "Running", "Succeeded")
        if runs(group, members):
            return "Running"
        if scheduled >= minimum:
            return "Scheduled"
        if scheduled:
            return "Scheduling"
        return "PreScheduling" if members.live - members.count("Failed") >= minimum else "Pending"


def minimum_of(group: Obj) -> int:
    minimum = (group.get("spec") or {}).get("minMember")
    return max(minimum if isinstance(minimum, int) else 0, 1)


def runs(group: Obj, members: GroupMembers) -> bool:
    """Whether the minimum runs, or ran and pods of it are left."""
    before = (group.get("status") or {}).get("phase")
    return members.count("Running", "Succeeded") >= minimum_of(group) or (before == "Running" and bool(members.live))


def _counts(group: Obj, members: GroupMembers, now_ns: int) -> dict[str, Any]:
    status = group.get("status") or {}
    found: dict[str, Any] = {
        "scheduled": members.count(SCHEDULED, "Running", "Succeeded"),
        "running": members.count("Running"),
        "succeeded": members.count("Succeeded"),
        "failed": members.count("Failed"),
    }
    if members.live >= minimum_of(group) and not status.get("scheduleStartTime"):
        found["scheduleStartTime"] = format_timestamp(now_ns)
    if members.owners:
        found["occupiedBy"] = members.owners
    return found


def _end(group: Obj, members: GroupMembers) -> str:
    """`Finished` or `Failed`, which are final; empty while neither holds."""
    phase: str = (group.get("status") or {}).get("phase") or ""
    if phase in FINAL:
        return phase
    running, succeeded, failed = (members.count(phase) for phase in ("Running", "Succeeded", "Failed"))
    if succeeded >= minimum_of(group):
        return "Finished"
    return "Failed" if failed and failed + running + succeeded >= minimum_of(group) else ""


def _step_towards(group: Obj, wanted: str, phases: Sequence[str]) -> str:
    """The next phase on the way to the wanted one, so that a watch delivers each in order. An end, and the way back to
    the start, are one step."""
    before = (group.get("status") or {}).get("phase") or ""
    if wanted not in phases:
        return wanted
    at = phases.index(before) if before in phases else -1
    return phases[min(at + 1, phases.index(wanted))]
