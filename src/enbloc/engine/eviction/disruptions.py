"""How many more evictions the PodDisruptionBudgets allow, within one plan (P2)."""

from __future__ import annotations

from enbloc.engine.state.budgets import Budget, Budgets
from enbloc.engine.tables.tasks import Task


class Disruptions:
    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._taken: dict[int, int] = {}
        """By budget: how many of its pods the plan evicts."""

    def allow(self, tasks: list[Task]) -> bool:
        """Whether all of these may be evicted together, besides those that are."""
        asked: dict[int, tuple[Budget, int]] = {}
        for task in tasks:
            for budget in self._budgets.of(task):
                asked[id(budget)] = (budget, asked.get(id(budget), (budget, 0))[1] + 1)
        return all(budget.allowed() - self._taken.get(key, 0) >= count for key, (budget, count) in asked.items())

    def count(self, tasks: list[Task], by: int) -> None:
        """These are evicted (1), or spared after all (-1)."""
        for task in tasks:
            for budget in self._budgets.of(task):
                self._taken[id(budget)] = self._taken.get(id(budget), 0) + by
