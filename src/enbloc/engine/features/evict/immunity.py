"""Which tasks are exempt from eviction by `preemptable` and `cooldown-time`, and how far that counts (P2, S6)."""

from __future__ import annotations

from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task


def is_exempt(task: Task) -> bool:
    """Whether it, or its gang, says `preemptable: "false"`."""
    return task.hints.protected or task.gang.spec.hints.protected


class Immunity:
    def __init__(self, state: State, longest_cooldown_ns: int | None) -> None:
        self._state = state
        self._longest_cooldown_ns = longest_cooldown_ns

    def ends_at_share(self, gang: GangState) -> bool:
        """Whether immunity counts only while the queue of a gang is within its share: it, or an ancestor, says so."""
        return any(place.facts.immune_within_share for place in self._state.queue_of(gang).ancestors)

    def always_exempts(self, task: Task) -> bool:
        """Whether a task is never a victim, whatever its queue uses."""
        return is_exempt(task) and not self.ends_at_share(task.gang)

    def exempts(self, task: Task) -> bool:
        """Whether a task is no victim as long as its queue uses no more than now."""
        return is_exempt(task) and self._counts(task.gang)

    def cooldown_ns(self, task: Task) -> int:
        """How long it must have run before it may be evicted."""
        longest_ns = self._longest_cooldown_ns
        found = max(task.hints.cooldown_ns, task.gang.spec.hints.cooldown_ns)
        if not found or not self._counts(task.gang):
            return 0
        return found if longest_ns is None else min(found, longest_ns)

    def varies(self, gang: GangState) -> bool:
        """Whether it changes with time, or with what its queue uses, though the gang does not change."""
        hints = [gang.spec.hints, *(task.hints for task in gang.tasks.values())]
        if any(one.cooldown_ns for one in hints):
            return True
        return any(one.protected for one in hints) and self.ends_at_share(gang)

    def _counts(self, gang: GangState) -> bool:
        if not self.ends_at_share(gang):
            return True
        queues = self._state.queues
        queues.update_deserved(self._state.foreign_room.shared())
        return not queues.above_share(self._state.queue_of(gang))
