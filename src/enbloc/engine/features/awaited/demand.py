"""What a gang adds to its queue before its pods do: demand, and what it will use once it is attempted (M6, V4)."""

from __future__ import annotations

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import total
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.model import GangKey

STARVING, PREEMPTING, RECLAIMING = "Starving", "Preempting", "Reclaiming"
BEYOND_FREE_ROOM = frozenset({STARVING, PREEMPTING, RECLAIMING})
"""A gang that was enqueued on these grounds, without room for it yet, does not count against other gangs (M6)."""

_ATTEMPTED = frozenset(
    {TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.RELEASING}
)


class QueueDemand(Feature):
    def __init__(self, state: State, waves: Waves, expect_pods_within_ns: int) -> None:
        """`expect_pods_within_ns`: how long a gang counts as enqueued at most (S4)."""
        self._state = state
        self._waves = waves
        self._within_ns = expect_pods_within_ns
        self._now_ns = 0
        self._until_ns: dict[GangKey, int] = {}
        """Enqueued gangs → when they stop counting against others. From its first look at a gang on the engine's memory
        counts: an object that says that it was enqueued later does not count for longer."""
        self._counting: dict[GangKey, GangState] = {}
        self._attempted: set[GangKey] = set()
        """Gangs that were attempted with pods since they were enqueued: their minResources no longer count as
        enqueued (M6)."""

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns
        for key, gang in list(self._counting.items()):
            if self._until_ns[key] <= now_ns:
                del self._counting[key]
                self._state.touch(gang)

    def due(self) -> int | None:
        return min((self._until_ns[key] for key in self._counting), default=None)

    def gang_gone(self, gang: GangState) -> None:
        self._until_ns.pop(gang.key, None)
        self._counting.pop(gang.key, None)
        self._attempted.discard(gang.key)

    def enqueued(self, gang: GangState) -> None:
        self._until_ns[gang.key] = self._now_ns + self._within_ns
        self._attempted.discard(gang.key)
        if gang.need.missing:
            self.gang_read(gang)

    def gang_read(self, gang: GangState) -> None:
        """A gang changed, was enqueued or attempted: what its queue has to expect of it follows."""
        asked = gang.spec.min_resources or {}
        if gang.status.finished or not (asked or gang.spec.later):
            self._state.demand.remove(gang)
            self._counting.pop(gang.key, None)
            return
        amounts = self._state.resources.amounts(asked)
        self._state.nodes.widen()
        self._counting.pop(gang.key, None)
        counts = bool(asked) and self._counts_as_enqueued(gang)
        if counts:
            self._counting[gang.key] = gang
        wanted = total(task.cls.request for task in self._waves.later_tasks(gang))
        for column, amount in amounts.items() if not gang.tasks else ():
            wanted[column] = wanted.get(column, 0) + amount
        self._state.demand.set(gang, wanted, amounts if counts else {})

    def attempted(self, gang: GangState) -> None:
        """The gang was attempted with the tasks that exist: it no longer counts as enqueued and untried (M6)."""
        if gang.tasks:
            self._attempted.add(gang.key)
        else:
            self._attempted.discard(gang.key)
        self.gang_read(gang)

    def was_attempted(self, gang: GangState) -> bool:
        """Whether it was attempted with pods since it was enqueued."""
        return gang.status.tried or gang.key in self._attempted

    def _counts_as_enqueued(self, gang: GangState) -> bool:
        status = gang.status
        if not status.enqueued or gang.satisfied or status.enqueued_by in BEYOND_FREE_ROOM:
            return False
        if self.was_attempted(gang):
            return False
        if any(task.status in _ATTEMPTED or task.status is TaskStatus.GATED for task in gang.tasks.values()):
            return False
        since_ns = self._now_ns if status.enqueued_at_ns is None else min(status.enqueued_at_ns, self._now_ns)
        return self._now_ns < self._until_ns.setdefault(gang.key, since_ns + self._within_ns)
