"""The units that a plan evicts so far, within its transaction: what budgets and queues allow counts them (P2)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from enbloc.engine.eviction.elastic import can_spare
from enbloc.engine.eviction.history import EvictionHistory
from enbloc.engine.eviction.rules import Rules
from enbloc.engine.eviction.victims import Victims
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import Task, TaskStatus
from enbloc.gangs.model import GangKey


class PlannedEvictions:
    def __init__(
        self,
        state: State,
        evictions: EvictionHistory,
        rules: Rules,
        transaction: Transaction,
        spared: Container[str] = frozenset(),
    ) -> None:
        """`spared`: UIDs of tasks that this plan does not evict, though it could."""
        self._state = state
        self._rules = rules
        self._transaction = transaction
        self._disruptions = evictions.disruptions()
        self._base = transaction.checkpoint
        self._rows: dict[str, int] = {}
        """By uid: the row of a victim, also after the transaction took it off."""
        self.units: list[Victims] = []
        self._spared = spared
        self.is_limited = False
        """Whether the rules, or budgets, did not allow a unit beside others."""
        self.in_vain: list[Victims] = []
        """The units of a plan that failed, where another choice could succeed."""

    def allow(self, unit: Victims) -> bool:
        """Whether a unit may be evicted in addition."""
        if not unit.whole_gang and not can_spare(unit.tasks[0]):
            return False
        if any(task.uid in self._spared for task in unit.tasks):
            return False
        if self._rules.bars(unit.tasks):
            return False
        if not self._rules.allows(unit.tasks) and not self._allows_before_another(unit):
            self.is_limited = True
            return False
        if self._disruptions.allow(unit.tasks):
            return True
        self.is_limited = self.is_limited or bool(self.units)
        return False

    def _allows_before_another(self, unit: Victims) -> bool:
        """Whether a queue, which is judged before each eviction, gives a unit before one that was planned earlier, and
        still gives that one then (P2)."""
        for other in self.units if self._rules.by_use else ():
            self._count_use(other.tasks, 1)
            allowed = self._rules.allows(unit.tasks)
            if allowed:
                self._count_use(unit.tasks, -1)
                allowed = self._rules.allows(other.tasks)
                self._count_use(unit.tasks, 1)
            self._count_use(other.tasks, -1)
            if allowed:
                return True
        return False

    def _count_use(self, tasks: Sequence[Task], by: int) -> None:
        for task in tasks:
            self._state.queues.allocate(self._state.queue_of(task.gang), task.cls.request, by)

    def evict(self, unit: Victims) -> None:
        unit = bound(unit)
        self._note_rows(unit)
        self.units.append(unit)
        self._disruptions.evict(unit.tasks)
        for task in unit.tasks:
            self._transaction.evict(task)

    def spare(self, unit: Victims) -> None:
        """The exact inverse of `evict`, if nothing else takes the room."""
        for task in unit.tasks:
            self._transaction.unevict(task, self._rows[task.uid])
        self._disruptions.spare(unit.tasks)
        self.units.remove(unit)

    def start_over(self, units: Iterable[Victims] = ()) -> None:
        """Everything since the plan began is undone, and just these units are evicted."""
        self.back_to((self._base, 0))
        for unit in units:
            if bound(unit).tasks:
                self.evict(unit)

    def mark(self) -> tuple[int, int]:
        """The present state, for `back_to`."""
        return self._transaction.checkpoint, len(self.units)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Undoes what was evicted and placed since the mark."""
        checkpoint, count = mark
        self._transaction.rollback(checkpoint)
        for unit in self.units[count:]:
            self._disruptions.spare(unit.tasks)
        del self.units[count:]

    def rows_of(self, unit: Victims) -> list[int]:
        self._note_rows(unit)
        return [self._rows[task.uid] for task in unit.tasks]

    def _note_rows(self, unit: Victims) -> None:
        rows = self._state.nodes.rows
        for task in unit.tasks:
            if task.node:
                self._rows[task.uid] = rows[task.node]

    def closed_units(self) -> list[Victims]:
        """The units, where a gang that ends includes its surplus members that were evicted before."""
        singles: dict[GangKey, list[Task]] = {}
        for unit in self.units:
            if not unit.whole_gang:
                singles.setdefault(unit.key, []).extend(unit.tasks)
        found: list[Victims] = []
        for unit in self.units:
            if unit.whole_gang and singles:
                keys = dict.fromkeys(task.gang.key for task in unit.tasks)
                earlier = [task for key in keys for task in singles.get(key, ())]
                unit = unit._replace(tasks=[*earlier, *unit.tasks])
            found.append(unit)
        return found

    @property
    def tasks(self) -> list[Task]:
        return [task for unit in self.units for task in unit.tasks]

    # ---- while units of one row are chosen together

    def assume(self, unit: Victims) -> None:
        """Counts a unit as evicted for budgets, queues and minima, without taking it off its row."""
        self._disruptions.evict(unit.tasks)
        self._count(unit.tasks, -1)

    def assume_spared(self, unit: Victims) -> None:
        """The exact inverse of `assume`."""
        self._disruptions.spare(unit.tasks)
        self._count(unit.tasks, 1)

    def _count(self, tasks: Sequence[Task], by: int) -> None:
        for task in tasks:
            task.gang.occupied[task.role] = task.gang.occupied.get(task.role, 0) + by
        if self._rules.by_use:
            self._count_use(tasks, by)


def bound(unit: Victims) -> Victims:
    """The unit without tasks that were evicted already."""
    return unit._replace(tasks=[task for task in unit.tasks if task.status is TaskStatus.BOUND])
