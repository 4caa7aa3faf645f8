"""PodDisruptionBudgets: how many of which pods may be evicted (P2).

Counted from the pods that we know, as the disruption controller does, and kept up pod by pod. Nobody counts again when
an eviction is carried out (`docs/decisions/0030-eviction-is-a-marked-deletion.md`).
"""

from __future__ import annotations

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, name_of, namespace_of, selector_of
from enbloc.engine.tasks import Stand, Task
from enbloc.units import Selector

KIND = "PodDisruptionBudget.policy"
_GONE = frozenset({Stand.SUCCEEDED, Stand.FAILED})


class Budget:
    """One budget, and the pods that it is about."""

    __slots__ = ("at_least", "at_most", "expected", "healthy", "selector")

    def __init__(self, selector: Selector | None, at_least: int | str | None, at_most: int | str | None) -> None:
        self.selector = selector
        self.at_least = at_least
        """So many stay healthy: a number, or a part of them such as `50%`."""
        self.at_most = at_most
        """So many may be away."""
        self.expected: set[str] = set()
        self.healthy: set[str] = set()

    def selects(self, task: Task) -> bool:
        return self.selector is not None and self.selector.matches(task.labels)

    def allowed(self) -> int:
        """How many may be evicted now; below 0: more are away than may be."""
        expected, healthy = len(self.expected), len(self.healthy)
        if self.at_most is not None:
            return healthy - (expected - _number(self.at_most, expected))
        return healthy - _number(self.at_least if self.at_least is not None else 1, expected)


class Budgets:
    """All budgets, by namespace."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, Budget]] = {}
        self.version = 0

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def put(self, obj: Obj) -> str | None:
        """A budget came or changed. Returns the namespace whose pods are to be seen again, if any."""
        spec = view(obj, core.PodDisruptionBudget).spec
        try:
            selector = selector_of(spec.selector)
        except ValueError:
            selector = None  # no API server takes such a selector
        budget = Budget(selector, spec.min_available, spec.max_unavailable)
        known = self._by_namespace.setdefault(namespace_of(obj), {})
        before = known.get(name_of(obj))
        if before is not None and _facts(before) == _facts(budget):
            return None
        known[name_of(obj)] = budget
        self.version += 1
        return namespace_of(obj)

    def remove(self, obj: Obj) -> None:
        known = self._by_namespace.get(namespace_of(obj), {})
        known.pop(name_of(obj), None)
        if not known:
            self._by_namespace.pop(namespace_of(obj), None)
        self.version += 1

    def of(self, task: Task) -> list[Budget]:
        known = self._by_namespace.get(task.namespace)
        return [budget for budget in known.values() if budget.selects(task)] if known else []

    # ---- pods

    def see(self, task: Task) -> None:
        """A pod is there, and stands as it does."""
        for budget in self._by_namespace.get(task.namespace, {}).values():
            counts = budget.selects(task) and task.stand not in _GONE
            _set(budget.expected, task.uid, counts)
            _set(budget.healthy, task.uid, counts and task.stand is Stand.BOUND and task.since is not None)

    def forget(self, task: Task) -> None:
        for budget in self._by_namespace.get(task.namespace, {}).values():
            budget.expected.discard(task.uid)
            budget.healthy.discard(task.uid)


def _facts(budget: Budget) -> tuple[object, ...]:
    return (budget.selector.fact if budget.selector else None, budget.at_least, budget.at_most)


def _set(uids: set[str], uid: str, there: bool) -> None:
    if there:
        uids.add(uid)
    else:
        uids.discard(uid)


def _number(value: int | str, of: int) -> int:
    """A number as it is written, or a part of `of`, rounded up. What cannot be read protects everybody."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return -(-of * int(text) // 100) if value.endswith("%") else int(text)
    return of
