"""The units that a plan evicts so far, within its transaction: what budgets and queues allow counts them (P2)."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from enbloc.engine.core.state.budgets import Budget, Budgets
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import Task, TaskStatus
from enbloc.engine.features.evict.elastic import can_spare
from enbloc.engine.features.evict.rules import Rules
from enbloc.engine.features.evict.victims import Victims
from enbloc.gangs.model import GangKey


class PlannedEvictions:
    def __init__(
        self,
        state: State,
        rules: Rules,
        transaction: Transaction,
        spared: Container[str] = frozenset(),
    ) -> None:
        """`spared`: UIDs of tasks that this plan does not evict, though it could."""
        self._state = state
        self.rules = rules
        self.transaction = transaction
        self._disruptions = _Disruptions(state.budgets)
        self._base = transaction.checkpoint
        self.rows: dict[str, int] = {}
        """By uid: the row of a victim, also after the transaction took it off."""
        self.units: list[Victims] = []
        self._assumed: list[Victims] = []
        self._spared = spared
        self.is_limited = False
        """Whether the rules, budgets or a minimum did not allow a unit beside others."""
        self.in_vain: list[Victims] = []
        """The units of a plan that failed, where another choice could succeed."""

    def allow(self, unit: Victims) -> bool:
        """Whether a unit may be evicted in addition."""
        if not unit.whole_gang and not can_spare(unit.tasks[0]):
            self.is_limited = True  # another surplus member of its gang leaves
            return False
        if any(task.uid in self._spared for task in unit.tasks):
            return False
        if self.rules.bars(unit.tasks):
            return False
        if not self._is_allowed(unit):
            self.is_limited = True
            return False
        if self._disruptions.allow(self._counted(unit)):
            return True
        self.is_limited = self.is_limited or bool(self.units)
        return False

    def _is_allowed(self, unit: Victims) -> bool:
        if self.rules.allows(unit.tasks):
            return True
        return self.rules.by_use and (self._allows_with_surplus(unit) or self._allows_before_another(unit))

    def _allows_with_surplus(self, unit: Victims) -> bool:
        """Whether a queue gives a gang as a whole together with surplus of it that was planned earlier: it is judged
        once, before all of them leave (P2)."""
        earlier = self._surplus_of(unit)
        if not earlier:
            return False
        self._count_use(earlier, 1)
        together = {task.uid: task for task in (*earlier, *unit.tasks)}
        allowed = self.rules.allows(list(together.values()))
        self._count_use(earlier, -1)
        return allowed

    def _surplus_of(self, unit: Victims) -> list[Task]:
        """The surplus members, evicted so far, of gangs that go as a whole."""
        others = (one for one in (*self.units, *self._assumed) if not one.whole_gang and one.key in unit.ending)
        return [task for other in others for task in other.tasks]

    def _allows_before_another(self, unit: Victims) -> bool:
        """Whether a queue, which is judged before each eviction, gives a unit before one that was planned earlier, and
        still gives that one then (P2)."""
        for other in self.units:
            self._count_use(other.tasks, 1)
            allowed = self.rules.allows(unit.tasks)
            if allowed:
                self._count_use(unit.tasks, -1)
                allowed = self.rules.allows(other.tasks)
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
        self.units.append(unit)
        self._disruptions.count(unit.tasks, 1)
        for task in unit.tasks:
            self.rows[task.uid] = self._state.nodes.rows[task.node]
            self.transaction.evict(task)

    def spare(self, unit: Victims) -> None:
        """The exact inverse of `evict`, if nothing else takes the room."""
        for task in unit.tasks:
            self.transaction.unevict(task, self.rows[task.uid])
        self._disruptions.count(unit.tasks, -1)
        self.units.remove(unit)

    def start_over(self, units: Iterable[Victims] = ()) -> None:
        """Everything since the plan began is undone, and just these units are evicted."""
        self.back_to((self._base, 0))
        for unit in units:
            if bound(unit).tasks:
                self.evict(unit)

    def mark(self) -> tuple[int, int]:
        """The present state, for `back_to`."""
        return self.transaction.checkpoint, len(self.units)

    def back_to(self, mark: tuple[int, int]) -> None:
        """Undoes what was evicted and placed since the mark."""
        checkpoint, count = mark
        self.transaction.rollback(checkpoint)
        for unit in self.units[count:]:
            self._disruptions.count(unit.tasks, -1)
        del self.units[count:]

    def closed_units(self) -> list[Victims]:
        """The units, where one that ends gangs includes surplus members of theirs that were evicted before."""
        singles: dict[GangKey, list[Task]] = {}
        for unit in self.units:
            if not unit.whole_gang:
                singles.setdefault(unit.key, []).extend(unit.tasks)
        found: list[Victims] = []
        for unit in self.units:
            earlier = [task for key in unit.ending for task in singles.get(key, ())]
            found.append(unit._replace(tasks=[*earlier, *unit.tasks]))
        return found

    @property
    def tasks(self) -> list[Task]:
        return [task for unit in self.units for task in unit.tasks]

    # ---- while units of one row are chosen together

    def assume(self, unit: Victims) -> Victims:
        """Counts a unit as evicted for budgets, queues and minima, without taking it off its row. Returns what is
        counted: surplus of a gang that goes as a whole may be counted already."""
        counted = unit._replace(tasks=self._counted(unit))
        self._assumed.append(counted)
        self._disruptions.count(counted.tasks, 1)
        self._count(counted.tasks, -1)
        return counted

    def assume_spared(self, counted: Victims) -> None:
        """The exact inverse of `assume`, of what that returned."""
        self._assumed.remove(counted)
        self._disruptions.count(counted.tasks, -1)
        self._count(counted.tasks, 1)

    def _counted(self, unit: Victims) -> list[Task]:
        """The tasks of a unit without those that are assumed to be evicted."""
        assumed = {task.uid for other in self._assumed for task in other.tasks}
        return [task for task in unit.tasks if task.uid not in assumed]

    def _count(self, tasks: Sequence[Task], by: int) -> None:
        for task in tasks:
            task.gang.occupied[task.role] = task.gang.occupied.get(task.role, 0) + by
        if self.rules.by_use:
            self._count_use(tasks, by)


def bound(unit: Victims) -> Victims:
    """The unit without tasks that were evicted already."""
    return unit._replace(tasks=[task for task in unit.tasks if task.status is TaskStatus.BOUND])


class _Disruptions:
    """How many more evictions the PodDisruptionBudgets allow within one plan."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._evicted: dict[int, int] = {}
        """By budget: how many of its pods the plan evicts."""

    def allow(self, tasks: list[Task]) -> bool:
        """Whether all of these may be evicted together, in addition to those that the plan evicts already."""
        counts: dict[int, tuple[Budget, int]] = {}
        for task in tasks:
            for budget in self._budgets.of(task):
                counts[id(budget)] = (budget, counts.get(id(budget), (budget, 0))[1] + 1)
        return all(budget.allowed() - self._evicted.get(key, 0) >= count for key, (budget, count) in counts.items())

    def count(self, tasks: list[Task], by: int) -> None:
        """The plan evicts these in addition (1), or does not evict them after all (-1)."""
        for task in tasks:
            for budget in self._budgets.of(task):
                self._evicted[id(budget)] = self._evicted.get(id(budget), 0) + by
