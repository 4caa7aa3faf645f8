"""Gangs that have waited too long (R1): known at the instant at which that is first so."""

from __future__ import annotations

import heapq

from enbloc.engine.state import State
from enbloc.engine.tasks import GangState
from enbloc.gangs.model import GangKey


class Starving:
    """Who starves, and who will when."""

    def __init__(self, state: State, after: int | None) -> None:
        """`after` is how long a gang can wait that does not say so itself; `None`: nobody starves."""
        self._state = state
        self._after = after
        self._to_come: list[tuple[int, GangKey, GangState]] = []
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
            heapq.heappush(self._to_come, (instant, gang.key, gang))

    def forget(self, gang: GangState) -> None:
        self._watched.pop(gang.key, None)
        self.gangs.pop(gang.key, None)

    def is_starving(self, gang: GangState) -> bool:
        return self.gangs.get(gang.key) is gang

    def begin(self, now: int) -> None:
        """Whoever starves from now on is looked at anew."""
        while self._to_come and self._to_come[0][0] <= now:
            instant, key, gang = heapq.heappop(self._to_come)
            if self._is_so(instant, key, gang):
                self.gangs[key] = gang
                self._state.touch(gang)
        gone = [key for key, gang in self.gangs.items() if self._state.gangs.get(key) is not gang]
        for key in gone:
            del self.gangs[key]

    def due(self) -> int | None:
        while self._to_come and not self._is_so(*self._to_come[0]):
            heapq.heappop(self._to_come)
        return self._to_come[0][0] if self._to_come else None

    def _is_so(self, instant: int, key: GangKey, gang: GangState) -> bool:
        """Whether an entry still stands: it is the gang that waits, and it is not placed yet."""
        if self._watched.get(key) != (instant, gang) or self._state.gangs.get(key) is not gang:
            return False
        return not gang.satisfied and not gang.ready()

    def _patience(self, gang: GangState) -> int:
        own = gang.spec.terms.patience
        if own is None and gang.spec.object is None:
            said = [task.terms.patience for task in gang.tasks.values() if task.terms.patience is not None]
            own = min(said, default=None)
        assert self._after is not None
        return own if own is not None else self._after
