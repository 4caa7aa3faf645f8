"""Terminating: pods that have not ended go, and that is the end."""

from typing import Final

from enbloc.controllers.states.state import State

STATE: Final = State(
    phase="Terminating",
    meaning="pods that have not ended go, for good",
    by_itself={"Terminated": "the last of them is gone"},
)
