"""Restarting: pods of earlier runs are deleted, ended ones too: all of them (RestartJob), or those of a role or one pod
(RestartTask, RestartPod)."""

from typing import Final

from enbloc.controllers.states.state import ENDINGS, State

STATE: Final = State(
    phase="Restarting",
    meaning="the pods to restart are deleted, to be recreated",
    by_itself={"Pending": "the last of them is gone"},
    by_action=dict(ENDINGS),
)
