"""Restarting: all pods go, however they ended; then the job begins anew, with a new version."""

from typing import Final

from enbloc.controllers.states.state import ENDINGS, State

STATE: Final = State(
    phase="Restarting",
    meaning="all pods go, to be made anew",
    by_itself={"Pending": "the last pod is gone"},
    by_action=dict(ENDINGS),
)
