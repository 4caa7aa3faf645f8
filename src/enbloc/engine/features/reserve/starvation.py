"""Gangs that starve (R1): known at the instant at which they have waited long enough."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.placement.request import waits_for
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.commit_marks import covers
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.events import BEYOND_ROOM
from enbloc.gangs.model import GangKey
from enbloc.stale_heap import StaleHeap

_STALE_BOUND = 64


class Starvation(Feature):
    retried_on = BEYOND_ROOM

    def __init__(self, state: State, after_ns: int | None) -> None:
        """`after_ns`: how long a gang waits until it starves, unless its own annotation says; `None`: never."""
        self._state = state
        self._after_ns = after_ns
        self._now_ns = 0
        self._heap: StaleHeap[GangKey] = StaleHeap(self._is_stale, _STALE_BOUND)
        """When each gang starves."""
        self._watched: dict[GangKey, tuple[int, GangState]] = {}
        self.gangs: dict[GangKey, GangState] = {}
        """Gangs that starve, with or without a reservation."""
        self._failed: dict[GangKey, object] = {}
        """Starving gangs for which no nodes could be reserved, and the facts on which that depends (G9)."""

    # ---- which gangs starve

    def gang_read(self, gang: GangState) -> None:
        self.retry(gang)
        if self._after_ns is None:
            return
        since_ns = _waits_since(gang)
        if since_ns is None:
            self._forget(gang)
            return
        at_ns = since_ns + (gang.sla_waiting_ns if gang.sla_waiting_ns is not None else self._after_ns)
        known = self._watched.get(gang.key)
        if known is None or known[0] != at_ns or known[1] is not gang:
            self.gangs.pop(gang.key, None)
            self._watched[gang.key] = (at_ns, gang)
            if at_ns <= self._now_ns:
                self.gangs[gang.key] = gang
            else:
                self._heap.push(at_ns, gang.key)

    def _forget(self, gang: GangState) -> None:
        self._watched.pop(gang.key, None)
        self.gangs.pop(gang.key, None)

    def gang_gone(self, gang: GangState) -> None:
        self._forget(gang)
        self.retry(gang)

    def unit_read(self, unit: Sequence[GangState]) -> None:
        self.retry(unit[0])  # earlier failures were those of other gangs together

    def sign_at_admission(self, gang: GangState) -> Hashable:
        return gang.key if self.is_starving(gang) else None

    def is_starving(self, gang: GangState) -> bool:
        return self.gangs.get(gang.key) is gang

    def time_passes(self, now_ns: int) -> None:
        """Gangs that starve from now on are read anew."""
        self._now_ns = now_ns
        while (key := self._heap.pop_due(now_ns)) is not None:
            self.gangs[key] = self._state.gangs[key]
            self._state.touch(self._state.gangs[key])

    def due(self) -> int | None:
        return self._heap.next_ns()

    def _is_stale(self, at_ns: int, key: GangKey) -> bool:
        watched_ns, gang = self._watched.get(key, (None, None))
        return gang is None or watched_ns != at_ns or self._state.gangs.get(key) is not gang or gang.need.ready

    # ---- reservations that could not be made

    def note_failed(self, gang: GangState, facts: object) -> None:
        self._failed[gang.key] = facts

    def has_failed(self, gang: GangState, facts: object) -> bool:
        """Whether no nodes could be reserved for the gang, and nothing that matters has changed since."""
        return self._failed.get(gang.key) == facts

    def retry(self, gang: GangState) -> None:
        self._failed.pop(gang.key, None)

    def retry_all(self) -> None:
        """An event of `retried_on` happened."""
        self._failed.clear()


def _waits_since(gang: GangState) -> int | None:
    """Since when a gang waits: its creation, or once its minima were bound the creation of the oldest pod that it lacks
    now. `None`: it does not."""
    if gang.status.finished or gang.need.ready:
        return None
    was_bound = covers(gang.covered, gang.minima) or (gang.ran and gang.need.missing)
    if not was_bound:
        return gang.spec.created_ns
    return min((task.created_ns for task in waits_for(gang).minimum), default=None)
