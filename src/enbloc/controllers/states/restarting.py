"""Restarting: all pods are deleted, ended ones too; then the job starts over with a new version."""

from typing import Final

from enbloc.controllers.states.state import ENDINGS, State

STATE: Final = State(
    phase="Restarting",
    meaning="all pods are deleted, to be recreated",
    by_itself={"Pending": "the last pod is gone"},
    by_action=dict(ENDINGS),
)
