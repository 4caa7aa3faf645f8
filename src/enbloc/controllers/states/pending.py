"""Pending: fewer pods than the minimum run.

Failed pods count towards no minimum: if too many failed for it to be met, the job says so.
"""

from __future__ import annotations

from typing import Final

from enbloc.controllers.states.situation import BELOW_MINIMUM, Situation, Verdict
from enbloc.controllers.states.state import ENDINGS, RESTART_JOB, State

STATE: Final = State(
    phase="Pending",
    meaning="fewer pods than the minimum run or succeeded",
    by_itself={
        "Running": "running + succeeded ≥ `minAvailable`",
        "Completed": "all pods ended and enough succeeded, or `minSuccess` did",
        "Failed": "all pods ended and too few succeeded; or a restart is due and `maxRetry` runs are used up",
    },
    by_action={RESTART_JOB: "Restarting", **ENDINGS},
)


def next_phase(situation: Situation) -> Verdict | None:
    if not situation.plan.replicas:
        return None  # a job scaled to 0 keeps its phase
    if situation.ended:
        return situation.ended
    if situation.meets_minimum:
        return situation.runs
    if situation.out_of_reach:
        return Verdict("Pending", BELOW_MINIMUM, situation.shortage)
    return None
