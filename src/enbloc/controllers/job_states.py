"""The phases of a job and the transitions between them, in one table (M5, V2).

`docs/job-states.md` is generated from it. Which phase follows from what a job's pods do: `job_situation`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from enbloc.api.meta import Obj

RESTART_JOB: Final = "RestartJob"
ABORT_JOB: Final = "AbortJob"
TERMINATE_JOB: Final = "TerminateJob"
COMPLETE_JOB: Final = "CompleteJob"
RESUME_JOB: Final = "ResumeJob"
JOB_ACTIONS: Final = (RESTART_JOB, ABORT_JOB, TERMINATE_JOB, COMPLETE_JOB, RESUME_JOB)
"""Actions on a whole job. RestartTask and RestartPod lead through Restarting too, with the other pods running on."""

_ENDINGS: Final = {ABORT_JOB: "Aborting", TERMINATE_JOB: "Terminating", COMPLETE_JOB: "Completing"}
_ENDED_WELL: Final = "all pods ended and enough succeeded, or `minSuccess` did"
_ENDED_BADLY: Final = "all pods ended and too few succeeded; or a restart is due and `maxRetry` runs are used up"
_ALL_GONE: Final = "the last of them is gone"


class State(msgspec.Struct, frozen=True):
    """One phase. `by_itself`: phase → when. `by_action`: action → phase; an action that is not listed has no effect."""

    phase: str
    meaning: str
    by_itself: dict[str, str] = {}
    by_action: dict[str, str] = {}


_ALL: Final = (
    State(
        "Pending",
        "fewer pods than the minimum run or succeeded",
        {"Running": "running + succeeded ≥ `minAvailable`", "Completed": _ENDED_WELL, "Failed": _ENDED_BADLY},
        {RESTART_JOB: "Restarting", **_ENDINGS},
    ),
    State(
        "Running",
        "the minimum ran",
        {
            "Pending": "too many pods wait again for the minimum to be met",
            "Completed": _ENDED_WELL,
            "Failed": _ENDED_BADLY,
        },
        {RESTART_JOB: "Restarting", **_ENDINGS},
    ),
    State("Restarting", "the pods to restart are deleted, to be recreated", {"Pending": _ALL_GONE}, dict(_ENDINGS)),
    State("Completing", "the job is done; pods that have not ended are deleted", {"Completed": _ALL_GONE}),
    State(
        "Aborting",
        "pods that have not ended are deleted; it may be resumed",
        {"Aborted": _ALL_GONE},
        {RESUME_JOB: "Restarting"},
    ),
    State("Aborted", "nothing runs; it may be resumed", by_action={RESUME_JOB: "Restarting"}),
    State("Terminating", "pods that have not ended are deleted, for good", {"Terminated": _ALL_GONE}),
    State("Completed", "it ended well"),
    State("Failed", "it ended badly"),
    State("Terminated", "it was ended"),
)
STATES: Final = {state.phase: state for state in _ALL}
FINAL: Final = frozenset({"Completed", "Failed", "Terminated"})
"""`ttlSecondsAfterFinished` counts from here."""
FINISHED: Final = FINAL | {"Aborted"}
"""Phases in which no pod of a job runs or is created; an aborted job may be resumed."""
DRAINING: Final = ("Restarting", "Aborting", "Terminating", "Completing")
"""Pods are deleted, and when they are gone the next phase follows."""


def phase_of(job: Obj) -> str:
    return ((job.get("status") or {}).get("state") or {}).get("phase") or ""


def by_action(phase: str, action: str) -> str | None:
    """The phase that an action on the whole job leads to; `None` if it has no effect."""
    state = STATES.get(phase or "Pending")
    return state.by_action.get(action) if state else None


def leads(phase: str, to: str) -> bool:
    """Whether there is a transition from one phase to the other."""
    if not phase:
        return True  # a new job, perhaps with a Command waiting already
    state = STATES.get(phase)
    return state is None or to == phase or to in state.by_itself or to in state.by_action.values()
