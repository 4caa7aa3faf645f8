"""What a phase is: the phases that follow by themselves, and those that actions lead to. All of them: `table`."""

from __future__ import annotations

from typing import Final

import msgspec

RESTART_JOB: Final = "RestartJob"
ABORT_JOB: Final = "AbortJob"
TERMINATE_JOB: Final = "TerminateJob"
COMPLETE_JOB: Final = "CompleteJob"
RESUME_JOB: Final = "ResumeJob"
JOB_ACTIONS: Final = (RESTART_JOB, ABORT_JOB, TERMINATE_JOB, COMPLETE_JOB, RESUME_JOB)
"""Actions on a whole job. RestartTask and RestartPod lead through Restarting too, with the other pods running on."""

ENDINGS: Final = {ABORT_JOB: "Aborting", TERMINATE_JOB: "Terminating", COMPLETE_JOB: "Completing"}


class State(msgspec.Struct, frozen=True):
    """One phase. `by_itself`: phase → when. `by_action`: action → phase; an action that is not listed has no effect."""

    phase: str
    meaning: str
    by_itself: dict[str, str] = {}
    by_action: dict[str, str] = {}
