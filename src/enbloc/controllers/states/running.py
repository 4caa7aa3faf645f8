"""Running: the minimum ran; the job stays so while members end, until too many wait again.

A job that fell below its minimum says so, whether its pods wait (then it is Pending) or failed for good.
"""

from __future__ import annotations

from typing import Final

from enbloc.controllers.states.situation import BELOW_MINIMUM, Situation, Verdict
from enbloc.controllers.states.state import ENDINGS, RESTART_JOB, State

STATE: Final = State(
    phase="Running",
    meaning="the minimum ran",
    by_itself={
        "Pending": "too many pods wait again for the minimum to be met",
        "Completed": "all pods ended and enough succeeded, or `minSuccess` did",
        "Failed": "all pods ended and too few succeeded; or a restart is due and `maxRetry` runs are used up",
    },
    by_action={RESTART_JOB: "Restarting", **ENDINGS},
)


def next_phase(situation: Situation, reason: str) -> Verdict | None:
    """`reason`: the current one of the job's state."""
    if not situation.plan.replicas:
        return None  # a job scaled to 0 keeps its phase
    if situation.ended:
        return situation.ended
    if situation.too_many_wait:
        return Verdict("Pending", BELOW_MINIMUM, situation.shortage)
    if not situation.meets_minimum:
        return Verdict("Running", BELOW_MINIMUM, situation.shortage)
    return situation.runs if reason == BELOW_MINIMUM else None
