"""Gangs that have waited too long (R1): known at the instant at which that is first so."""

from __future__ import annotations

import heapq

from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey

_STALE_BOUND = 64
"""So many entries that mean nothing any more are always put up with."""


class Starving:
    """Who starves, and who will when."""

    def __init__(self, state: State, after: int | None) -> None:
        """`after` is how long a gang can wait that does not say so itself; `None`: nobody starves."""
        self._state = state
        self._after = after
        self._now = 0
        self._to_come: list[tuple[int, GangKey]] = []
        """When whom to look at. Who is meant is in `_watched`: a gang may go and come again under one name."""
        self._watched: dict[GangKey, tuple[int, GangState]] = {}
        self.gangs: dict[GangKey, GangState] = {}
        """Those that starve, whether room is reserved for them by now or not."""

    def see(self, gang: GangState) -> None:
        """A gang was read: it waits from its creation on, until its minima are placed."""
        if self._after is None:
            return
        if gang.satisfied or gang.spec.finished or gang.ready():
            self.forget(gang)
            return
        instant = gang.spec.created + self._patience(gang)
        known = self._watched.get(gang.key)
        if known is None or known[0] != instant or known[1] is not gang:
            self.gangs.pop(gang.key, None)
            self._watched[gang.key] = (instant, gang)
            if instant <= self._now:
                self.gangs[gang.key] = gang
            else:
                heapq.heappush(self._to_come, (instant, gang.key))
                self._tidy()

    def _tidy(self) -> None:
        """Entries of gangs that were placed, or went, are dropped once they are the most."""
        if len(self._to_come) > 2 * len(self._watched) + _STALE_BOUND:
            self._to_come = [(instant, key) for key, (instant, _) in self._watched.items() if instant > self._now]
            heapq.heapify(self._to_come)

    def forget(self, gang: GangState) -> None:
        self._watched.pop(gang.key, None)
        self.gangs.pop(gang.key, None)

    def is_starving(self, gang: GangState) -> bool:
        return self.gangs.get(gang.key) is gang

    def begin(self, now: int) -> None:
        """Whoever starves from now on is looked at anew."""
        self._now = now
        while self._to_come and self._to_come[0][0] <= now:
            gang = self._meant(*heapq.heappop(self._to_come))
            if gang is not None:
                self.gangs[gang.key] = gang
                self._state.touch(gang)

    def due(self) -> int | None:
        while self._to_come and self._meant(*self._to_come[0]) is None:
            heapq.heappop(self._to_come)
        return self._to_come[0][0] if self._to_come else None

    def _meant(self, instant: int, key: GangKey) -> GangState | None:
        """The gang that an entry is about, if it still stands: it is the one that waits, and it is not placed yet."""
        watched, gang = self._watched.get(key, (None, None))
        if gang is None or watched != instant or self._state.gangs.get(key) is not gang:
            return None
        return None if gang.satisfied or gang.ready() else gang

    def _patience(self, gang: GangState) -> int:
        own = gang.spec.hints.sla_waiting_ns
        if own is None and gang.spec.object is None:
            said = [task.hints.sla_waiting_ns for task in gang.tasks.values() if task.hints.sla_waiting_ns is not None]
            own = min(said, default=None)
        assert self._after is not None
        return own if own is not None else self._after
