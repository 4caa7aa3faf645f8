"""PodDisruptionBudgets: how many of which pods may be evicted (P2).

Counted from the pods that we know, as the disruption controller does. Nobody counts again when an eviction is carried
out (`docs/decisions/0030-eviction-is-a-marked-deletion.md`).
"""

from __future__ import annotations

from typing import NamedTuple

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, name_of, namespace_of, selector_of
from enbloc.engine.tasks import Task
from enbloc.units import Selector

KIND = "PodDisruptionBudget.policy"


class Budget(NamedTuple):
    selector: Selector | None
    at_least: int | str | None
    """So many stay healthy: a number, or a part of them such as `50%`."""
    at_most: int | str | None
    """So many may be away."""


class Budgets:
    """All budgets, by namespace."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Budget]] = {}
        self.version = 0

    def put(self, obj: Obj) -> None:
        spec = view(obj, core.PodDisruptionBudget).spec
        try:
            selector = selector_of(spec.selector)
        except ValueError:
            selector = None  # no API server takes such a selector
        budget = Budget(selector, spec.min_available, spec.max_unavailable)
        known = self._by_namespace.setdefault(namespace_of(obj), {})
        if known.get(name_of(obj)) != budget:
            known[name_of(obj)] = budget
            self.version += 1

    def remove(self, obj: Obj) -> None:
        self._by_namespace.get(namespace_of(obj), {}).pop(name_of(obj), None)
        self.version += 1

    def of(self, task: Task) -> list[Budget]:
        known = self._by_namespace.get(task.namespace)
        if not known:
            return []
        return [one for one in known.values() if one.selector is not None and one.selector.matches(task.labels)]
