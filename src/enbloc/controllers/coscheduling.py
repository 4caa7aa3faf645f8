"""The status of scheduler-plugins' PodGroups (K13): Pending → Scheduling → Running → Finished or Failed."""

from __future__ import annotations

from typing import Any

from enbloc.api import coscheduling
from enbloc.api.meta import Obj
from enbloc.controllers.group_status import GroupStatus, Members
from enbloc.controllers.koordinator import counts, end, group_of, least, step_towards

PHASES = ("Pending", "Scheduling", "Running")


def controller() -> GroupStatus:
    return GroupStatus(coscheduling.POD_GROUP, group_of, _wanted)


def _wanted(group: Obj, members: Members, now: int) -> dict[str, Any]:
    wanted = end(group, members) or _phase(group, members)
    return {"phase": step_towards(group, wanted, PHASES), **counts(group, members, now)}


def _phase(group: Obj, members: Members) -> str:
    before = (group.get("status") or {}).get("phase")
    if members.count("Running", "Succeeded") >= least(group) or (before == "Running" and members.pods):
        return "Running"
    return "Scheduling" if len(members.pods) - members.count("Failed") >= least(group) else "Pending"
