"""Deadlines of gangs that are not enqueued yet, where the plugin `sla` is in the tiers (C).

A gang whose deadline has passed is read anew at that instant. That it is then enqueued is left to the action `enqueue`.
"""

from __future__ import annotations

from collections.abc import Hashable

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.plugins.gang_orders import Sla
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState
from enbloc.gangs.model import GangKey
from enbloc.stale_heap import StaleHeap

_STALE_BOUND = 64


class Deadlines(Feature):
    def __init__(self, state: State, sla: Sla) -> None:
        self._state = state
        self._sla = sla
        self._now_ns = 0
        self._at_ns: dict[GangKey, int] = {}
        self._heap: StaleHeap[GangKey] = StaleHeap(lambda at_ns, key: self._at_ns.get(key) != at_ns, _STALE_BOUND)

    def gang_read(self, gang: GangState) -> None:
        deadline_ns = self._sla.deadline_ns(gang) if not gang.status.enqueued else None
        if deadline_ns is None:
            self._at_ns.pop(gang.key, None)
        elif self._at_ns.get(gang.key) != deadline_ns:
            self._at_ns[gang.key] = deadline_ns
            if deadline_ns > self._now_ns:
                self._heap.push(deadline_ns, gang.key)

    def gang_gone(self, gang: GangState) -> None:
        self._at_ns.pop(gang.key, None)

    def sign_at_admission(self, gang: GangState) -> Hashable:
        return gang.key if self.has_passed(gang) else None

    def has_passed(self, gang: GangState) -> bool:
        deadline_ns = self._at_ns.get(gang.key)
        return deadline_ns is not None and deadline_ns <= self._now_ns

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns
        while (key := self._heap.pop_due(now_ns)) is not None:
            if key in self._state.gangs:
                self._state.touch(self._state.gangs[key])

    def due(self) -> int | None:
        return self._heap.next_ns()
