"""Who may be evicted now, and who was for whom (P2, P3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter

from enbloc.engine.decisions import Decision, Evict
from enbloc.engine.disruptions import Disruptions
from enbloc.engine.ledger import Ledger, may_leave
from enbloc.engine.resources import Request
from enbloc.engine.state import State
from enbloc.engine.tasks import GangState, Task
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

REFUSED_FOR = 30 * SECOND
"""So long after an eviction was refused, nobody asks for it again."""


class Departures:
    def __init__(self, state: State, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._decide = decide
        self.ledger = Ledger(state)
        self._now = 0
        self._elastic: dict[GangKey, GangState] = {}
        self._surplus: dict[GangKey, tuple[GangState, int, list[Task]]] = {}
        """What was found of a gang, as of its version."""
        self._surplus_rows: dict[GangKey, tuple[list[Task], int, Mapping[Request, list[int]]]] = {}
        self._in_vain: dict[tuple[str, GangKey], object] = {}
        """Gangs for which nobody can be evicted, by action, and the facts of which that is so (G9)."""
        self._evictors: dict[GangKey, set[GangKey]] = {}
        """For whom each gang was evicted."""
        self._staying: dict[str, int] = {}
        """Tasks whose eviction was refused, and until when nobody asks again."""
        self._cools_at: int | None = None
        """When the next task may be evicted that may not be yet."""
        self._cooled = 0

    def begin(self, now: int) -> None:
        self._now = now
        if self._cools_at is not None and self._cools_at <= now:
            self._cooled += 1
            self._cools_at = None
        self._staying = {uid: until for uid, until in self._staying.items() if until > now}

    def due(self) -> int | None:
        return self._cools_at

    def see(self, gang: GangState) -> None:
        """A gang was read, or placed."""
        self._in_vain.pop(("preempt", gang.key), None)
        self._in_vain.pop(("reclaim", gang.key), None)
        if gang.total_occupied > gang.spec.minimum:
            self._elastic[gang.key] = gang

    def elastic(self) -> list[GangState]:
        """Gangs that have more than their minimum."""
        for key, gang in list(self._elastic.items()):
            if self._state.gangs.get(key) is not gang or gang.total_occupied <= gang.spec.minimum:
                del self._elastic[key]
                self._surplus.pop(key, None)
                self._surplus_rows.pop(key, None)
        return list(self._elastic.values())

    def surplus(self, gang: GangState) -> list[Task]:
        """Members that can leave without harm to a minimum, the last in order first (P1)."""
        known = self._surplus.get(gang.key)
        if known is not None and known[0] is gang and known[1] == gang.version:
            return known[2]
        found = self._find_surplus(gang)
        if not self._staying and not any(task.terms.cooldown for task in gang.tasks.values()):
            if not gang.spec.terms.cooldown:  # else it is another matter a moment later
                self._surplus[gang.key] = (gang, gang.version, found)
        return found

    def surplus_rows(self, gang: GangState) -> Mapping[Request, list[int]]:
        """Where they are, by what they ask for."""
        tasks, nodes = self.surplus(gang), self._state.nodes
        known = self._surplus_rows.get(gang.key)
        if known is not None and known[0] is tasks and known[1] == nodes.moves:
            return known[2]
        found: dict[Request, list[int]] = {}
        for task in tasks:
            row = nodes.rows.get(task.node)
            if row is not None:
                found.setdefault(task.cls.request, []).append(row)
        self._surplus_rows[gang.key] = (tasks, nodes.moves, found)
        return found

    def _find_surplus(self, gang: GangState) -> list[Task]:
        spare = gang.total_occupied - gang.spec.minimum
        if spare <= 0 or gang.spec.goes_whole:
            return []
        by_role = {role: gang.occupied.get(role, 0) - minimum for role, minimum in gang.spec.minima.items()}
        found: list[Task] = []
        for task in sorted(gang.tasks.values(), key=attrgetter("order"), reverse=True):
            if len(found) == spare:
                break
            if by_role.get(task.role, 1) > 0 and may_leave(task) and self.may_go(task):
                found.append(task)
                if task.role in by_role:
                    by_role[task.role] -= 1
        return found

    # ---- tried in vain

    def is_in_vain(self, action: str, gang: GangState) -> bool:
        """Whether nobody could be evicted for a gang, and nothing has changed since."""
        return self._in_vain.get((action, gang.key)) == self._facts()

    def note_in_vain(self, action: str, gang: GangState) -> None:
        self._in_vain[action, gang.key] = self._facts()

    def _facts(self) -> object:
        state = self._state
        return (state.nodes.clock, state.queues.version, state.budgets.version, self._cooled)

    # ---- who

    def may_go(self, task: Task) -> bool:
        """Whether a task has run as long as it may at least, and its eviction was not refused a moment ago."""
        until = self._staying.get(task.uid, 0)
        cooldown = max(task.terms.cooldown, task.gang.spec.terms.cooldown)
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
        return other.key in self._evictors.get(gang.key, ())

    def evict(self, task: Task, preemptor: GangState, reason: str, message: str) -> None:
        self._evictors.setdefault(task.gang.key, set()).add(preemptor.key)
        self._state.evict(task)
        self._decide(Evict(task.gang.key, task.namespace, task.name, task.uid, reason, message, preemptor.key))

    def stays(self, uid: str) -> None:
        """An eviction was refused: another plan is made, without that one for a while."""
        self._staying[uid] = self._now + REFUSED_FOR
        self._state.stay(uid)
        self._state.news.any = True
