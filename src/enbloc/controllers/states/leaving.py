"""Restarting, Aborting, Terminating, Completing: pods go, and when they are gone the job is somewhere else."""

from __future__ import annotations

from typing import Final

from enbloc.controllers.job_pod_counts import TERMINATING, Member, PodCounts
from enbloc.controllers.states import aborting, completing, restarting, terminating
from enbloc.controllers.states.situation import Verdict

LEAVING: Final = {state.phase: state for state in (m.STATE for m in (restarting, aborting, terminating, completing))}


def who_goes(phase: str, census: PodCounts) -> list[Member]:
    """The pods that have to go, those on their way included. Who ended stays to be looked at, but for a restart."""
    all_go = phase == restarting.STATE.phase
    members = [member for member in census.pods.values() if all_go or member.phase not in ("Succeeded", "Failed")]
    return sorted(members, key=lambda member: (member.role, member.index))


def to_delete(phase: str, census: PodCounts) -> list[Member]:
    return [member for member in who_goes(phase, census) if member.phase != TERMINATING]


def next_phase(phase: str, census: PodCounts, reason: str, message: str) -> Verdict | None:
    if who_goes(phase, census):
        return None
    (to,) = LEAVING[phase].by_itself
    return Verdict(to, reason, message)
