"""How many more evictions the PodDisruptionBudgets allow, within one plan (P2)."""

from __future__ import annotations

from enbloc.engine.budgets import Budget, Budgets
from enbloc.engine.state import State
from enbloc.engine.tasks import Stand, Task

_GONE = frozenset({Stand.SUCCEEDED, Stand.FAILED})


class Disruptions:
    """How many evictions each budget still allows, within one plan."""

    def __init__(self, state: State, budgets: Budgets) -> None:
        self._state = state
        self._budgets = budgets
        self._left: dict[tuple[str, int], int] = {}

    def allow(self, tasks: list[Task]) -> bool:
        """Whether all of these may be evicted together."""
        asked: dict[tuple[str, int], tuple[Budget, int]] = {}
        for task in tasks:
            for budget in self._budgets.of(task):
                key = (task.namespace, id(budget))
                asked[key] = (budget, asked.get(key, (budget, 0))[1] + 1)
        return all(self._allowed(key, budget) >= count for key, (budget, count) in asked.items())

    def count(self, tasks: list[Task], by: int) -> None:
        """These are evicted (1), or spared after all (-1)."""
        for task in tasks:
            for budget in self._budgets.of(task):
                key = (task.namespace, id(budget))
                self._left[key] = self._allowed(key, budget) - by

    def _allowed(self, key: tuple[str, int], budget: Budget) -> int:
        if key not in self._left:
            self._left[key] = self._count(key[0], budget)
        return self._left[key]

    def _count(self, namespace: str, budget: Budget) -> int:
        assert budget.selector is not None
        expected = healthy = 0
        for task in self._state.tasks.values():
            if task.namespace == namespace and task.stand not in _GONE and budget.selector.matches(task.labels):
                expected += 1
                healthy += task.stand is Stand.BOUND and task.since is not None
        if budget.at_most is not None:
            return healthy - (expected - _number(budget.at_most, expected))
        return healthy - _number(budget.at_least if budget.at_least is not None else 1, expected)


def _number(value: int | str, of: int) -> int:
    """A number as it is written, or a part of `of`, rounded up. What cannot be read protects everybody."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return -(-of * int(text) // 100) if value.endswith("%") else int(text)
    return of
