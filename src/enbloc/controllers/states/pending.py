"""Pending: fewer pods than the minimum run."""

from __future__ import annotations

from enbloc.controllers.states.situation import Situation, Verdict


def next_phase(situation: Situation) -> Verdict | None:
    if not situation.plan.replicas:
        return None  # a job scaled to nothing keeps its phase
    if situation.ended:
        return situation.ended
    if situation.meets_minimum:
        text = f"{situation.running_or_succeeded} pods run or succeeded, minAvailable {situation.plan.minimum}"
        return Verdict("Running", "JobRunning", text)
    return None
