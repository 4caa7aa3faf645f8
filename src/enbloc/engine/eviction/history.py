"""Who may be evicted now, and who was for whom (P2, P3)."""

from __future__ import annotations

from collections.abc import Callable

from enbloc.engine.decisions import Decision, Evict
from enbloc.engine.eviction.disruptions import Disruptions
from enbloc.engine.eviction.elastic import ElasticMembers
from enbloc.engine.eviction.evictable import Evictable
from enbloc.engine.follower import Follower
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

REFUSED_FOR = 30 * SECOND
"""So long after an eviction was refused, nobody asks for it again."""


class EvictionHistory(Follower):
    """Which tasks may be evicted now, which gangs were evicted for which, and for which gangs no plan was found."""

    def __init__(self, state: State, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._decide = decide
        self.evictable = Evictable(state)
        self._now = 0
        self.surplus = ElasticMembers(state, self.may_go, lambda: bool(self._staying))
        self._failed: dict[tuple[str, GangKey], object] = {}
        """Gangs for which nobody can be evicted, by action, and the facts of which that is so (G9)."""
        self._evicted: dict[GangKey, set[GangKey]] = {}
        """Who was evicted for each gang."""
        self._staying: dict[str, int] = {}
        """Tasks whose eviction was refused, and until when nobody asks again."""
        self._cools_at: int | None = None
        """When the next task may be evicted that may not be yet."""
        self._cooled = 0

    def cycle_begins(self, now_ns: int) -> None:
        self._now = now = now_ns
        if self._cools_at is not None and self._cools_at <= now:
            self._cooled += 1
            self._cools_at = None
        self._staying = {uid: until for uid, until in self._staying.items() if until > now}

    def due(self) -> int | None:
        return self._cools_at

    def gang_read(self, gang: GangState) -> None:
        self.retry(gang)
        self.surplus.update(gang)

    def gang_gone(self, gang: GangState) -> None:
        """What was evicted for other gangs is remembered as long as those exist: the victim may come again."""
        self.retry(gang)
        self._evicted.pop(gang.key, None)
        self.surplus.remove(gang)

    # ---- plans that were not found

    def has_failed(self, action: str, gang: GangState) -> bool:
        """Whether no plan was found for a gang, and nothing that matters has changed since."""
        return self._failed.get((action, gang.key)) == self._facts()

    def retry(self, gang: GangState) -> None:
        """The gang asks for something else, or with other gangs together."""
        self._failed.pop(("preempt", gang.key), None)
        self._failed.pop(("reclaim", gang.key), None)

    def retry_all(self) -> None:
        self._failed.clear()

    def note_failed(self, action: str, gang: GangState) -> None:
        self._failed[action, gang.key] = self._facts()

    def _facts(self) -> object:
        state = self._state
        return (state.nodes.clock, state.queues.version, state.budgets.version, self._cooled)

    # ---- who

    def may_go(self, task: Task) -> bool:
        """Whether a task has run as long as it may at least, and its eviction was not refused a moment ago."""
        until = self._staying.get(task.uid, 0)
        cooldown = max(task.hints.cooldown_ns, task.gang.spec.hints.cooldown_ns)
        if cooldown:
            until = max(until, (task.since if task.since is not None else self._now) + cooldown)
        if until <= self._now:
            return True
        self._cools_at = until if self._cools_at is None else min(self._cools_at, until)
        return False

    def disruptions(self) -> Disruptions:
        return Disruptions(self._state.budgets)

    def was_evicted_by(self, gang: GangState, other: GangState) -> bool:
        """P3: whoever was evicted for somebody never has that one evicted in turn."""
        return gang.key in self._evicted.get(other.key, ())

    def evict(self, task: Task, preemptor: GangState, reason: str, message: str) -> None:
        self._evicted.setdefault(preemptor.key, set()).add(task.gang.key)
        self._state.evict(task)
        self._decide(Evict(task.gang.key, task.namespace, task.name, task.uid, reason, message, preemptor.key))

    def refused(self, uid: str) -> None:
        """An eviction was refused: the next plans do without this task for a while."""
        self._staying[uid] = self._now + REFUSED_FOR
        self._state.stay(uid)
        self._state.events.any = True
