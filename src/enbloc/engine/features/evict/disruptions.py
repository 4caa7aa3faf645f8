"""How many more evictions the PodDisruptionBudgets allow within one plan (P2)."""

from __future__ import annotations

from enbloc.engine.core.state.budgets import Budget, Budgets
from enbloc.engine.core.tables.tasks import Task


class Disruptions:
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

    def evict(self, tasks: list[Task]) -> None:
        """The plan evicts these."""
        self._count(tasks, 1)

    def spare(self, tasks: list[Task]) -> None:
        """The exact inverse of `evict`."""
        self._count(tasks, -1)

    def _count(self, tasks: list[Task], by: int) -> None:
        for task in tasks:
            for budget in self._budgets.of(task):
                self._evicted[id(budget)] = self._evicted.get(id(budget), 0) + by
