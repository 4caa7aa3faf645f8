"""The status of Koordinator's PodGroups (K13): Pending → PreScheduling → Scheduling → Scheduled → Running → an end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from enbloc.api import koordinator
from enbloc.api.meta import Obj
from enbloc.controllers.group_status import GroupStatus, Members
from enbloc.controllers.podgroup import group_of as volcano_group_of
from enbloc.gangs.koordinator import gang_name
from enbloc.units import format_timestamp

PHASES = ("Pending", "PreScheduling", "Scheduling", "Scheduled", "Running")
FINAL = ("Finished", "Failed")


def controller() -> GroupStatus:
    return GroupStatus(koordinator.POD_GROUP, group_of, _wanted)


def group_of(pod: Obj) -> str:
    """The PodGroup a pod names, unless it belongs to a Volcano PodGroup: then that is its gang."""
    return "" if volcano_group_of(pod) else gang_name(pod)


def counts(group: Obj, members: Members, now: int) -> dict[str, Any]:
    """What both Koordinator's and scheduler-plugins' users read off a PodGroup."""
    status = group.get("status") or {}
    found: dict[str, Any] = {
        "scheduled": members.count("Scheduled", "Running", "Succeeded"),
        "running": members.count("Running"),
        "succeeded": members.count("Succeeded"),
        "failed": members.count("Failed"),
    }
    if len(members.pods) >= least(group) and not status.get("scheduleStartTime"):
        found["scheduleStartTime"] = format_timestamp(now)
    if members.owners:
        found["occupiedBy"] = members.owners
    return found


def least(group: Obj) -> int:
    minimum = (group.get("spec") or {}).get("minMember")
    return max(minimum if isinstance(minimum, int) else 0, 1)


def end(group: Obj, members: Members) -> str:
    """How it ended; empty if it has not. An end is final."""
    phase: str = (group.get("status") or {}).get("phase") or ""
    if phase in FINAL:
        return phase
    running, succeeded, failed = (members.count(phase) for phase in ("Running", "Succeeded", "Failed"))
    if succeeded >= least(group):
        return "Finished"
    return "Failed" if failed and failed + running + succeeded >= least(group) else ""


def step_towards(group: Obj, wanted: str, phases: Sequence[str]) -> str:
    """The next phase on the way to the one that it should have: whoever watches sees each of them, in order. An end,
    and the way back to the start, are one step."""
    before = (group.get("status") or {}).get("phase") or ""
    if wanted not in phases:
        return wanted
    at = phases.index(before) if before in phases else -1
    return phases[min(at + 1, phases.index(wanted))]


def _wanted(group: Obj, members: Members, now: int) -> dict[str, Any]:
    wanted = end(group, members) or _phase(group, members)
    return {"phase": step_towards(group, wanted, PHASES), **counts(group, members, now)}


def _phase(group: Obj, members: Members) -> str:
    minimum = least(group)
    scheduled = members.count("Scheduled", "Running", "Succeeded")
    before = (group.get("status") or {}).get("phase")
    if members.count("Running", "Succeeded") >= minimum or (before == "Running" and members.pods):
        return "Running"
    if scheduled >= minimum:
        return "Scheduled"
    if scheduled:
        return "Scheduling"
    return "PreScheduling" if len(members.pods) - members.count("Failed") >= minimum else "Pending"
