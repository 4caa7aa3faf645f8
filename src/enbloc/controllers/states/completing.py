"""Completing: what was wanted is done; pods that still run go."""

from typing import Final

from enbloc.controllers.states.state import State

STATE: Final = State(
    phase="Completing",
    meaning="pods that have not ended go: what was wanted is done",
    by_itself={"Completed": "the last of them is gone"},
)
