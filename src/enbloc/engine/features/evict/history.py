"""What is known of evictions between cycles: what they could free, and for which gangs no plan was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.decisions import Decision, Evict
from enbloc.engine.events import BEYOND_ROOM
from enbloc.engine.features.evict.elastic import ElasticMembers
from enbloc.engine.features.evict.evictable import Evictable, Immunity
from enbloc.gangs.model import GangKey

T = TypeVar("T")


class EvictionHistory(Feature):
    retried_on = BEYOND_ROOM

    def __init__(self, state: State, decide: Callable[[Decision], None], immunity: Immunity) -> None:
        self._state = state
        self._decide = decide
        self.immunity = immunity
        self.evictable = Evictable(state, immunity)
        self.surplus = ElasticMembers(state, immunity)
        self._failed: dict[tuple[str, GangKey], object] = {}
        """(action, gang) → the facts for which no eviction plan was found (G9)."""
        self._known_by_use: dict[str, tuple[object, Any]] = {}

    def gang_read(self, gang: GangState) -> None:
        """A gang changed, or was placed."""
        self._retry(gang)
        self.surplus.update(gang)

    def reserve(self, gangs: Sequence[GangState]) -> None:
        for gang in gangs:
            self.gang_read(gang)

    def gang_gone(self, gang: GangState) -> None:
        self._retry(gang)
        self.surplus.remove(gang)

    def unit_read(self, unit: Sequence[GangState]) -> None:
        self._retry(unit[0])  # earlier failures were those of other gangs together

    def _retry(self, gang: GangState) -> None:
        self._failed.pop(("preempt", gang.key), None)
        self._failed.pop(("reclaim", gang.key), None)

    def retry_all(self) -> None:
        """An event of `retried_on` happened: the facts that failed plans are kept with do not show it."""
        self._failed.clear()

    def has_failed(self, action: str, gang: GangState) -> bool:
        """Whether no plan was found for a gang and no fact that bears on it has changed since."""
        return self._failed.get((action, gang.key)) == self._facts()

    def note_failed(self, action: str, gang: GangState) -> None:
        self._failed[action, gang.key] = self._facts()

    def _facts(self) -> object:
        state = self._state
        return (state.nodes.version, state.queues.version, state.budgets.version, self.immunity.ended)

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

    def evict(self, task: Task, preemptor: GangState, reason: str, message: str) -> None:
        self._state.evict(task)
        self._decide(Evict(task.gang.key, task.namespace, task.name, task.uid, reason, message, preemptor.key))
