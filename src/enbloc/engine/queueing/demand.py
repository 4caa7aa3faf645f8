"""What a gang adds to its queue before its pods do: demand, and what it will use once it is attempted (M6, V4)."""

from __future__ import annotations

from enbloc.engine.follower import Follower
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, TaskStatus

STARVING, PREEMPTING, RECLAIMING = "Starving", "Preempting", "Reclaiming"
BEYOND_FREE_ROOM = frozenset({STARVING, PREEMPTING, RECLAIMING})
"""A gang that was enqueued on these grounds, without room for it yet, does not count against other gangs (M6)."""

_ATTEMPTED = frozenset(
    {TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.RELEASING}
)


class QueueDemand(Follower):
    def __init__(self, state: State) -> None:
        self._state = state

    def gang_read(self, gang: GangState) -> None:
        asked = gang.spec.min_resources
        if not asked or gang.status.finished:
            self._state.count(gang, {}, {})
            return
        amounts = self._state.resources.amounts(asked)
        self._state.nodes.widen()
        counts = self._counts_as_enqueued(gang)
        self._state.count(gang, {} if gang.tasks else amounts, amounts if counts else {})

    def note_attempt(self, gang: GangState) -> None:
        """The gang was attempted with the tasks that exist: it no longer counts as enqueued and untried (M6)."""
        gang.attempted = frozenset(gang.tasks)
        self.gang_read(gang)

    def _counts_as_enqueued(self, gang: GangState) -> bool:
        status = gang.status
        if not status.enqueued or gang.satisfied or status.enqueued_by in BEYOND_FREE_ROOM:
            return False
        if status.tried or gang.attempted:
            return False
        return not any(task.status in _ATTEMPTED or task.status is TaskStatus.GATED for task in gang.tasks.values())
