"""Completed, Failed, Terminated: final phases; `ttlSecondsAfterFinished` counts from here."""

from typing import Final

from enbloc.controllers.states.state import State

STATES: Final = (
    State(phase="Completed", meaning="it ended well"),
    State(phase="Failed", meaning="it ended badly"),
    State(phase="Terminated", meaning="it was ended"),
)
FINAL: Final = frozenset(state.phase for state in STATES)
