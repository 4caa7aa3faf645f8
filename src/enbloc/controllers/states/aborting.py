"""Aborting: pods that have not ended are deleted."""

from typing import Final

from enbloc.controllers.states.state import RESUME_JOB, State

STATE: Final = State(
    phase="Aborting",
    meaning="pods that have not ended are deleted; it may be resumed",
    by_itself={"Aborted": "the last of them is gone"},
    by_action={RESUME_JOB: "Restarting"},
)
