"""PodDisruptionBudgets: how many of which pods may be evicted (P2).

Counted from the observed pods, as the disruption controller does, and updated pod by pod. They are not checked again
when an eviction is carried out (`runtime/write_plans`).
"""

from __future__ import annotations

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, name_of, namespace_of, selector_of
from enbloc.engine.core.filters.pod_terms import PodSelector
from enbloc.engine.core.filters.stateful.pod_index import PodIndex
from enbloc.engine.core.tables.tasks import Task, TaskStatus

KIND = "PodDisruptionBudget.policy"
_FINISHED = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})

Key = tuple[str, str]
"""Namespace and name."""


class Budget:
    """One budget, and the pods that it selects."""

    __slots__ = ("expected", "healthy", "max_unavailable", "min_available", "pods")

    def __init__(self, pods: PodSelector, min_available: int | str | None, max_unavailable: int | str | None) -> None:
        """Both as in the manifest: a number, or a percentage such as `50%`."""
        self.pods = pods
        self.min_available = min_available
        self.max_unavailable = max_unavailable
        self.expected: set[str] = set()
        self.healthy: set[str] = set()

    def update(self, task: Task) -> bool:
        """A pod was added, or its status changed. Returns whether the counts changed."""
        counts = self.pods.matches(task) and task.status not in _FINISHED
        healthy = counts and task.status is TaskStatus.BOUND and task.since_ns is not None
        return any([_set(self.expected, task.uid, counts), _set(self.healthy, task.uid, healthy)])

    def remove(self, task: Task) -> bool:
        """A pod was deleted. Returns whether the counts changed."""
        return any([_set(self.expected, task.uid, False), _set(self.healthy, task.uid, False)])

    def allowed(self) -> int:
        """How many pods may be evicted (`disruptionsAllowed`); below 0: more are unavailable than may be."""
        expected, healthy = len(self.expected), len(self.healthy)
        if self.max_unavailable is not None:
            return healthy - (expected - _number(self.max_unavailable, expected))
        return healthy - _number(self.min_available if self.min_available is not None else 1, expected)


class Budgets:
    """All budgets. A pod is matched only against those that its labels lead to (see `pod_index`)."""

    def __init__(self) -> None:
        self._known: dict[Key, Budget] = {}
        self._index: PodIndex[Budget] = PodIndex()
        self.version = 0
        """Increases whenever a budget may allow more or fewer evictions."""

    def __bool__(self) -> bool:
        return bool(self._known)

    def put(self, obj: Obj) -> Budget | None:
        """A budget was created or changed. Returns it if it has to count all pods anew, else `None`."""
        spec = view(obj, core.PodDisruptionBudget).spec
        try:
            selector = selector_of(spec.selector)
        except ValueError:
            selector = None  # an API server refuses such a selector
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

    # ---- pods: their labels are the same until they are removed

    def update_pod(self, task: Task) -> None:
        """A pod was added, or its status changed."""
        if self._known:
            for budget in self._index.lookup(task):
                self.version += budget.update(task)

    def remove_pod(self, task: Task) -> None:
        if self._known:
            for budget in self._index.lookup(task):
                self.version += budget.remove(task)


def _facts(budget: Budget) -> tuple[object, ...]:
    return (budget.pods.key, budget.min_available, budget.max_unavailable)


def _set(uids: set[str], uid: str, member: bool) -> bool:
    """Returns whether the set changed."""
    if (uid in uids) is member:
        return False
    if member:
        uids.add(uid)
    else:
        uids.discard(uid)
    return True


def _number(value: int | str, of: int) -> int:
    """A number, or a percentage of `of`, rounded up. A malformed value protects all pods."""
    if isinstance(value, int):
        return value
    text = value.removesuffix("%")
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return -(-of * int(text) // 100) if value.endswith("%") else int(text)
    return of
