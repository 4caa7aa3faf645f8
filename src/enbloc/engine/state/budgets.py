"""PodDisruptionBudgets: how many of which pods may be evicted (P2).

Counted from the pods that we know, as the disruption controller does, and kept up pod by pod. Nobody counts again when
an eviction is carried out (`docs/decisions/0030-eviction-is-a-deletion-with-a-condition.md`).
"""

from __future__ import annotations

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, name_of, namespace_of, selector_of
from enbloc.engine.filters.pod_terms import PodSelector
from enbloc.engine.filters.stateful.pod_index import PodIndex
from enbloc.engine.tables.tasks import Task, TaskStatus

KIND = "PodDisruptionBudget.policy"
_GONE = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})

Key = tuple[str, str]
"""Namespace and name."""


class Budget:
    """One budget, and the pods that it is about."""

    __slots__ = ("at_least", "at_most", "expected", "healthy", "pods")

    def __init__(self, pods: PodSelector, at_least: int | str | None, at_most: int | str | None) -> None:
        self.pods = pods
        self.at_least = at_least
        """So many stay healthy: a number, or a part of them such as `50%`."""
        self.at_most = at_most
        """So many may be away."""
        self.expected: set[str] = set()
        self.healthy: set[str] = set()

    def see(self, task: Task) -> bool:
        """A pod is there, and stands as it does. Says whether that is news."""
        counts = self.pods.matches(task) and task.status not in _GONE
        healthy = counts and task.status is TaskStatus.BOUND and task.since is not None
        return any([_set(self.expected, task.uid, counts), _set(self.healthy, task.uid, healthy)])

    def forget(self, task: Task) -> bool:
        return any([_set(self.expected, task.uid, False), _set(self.healthy, task.uid, False)])

    def allowed(self) -> int:
        """How many may be evicted now; below 0: more are away than may be."""
        expected, healthy = len(self.expected), len(self.healthy)
        if self.at_most is not None:
            return healthy - (expected - _number(self.at_most, expected))
        return healthy - _number(self.at_least if self.at_least is not None else 1, expected)


class Budgets:
    """All budgets. A pod meets only those that its labels lead to (see `pod_index`), however many there are."""

    def __init__(self) -> None:
        self._known: dict[Key, Budget] = {}
        self._index: PodIndex[Budget] = PodIndex()
        self.version = 0
        """Goes up whenever they may allow something else."""

    def __bool__(self) -> bool:
        return bool(self._known)

    def put(self, obj: Obj) -> Budget | None:
        """A budget came or changed. Returns it if all pods of its namespace are to be shown to it."""
        spec = view(obj, core.PodDisruptionBudget).spec
        try:
            selector = selector_of(spec.selector)
        except ValueError:
            selector = None  # no API server takes such a selector
        pods = PodSelector(selector, frozenset({namespace_of(obj)}))
        budget = Budget(pods, spec.min_available, spec.max_unavailable)
        key = (namespace_of(obj), name_of(obj))
        before = self._known.get(key)
        if before is not None and _facts(before) == _facts(budget):
            return None
        self._drop(key)
        self._known[key] = budget
        self._index.put(key, pods.namespaces, pods.anchor, budget)
        self.version += 1
        return budget

    def remove(self, obj: Obj) -> None:
        self._drop((namespace_of(obj), name_of(obj)))
        self.version += 1

    def _drop(self, key: Key) -> None:
        budget = self._known.pop(key, None)
        if budget is not None:
            self._index.remove(key, budget.pods.namespaces, budget.pods.anchor)

    def of(self, task: Task) -> list[Budget]:
        return [budget for budget in self._index.lookup(task) if budget.pods.matches(task)]

    # ---- pods: their labels are the same until they are forgotten

    def see(self, task: Task) -> None:
        """A pod is there, and stands as it does."""
        if self._known:
            for budget in self._index.lookup(task):
                self.version += budget.see(task)

    def forget(self, task: Task) -> None:
        if self._known:
            for budget in self._index.lookup(task):
                self.version += budget.forget(task)


def _facts(budget: Budget) -> tuple[object, ...]:
    return (budget.pods.key, budget.at_least, budget.at_most)


def _set(uids: set[str], uid: str, there: bool) -> bool:
    """Says whether that is news."""
    if (uid in uids) is there:
        return False
    if there:
        uids.add(uid)
    else:
        uids.discard(uid)
    return True


def _number(value: int | str, of: int) -> int:
    """A number as it is written, or a part of `of`, rounded up. What cannot be read protects everybody."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return -(-of * int(text) // 100) if value.endswith("%") else int(text)
    return of
