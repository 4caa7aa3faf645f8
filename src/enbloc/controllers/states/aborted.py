"""Aborted: nothing runs, until somebody resumes the job. No TTL counts: it may still be wanted."""

from typing import Final

from enbloc.controllers.states.state import RESUME_JOB, State

STATE: Final = State(
    phase="Aborted",
    meaning="nothing runs; it may be resumed",
    by_action={RESUME_JOB: "Restarting"},
)
