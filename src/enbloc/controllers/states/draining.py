"""Restarting, Aborting, Terminating, Completing: pods are deleted, and when they are gone the next phase follows."""

from __future__ import annotations

from typing import Final

from enbloc.controllers.job_pod_counts import TERMINATING, Member, PodCounts
from enbloc.controllers.states import aborting, completing, restarting, terminating
from enbloc.controllers.states.situation import Verdict

DRAINING: Final = {state.phase: state for state in (m.STATE for m in (restarting, aborting, terminating, completing))}


def to_remove(phase: str, pod_counts: PodCounts) -> list[Member]:
    """The pods to remove, terminating ones included. Pods that ended are kept for inspection, except by a restart."""
    restarts = phase == restarting.STATE.phase
    members = [member for member in pod_counts.pods.values() if restarts or member.phase not in ("Succeeded", "Failed")]
    return sorted(members, key=lambda member: (member.role, member.index))


def to_delete(phase: str, pod_counts: PodCounts) -> list[Member]:
    return [member for member in to_remove(phase, pod_counts) if member.phase != TERMINATING]


def next_phase(phase: str, pod_counts: PodCounts, reason: str, message: str) -> Verdict | None:
    if to_remove(phase, pod_counts):
        return None
    (to,) = DRAINING[phase].by_itself
    return Verdict(to, reason, message)
