"""All phases of a job and the transitions between them, in one table. `docs/job-states.md` is generated from it."""

from __future__ import annotations

from typing import Final

from enbloc.controllers.states import aborted, aborting, completing, finished, pending, restarting, running, terminating
from enbloc.controllers.states.state import JOB_ACTIONS, State

STATES: Final[dict[str, State]] = {
    state.phase: state
    for state in (
        pending.STATE,
        running.STATE,
        restarting.STATE,
        completing.STATE,
        aborting.STATE,
        aborted.STATE,
        terminating.STATE,
        *finished.STATES,
    )
}


def by_action(phase: str, action: str) -> str | None:
    """The phase that an action on the whole job leads to; `None` if it has no effect."""
    state = STATES.get(phase or pending.STATE.phase)
    return state.by_action.get(action) if state else None


def leads(phase: str, to: str) -> bool:
    """Whether there is a transition from one phase to the other."""
    if not phase:
        return True  # a new job, perhaps with a Command waiting already
    state = STATES.get(phase)
    return state is None or to == phase or to in state.by_itself or to in state.by_action.values()


def markdown() -> str:
    """The two tables of `docs/job-states.md`."""
    lines = ["| phase | meaning | by itself |", "|---|---|---|"]
    for state in STATES.values():
        ways = "; ".join(f"**{to}** when {when}" for to, when in state.by_itself.items())
        lines.append(f"| {state.phase} | {state.meaning} | {ways or '–'} |")
    lines += ["", f"| phase | {' | '.join(JOB_ACTIONS)} |", "|---" * (len(JOB_ACTIONS) + 1) + "|"]
    for state in STATES.values():
        cells = [state.by_action.get(action) or "–" for action in JOB_ACTIONS]
        lines.append(f"| {state.phase} | {' | '.join(cells)} |")
    return "\n".join(lines)
