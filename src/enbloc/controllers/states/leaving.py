"""Restarting, Aborting, Terminating, Completing: pods go, and when they are gone the job is somewhere else."""

from __future__ import annotations

from typing import Final

import msgspec

from enbloc.controllers.job_census import TERMINATING, Census, Member
from enbloc.controllers.states.situation import Verdict


class Leaving(msgspec.Struct, frozen=True):
    """Where it leads, and whether pods that ended must go as well."""

    to: str
    all_go: bool


LEAVING: Final = {
    "Restarting": Leaving("Pending", all_go=True),
    "Aborting": Leaving("Aborted", all_go=False),
    "Terminating": Leaving("Terminated", all_go=False),
    "Completing": Leaving("Completed", all_go=False),
}
BY_ACTION: Final = {
    "RestartJob": "Restarting",
    "AbortJob": "Aborting",
    "TerminateJob": "Terminating",
    "CompleteJob": "Completing",
}


def who_goes(phase: str, census: Census) -> list[Member]:
    """The pods that have to go, those on their way included."""
    all_go = LEAVING[phase].all_go
    members = [member for member in census.pods.values() if all_go or member.phase not in ("Succeeded", "Failed")]
    return sorted(members, key=lambda member: (member.role, member.index))


def to_delete(phase: str, census: Census) -> list[Member]:
    return [member for member in who_goes(phase, census) if member.phase != TERMINATING]


def next_phase(phase: str, census: Census, reason: str, message: str) -> Verdict | None:
    return None if who_goes(phase, census) else Verdict(LEAVING[phase].to, reason, message)
