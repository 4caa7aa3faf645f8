"""Running: the minimum ran, and it stays so while members end, until too many wait again."""

from __future__ import annotations

from enbloc.controllers.states.situation import Situation, Verdict


def next_phase(situation: Situation) -> Verdict | None:
    if not situation.plan.replicas:
        return None  # a job scaled to nothing keeps its phase
    if situation.ended:
        return situation.ended
    if situation.too_many_wait:
        waiting = situation.census.total("Pending")
        return Verdict("Pending", "PodsPending", f"{waiting} pods wait, minAvailable {situation.plan.minimum}")
    return None
