"""Restarting, Aborting, Terminating, Completing: pods are deleted, and when they are gone the next phase follows."""

from __future__ import annotations

from typing import Final

from enbloc.controllers.job_pod_counts import TERMINATING, JobPod, PodCounts
from enbloc.controllers.job_roles import JobPlan
from enbloc.controllers.job_status import phase_of
from enbloc.controllers.lifecycle import runs_of
from enbloc.controllers.states import aborting, completing, restarting, terminating
from enbloc.controllers.states.situation import Verdict

DRAINING: Final = {state.phase: state for state in (m.STATE for m in (restarting, aborting, terminating, completing))}


def to_remove(plan: JobPlan, pod_counts: PodCounts) -> list[JobPod]:
    """The pods to remove, terminating ones included. A restart removes pods of earlier runs, however they ended;
    otherwise pods that ended are kept for inspection."""
    members = pod_counts.pods.values()
    if phase_of(plan.obj) == restarting.STATE.phase:
        runs = runs_of(plan.obj)
        found = [member for member in members if runs.is_outdated(member)]
    else:
        found = [member for member in members if member.phase not in ("Succeeded", "Failed")]
    return sorted(found, key=lambda member: (member.role, member.index))


def to_delete(plan: JobPlan, pod_counts: PodCounts) -> list[JobPod]:
    return [member for member in to_remove(plan, pod_counts) if member.phase != TERMINATING]


def next_phase(plan: JobPlan, pod_counts: PodCounts, reason: str, message: str) -> Verdict | None:
    if to_remove(plan, pod_counts):
        return None
    (to,) = DRAINING[phase_of(plan.obj)].by_itself
    return Verdict(to, reason, message)
