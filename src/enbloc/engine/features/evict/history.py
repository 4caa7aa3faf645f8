"""Which tasks may be evicted now, and which were evicted for which gang (P2, P3). `planner` chooses victims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.decisions import Decision, Evict
from enbloc.engine.events import BEYOND_ROOM, EventKind
from enbloc.engine.features.evict.disruptions import Disruptions
from enbloc.engine.features.evict.elastic import ElasticMembers
from enbloc.engine.features.evict.evictable import Evictable
from enbloc.engine.features.evict.immunity import Immunity
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

T = TypeVar("T")

REFUSED_FOR_NS = 30 * SECOND
"""A refused eviction is not retried for 30 s."""


class EvictedFor(Protocol):
    """Which gangs were evicted for which, as long as the latter exist: the victims may be recreated."""

    def has(self, gang: GangState, victim: GangKey) -> bool: ...


class EvictionHistory(Feature):
    """Which tasks may be evicted now, which gangs were evicted for which, and for which gangs no plan was found."""

    retried_on = BEYOND_ROOM

    def __init__(
        self, state: State, decide: Callable[[Decision], None], immunity: Immunity, evicted: EvictedFor | None
    ) -> None:
        self._state = state
        self.evicted = evicted
        self._decide = decide
        self.immunity = immunity
        self.evictable = Evictable(state, immunity)
        self._now_ns = 0
        self.surplus = ElasticMembers(state, immunity, self.may_go, lambda: bool(self._refused_until_ns))
        self._failed: dict[tuple[str, GangKey], object] = {}
        """(action, gang) → the facts for which no eviction plan was found (G9)."""
        self.packed: dict[str, object] = {}
        """Queue → the gangs that it was last packed anew for (see `actions.preempt_by_order`)."""
        self._refused_until_ns: dict[str, int] = {}
        """UIDs of tasks whose eviction was refused → when it may be retried."""
        self._cooldown_ends_ns: int | None = None
        """When the next cooldown ends."""
        self._cooldowns_ended = 0
        self._known_by_use: dict[str, tuple[object, Any]] = {}

    def cycle_begins(self, now_ns: int) -> None:
        self._now_ns = now_ns
        if self._cooldown_ends_ns is not None and self._cooldown_ends_ns <= now_ns:
            self._cooldowns_ended += 1
            self._cooldown_ends_ns = None
        self._refused_until_ns = {
            uid: until_ns for uid, until_ns in self._refused_until_ns.items() if until_ns > now_ns
        }

    def due(self) -> int | None:
        return self._cooldown_ends_ns

    def gang_read(self, gang: GangState) -> None:
        self.update(gang)

    def update(self, gang: GangState) -> None:
        """A gang changed, or was placed."""
        self.retry(gang)
        self.surplus.update(gang)

    def reserve(self, gangs: Sequence[GangState]) -> None:
        for gang in gangs:
            self.update(gang)

    def gang_gone(self, gang: GangState) -> None:
        self.retry(gang)
        self.surplus.remove(gang)

    def by_use(self, name: str, compute: Callable[[], T]) -> T:
        """What `compute` returns, from memory as long as no queue uses or deserves another amount and the same tasks
        can be evicted."""
        queues = self._state.queues
        facts = (queues.used_version, queues.deserved_version, queues.version, self._state.nodes.version)
        known = self._known_by_use.get(name)
        if known is None or known[0] != facts:
            known = self._known_by_use[name] = (facts, compute())
        found: T = known[1]
        return found

    # ---- failed plans

    def has_failed(self, action: str, gang: GangState) -> bool:
        """Whether no plan was found for a gang and no fact that bears on it has changed since."""
        return self._failed.get((action, gang.key)) == self._facts()

    def retry(self, gang: GangState) -> None:
        """The gang changed: plans are tried for it again."""
        self._failed.pop(("preempt", gang.key), None)
        self._failed.pop(("reclaim", gang.key), None)

    def unit_read(self, unit: Sequence[GangState]) -> None:
        self.retry(unit[0])  # earlier failures were those of other gangs together

    def retry_all(self) -> None:
        """An event of `retried_on` happened: the facts that failed plans are kept with do not show it."""
        self._failed.clear()
        self.packed.clear()

    def note_failed(self, action: str, gang: GangState) -> None:
        self._failed[action, gang.key] = self._facts()

    def _facts(self) -> object:
        state = self._state
        return (state.nodes.version, state.queues.version, state.budgets.version, self._cooldowns_ended)

    # ---- victims

    def may_go(self, task: Task) -> bool:
        """Whether a task is not immune, its cooldown is over, and its eviction was not refused in `REFUSED_FOR_NS`."""
        if self.immunity.exempts(task):
            return False
        until_ns = self._refused_until_ns.get(task.uid, 0)
        cooldown_ns = self.immunity.cooldown_ns(task)
        if cooldown_ns:
            until_ns = max(until_ns, (task.since_ns if task.since_ns is not None else self._now_ns) + cooldown_ns)
        if until_ns <= self._now_ns:
            return True
        self.look_again_at(until_ns)
        return False

    def look_again_at(self, time_ns: int) -> None:
        """Plans are tried again at that time: a task may be evicted then that may not be now."""
        self._cooldown_ends_ns = time_ns if self._cooldown_ends_ns is None else min(self._cooldown_ends_ns, time_ns)

    def disruptions(self) -> Disruptions:
        return Disruptions(self._state.budgets)

    def was_evicted_by(self, gang: GangState, other: GangState) -> bool:
        """P3: a gang that was evicted for another one never preempts that one in turn."""
        return self.evicted is not None and self.evicted.has(other, gang.key)

    def in_turn(self, unit: Sequence[GangState], tasks: Iterable[Task]) -> bool:
        """Whether one of the gangs that start together was evicted for the gang of one of these tasks."""
        others = {task.gang.key: task.gang for task in tasks}
        return any(self.was_evicted_by(gang, other) for gang in unit for other in others.values())

    def evict(self, task: Task, preemptor: GangState, reason: str, message: str) -> None:
        self._state.evict(task)
        self._decide(Evict(task.gang.key, task.namespace, task.name, task.uid, reason, message, preemptor.key))

    def refused(self, decision: Decision, uid: str) -> None:
        """The API refused an eviction: plans exclude this task for `REFUSED_FOR_NS`."""
        if not uid or not isinstance(decision, Evict):
            return
        self._refused_until_ns[uid] = self._now_ns + REFUSED_FOR_NS
        self._state.unevict(uid)
        self._state.events.add(EventKind.VICTIMS_CHANGED)
