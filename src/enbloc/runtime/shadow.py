"""Shadow mode: what this scheduler would have decided on a cluster that another one schedules. It writes nothing.

Watch events go into an engine like that of `enbloc run`; its decisions are noted with their time and not carried out.
What the cluster then does comes back as events, and counts: a pod that was bound elsewhere is there. An eviction that
was decided is taken back at once, as if the API had refused it, since no pod goes.

Compared are starts: a gang has started when as many of its pods are bound as its minima ask for. Room is lost to a
half-started gang while some of its pods are bound, and fewer than that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.engine.core.tables.resources import CPU, total
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.decisions import Bind, Evict
from enbloc.gangs.model import GangKey
from enbloc.gangs.record_digests import new_keyring
from enbloc.runtime.scheduler import Known, listed
from enbloc.runtime.translate import Translator
from enbloc.units import SECOND

_REALLY_BOUND: Final = frozenset({TaskStatus.BOUND, TaskStatus.RELEASING, TaskStatus.SUCCEEDED})
MOST_GANGS: Final = 100_000
"""What happened is kept of at most 100,000 gangs; the oldest are forgotten."""


class _GangHistory:
    """What happened to one gang, and what would have."""

    __slots__ = ("came_ns", "decided_ns", "half_since_ns", "half_started_ns", "lost", "started_ns", "title")

    def __init__(self, title: str, came_ns: int) -> None:
        self.title = title
        self.came_ns = came_ns
        self.decided_ns: int | None = None
        self.started_ns: int | None = None
        self.half_since_ns: int | None = None
        self.half_started_ns = 0
        """For how long some of its pods were bound, and too few."""
        self.lost: dict[str, float] = {}
        """Resource → units × seconds that its pods held meanwhile."""


class Shadow:
    def __init__(self, config: Config, names: frozenset[str]) -> None:
        self.known: Known = lambda kind: ()
        """All objects of a kind, as they were last observed: if something raised, it reads them anew (S8)."""
        self._translator = Translator(config, names, new_keyring())
        self.kinds = self._translator.kinds
        self._histories: dict[GangKey, _GangHistory] = {}
        self._already: set[GangKey] = set()
        """Gangs that had started when the shadow began."""
        self._began_ns: int | None = None
        self._looked_ns = 0
        self._evictions = 0
        self._held: dict[GangKey, Mapping[str, float]] = {}
        """What the pods of half-started gangs hold."""

    def observe(self, event: WatchEvent) -> None:
        self._translator.observe(event)

    def due(self) -> int | None:
        return self._translator.due()

    def busy(self) -> bool:
        return self._translator.busy()

    def cycle(self, now_ns: int) -> None:
        """One cycle: what has happened is noted first, then what would be decided now."""
        if self._translator.torn:
            self._translator = self._translator.anew()
            for event in listed(self.kinds, self.known):
                self._translator.observe(event)
        engine = self._translator.engine
        self._look(now_ns)
        for _ in self._translator.cycle(now_ns):
            pass
        for decision in self._translator.decided:
            match decision:
                case Bind(commits=True):
                    for key in (decision.gang, *decision.others):
                        history = self._histories.get(key)
                        if history is not None and history.decided_ns is None:
                            history.decided_ns = now_ns
                case Evict():
                    self._evictions += 1
                    engine.report(decision, decision.uid)

    def _look(self, now_ns: int) -> None:
        first = self._began_ns is None
        if self._began_ns is None:
            self._began_ns = self._looked_ns = now_ns
        self._count_lost(now_ns)
        for key, gang in self._translator.engine.state.gangs.items():
            if key in self._already:
                continue
            bound = sum(task.status in _REALLY_BOUND for task in gang.tasks.values())
            if first and bound and bound >= gang.minima.total:
                self._already.add(key)
                continue
            self._note(key, gang, bound, now_ns)

    def _note(self, key: GangKey, gang: GangState, bound: int, now_ns: int) -> None:
        history = self._histories.get(key)
        if history is None:
            if not gang.tasks or not any(task.ours for task in gang.tasks.values()):
                return
            history = self._histories[key] = _GangHistory(gang.spec.title, max(gang.spec.created_ns, 0))
            if len(self._histories) > MOST_GANGS:
                self._histories.pop(next(iter(self._histories)))
        if history.started_ns is not None:
            return
        if bound >= max(gang.minima.total, 1):
            history.started_ns = now_ns
            self._end_half(key, history, now_ns)
        elif bound:
            if history.half_since_ns is None:
                history.half_since_ns = now_ns
            self._held[key] = dict(self._amounts(gang))
        else:
            self._end_half(key, history, now_ns)

    def _end_half(self, key: GangKey, history: _GangHistory, now_ns: int) -> None:
        if history.half_since_ns is not None:
            history.half_started_ns += now_ns - history.half_since_ns
            history.half_since_ns = None
        self._held.pop(key, None)

    def _amounts(self, gang: GangState) -> Iterator[tuple[str, float]]:
        names = self._translator.engine.state.resources.names
        tasks = (task for task in gang.tasks.values() if task.status in _REALLY_BOUND)
        for column, amount in total(task.cls.request for task in tasks).items():
            if column == CPU:
                yield names[column], amount / 1000
            elif "/" in names[column]:
                yield names[column], float(amount)

    def _count_lost(self, now_ns: int) -> None:
        seconds = (now_ns - self._looked_ns) / SECOND
        self._looked_ns = now_ns
        for key, amounts in list(self._held.items()):
            history = self._histories.get(key)
            if history is None or key not in self._translator.engine.state.gangs:
                self._held.pop(key)
                continue
            for name, amount in amounts.items():
                history.lost[name] = history.lost.get(name, 0.0) + amount * seconds

    # ---- the report

    def report(self, now_ns: int) -> dict[str, Any]:
        """What `enbloc shadow -o json` prints. Differences are in seconds; negative: it would have started earlier."""
        self._count_lost(now_ns)
        why = {pending.gang: pending.message for pending in self._translator.engine.pending()}
        gangs = [self._shown(history, why.get(history.title, ""), now_ns) for history in self._histories.values()]
        both = [gang for gang in gangs if gang["difference"] is not None]
        lost: dict[str, float] = {}
        for history in self._histories.values():
            for name, amount in history.lost.items():
                lost[name] = lost.get(name, 0.0) + amount
        return {
            "seconds": (now_ns - (self._began_ns if self._began_ns is not None else now_ns)) / SECOND,
            "gangs": gangs,
            "earlier": sum(gang["difference"] < 0 for gang in both),
            "later": sum(gang["difference"] > 0 for gang in both),
            "same": sum(gang["difference"] == 0 for gang in both),
            "only_here": sum(gang["would_start"] is not None and gang["started"] is None for gang in gangs),
            "only_there": sum(gang["would_start"] is None and gang["started"] is not None for gang in gangs),
            "half_started": sum(gang["half_started_s"] > 0 for gang in gangs),
            "lost_to_half_started": lost,
            "evictions": self._evictions,
        }

    def _shown(self, history: _GangHistory, why: str, now_ns: int) -> dict[str, Any]:
        half_ns = history.half_started_ns
        if history.half_since_ns is not None:
            half_ns += now_ns - history.half_since_ns
        both = history.decided_ns is not None and history.started_ns is not None
        return {
            "gang": history.title,
            "came": self._seconds(history.came_ns),
            "would_start": self._seconds(history.decided_ns),
            "started": self._seconds(history.started_ns),
            "difference": ((history.decided_ns or 0) - (history.started_ns or 0)) / SECOND if both else None,
            "half_started_s": half_ns / SECOND,
            "lost": history.lost,
            "why": why if history.decided_ns is None and history.started_ns is None else "",
        }

    def _seconds(self, time_ns: int | None) -> float | None:
        return None if time_ns is None or self._began_ns is None else (time_ns - self._began_ns) / SECOND
