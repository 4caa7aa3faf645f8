"""Completing: the job is done; pods that still run are deleted."""

from typing import Final

from enbloc.controllers.states.state import State

STATE: Final = State(
    phase="Completing",
    meaning="the job is done; pods that have not ended are deleted",
    by_itself={"Completed": "the last of them is gone"},
)
