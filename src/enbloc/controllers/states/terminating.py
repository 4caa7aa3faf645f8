"""Terminating: pods that have not ended are deleted, and the job ends."""

from typing import Final

from enbloc.controllers.states.state import State

STATE: Final = State(
    phase="Terminating",
    meaning="pods that have not ended are deleted, for good",
    by_itself={"Terminated": "the last of them is gone"},
)
