"""The status of scheduler-plugins' PodGroups (K13): Pending → Scheduling → Running → Finished or Failed."""

from __future__ import annotations

from enbloc.api import coscheduling
from enbloc.api.meta import Obj
from enbloc.controllers.group_status import GroupMembers, GroupStatus
from enbloc.controllers.koordinator import KoordinatorGroups, minimum_of, runs


def controller() -> GroupStatus:
    return GroupStatus(CoschedulingGroups())


class CoschedulingGroups(KoordinatorGroups):
    kind = coscheduling.POD_GROUP
    phases = ("Pending", "Scheduling", "Running")

    def phase(self, group: Obj, members: GroupMembers) -> str:
        if runs(group, members):
            return "Running"
        return "Scheduling" if members.live - members.count("Failed") >= minimum_of(group) else "Pending"
