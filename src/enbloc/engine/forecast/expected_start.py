"""When gangs that wait are expected to start: told to the world, and kept up to date (R8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from enbloc.engine.claims.reservations import ENDLESS, Reservations
from enbloc.engine.decisions import Decision, Expect
from enbloc.engine.follower import Follower
from enbloc.engine.forecast.easy_backfill import Start
from enbloc.engine.forecast.run_times import start_of
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey


class ExpectedStarts(Follower):
    def __init__(self, state: State, reservations: Reservations, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._reservations = reservations
        self._decide = decide
        self._published: dict[GangKey, int] = {}
        self._seen: dict[GangKey, int] = {}
        """The nodes' clock when a gang's start was last looked at."""
        self._news: dict[GangKey, int | None] = {}
        """What is to be told of this cycle: of each gang one word, the last."""
        self._heads: dict[str, tuple[GangKey, Start]] = {}
        """Who was first in each queue after the last cycle, when it could start, and what it leaves to others then."""

    def start_of(self, gang: GangState) -> int | None:
        """What was published of a gang."""
        at = self._published.get(gang.key, ENDLESS)
        return at if at != ENDLESS else None

    def foresee(self, now: int) -> None:
        """When gangs with reservations could start: those who would end in time may pass."""
        self._forget()
        nodes, due = self._state.nodes, self._reservations.due
        for gang in self._reservations.gangs():
            rows = [nodes.rows[node] for node in self._reservations.of(gang).values() if node in nodes.rows]
            if gang.key in due and not (nodes.stamp[rows] > self._seen.get(gang.key, -1)).any():
                continue
            start, was = start_of(self._state, self._reservations, gang, now), due.get(gang.key)
            due[gang.key] = start
            self._seen[gang.key] = nodes.clock
            if was is not None and start > was:
                self._state.events.any = self._state.events.everything = True  # there is time for more
            self._publish(gang.key, start, now)

    def gang_gone(self, gang: GangState) -> None:
        self._drop(gang.key)

    def _drop(self, key: GangKey) -> None:
        self._published.pop(key, None)
        self._seen.pop(key, None)

    def set_heads(self, heads: Mapping[str, tuple[GangKey, Start]], now: int) -> None:
        """EASY: another one is first, or its start moved, in time or in space: those behind are looked at anew."""
        if heads != self._heads:
            self._heads = dict(heads)
            self._state.events.any = self._state.events.everything = True
        self._forget()
        for key, start in heads.values():
            if key not in self._reservations.due:  # nodes of its own say more than a forecast in time
                self._publish(key, start.at, now)

    def _forget(self) -> None:
        """Whoever has no reservation any more, in space or in time."""
        heads = {key for key, _ in self._heads.values()}
        for key in [key for key in self._published if key not in self._reservations.due and key not in heads]:
            self._drop(key)
            self._news[key] = None

    def _publish(self, key: GangKey, start: int, now: int) -> None:
        """What is overdue says nothing new: it may be any moment."""
        if start != self._published.get(key, 0) and start > now:
            self._published[key] = start
            self._news[key] = start if start != ENDLESS else None

    def publish(self) -> None:
        """At the end of a cycle: a reservation may have ended and another one be made."""
        events, self._news = self._news, {}
        for key, start in events.items():
            self._decide(Expect(key, start))
