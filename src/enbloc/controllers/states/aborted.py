"""Aborted: nothing runs, until the job is resumed. No TTL applies."""

from typing import Final

from enbloc.controllers.states.state import RESUME_JOB, State

STATE: Final = State(
    phase="Aborted",
    meaning="nothing runs; it may be resumed",
    by_action={RESUME_JOB: "Restarting"},
)
