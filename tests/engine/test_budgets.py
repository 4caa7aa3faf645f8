"""PodDisruptionBudgets: which pods each counts, and how many may be evicted (P2)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.core.state.budgets import Budget, Budgets
from enbloc.engine.core.tables.tasks import Task, TaskStatus
from engine import gang_states
from support import manifests as m


def pdb(name: str = "b", namespace: str = "ns", app: str | None = "a", **spec: Any) -> m.Obj:
    """A budget of the pods with this label; `app=None`: without a selector."""
    selector = {} if app is None else {"selector": {"matchLabels": {"app": app}}}
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": m.metadata(name, namespace)}
    return {**made, "spec": {**selector, **spec}}


def pod(name: str = "p", status: TaskStatus = TaskStatus.BOUND, app: str = "a", since_ns: int | None = 0) -> Task:
    return gang_states.task(gang_states.gang(), name, labels={"app": app}, status=status, node="n", since_ns=since_ns)


def budget(*pods: Task, **spec: Any) -> Budget:
    found = Budgets().put(pdb(**spec))
    assert found is not None
    for one in pods:
        found.update(one)
    return found


@pytest.mark.parametrize(
    ("one", "expected", "healthy"),
    [
        (pod(), 1, 1),
        (pod(since_ns=None), 1, 0),  # it does not run yet
        (pod(status=TaskStatus.PENDING), 1, 0),
        (pod(status=TaskStatus.RELEASING), 1, 0),
        (pod(status=TaskStatus.ASSUMED), 1, 0),
        (pod(status=TaskStatus.SUCCEEDED), 0, 0),
        (pod(status=TaskStatus.FAILED), 0, 0),
        (pod(app="other"), 0, 0),
    ],
)
def test_p2_which_pods_a_budget_counts(one: Task, expected: int, healthy: int) -> None:
    found = budget(one)
    assert (len(found.expected), len(found.healthy)) == (expected, healthy)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 3}, 0),
        ({"minAvailable": 1}, 2),
        ({"minAvailable": 5}, -2),
        ({"minAvailable": 0}, 3),
        ({"minAvailable": "50%"}, 1),
        ({"minAvailable": "26%"}, 1),  # rounded up
        ({"minAvailable": "25%"}, 2),
        ({"minAvailable": "100%"}, -1),
        ({"minAvailable": "2"}, 1),
        ({"maxUnavailable": 1}, 0),
        ({"maxUnavailable": 2}, 1),
        ({"maxUnavailable": 0}, -1),
        ({"maxUnavailable": "50%"}, 1),
        ({"maxUnavailable": "1%"}, 0),
        ({}, 2),  # one stays
        ({"minAvailable": "half"}, -1),  # malformed: all are protected
        ({"minAvailable": "-5%"}, -1),
        ({"minAvailable": "1234567890"}, -1),
    ],
)
def test_p2_how_many_of_four_pods_may_be_evicted_of_which_three_run(spec: dict[str, Any], allowed: int) -> None:
    running = [pod(f"p{number}") for number in range(3)]
    assert budget(*running, pod("waits", TaskStatus.PENDING), **spec).allowed() == allowed


def test_p2_budgets_follow_pods_and_increase_their_version_when_counts_change() -> None:
    budgets = Budgets()
    assert not budgets
    found = budgets.put(pdb(minAvailable=1))
    assert found is not None
    assert budgets
    one = pod()
    update, remove = budgets.update_pod, budgets.remove_pod
    for change, changes in ((update, True), (update, False), (remove, True), (remove, False)):
        before = budgets.version
        change(one)
        assert (budgets.version > before) is changes
    assert (found.expected, found.healthy) == (set(), set())
    before = budgets.version
    budgets.update_pod(pod(app="other"))
    assert budgets.version == before


def test_p2_a_pod_that_is_not_healthy_any_more_counts_as_unavailable() -> None:
    budgets, one = Budgets(), pod()
    found = budgets.put(pdb(minAvailable=1))
    assert found is not None
    budgets.update_pod(one)
    assert found.allowed() == 0
    one.status = TaskStatus.RELEASING
    before = budgets.version
    budgets.update_pod(one)
    assert (found.allowed(), budgets.version > before) == (-1, True)


@pytest.mark.parametrize(
    ("second", "is_new"),
    [
        (pdb(minAvailable=1), False),
        (pdb(minAvailable=2), True),
        (pdb(maxUnavailable=1), True),
        (pdb(app="other", minAvailable=1), True),
    ],
)
def test_p2_a_budget_that_changed_counts_anew(second: m.Obj, is_new: bool) -> None:
    budgets = Budgets()
    first, before = budgets.put(pdb(minAvailable=1)), budgets.version
    again = budgets.put(second)
    assert (again is not None, budgets.version > before) == (is_new, is_new)
    assert budgets.of(pod()) == ([first] if not is_new else [again] if second["spec"].get("selector") == APP else [])


APP = {"matchLabels": {"app": "a"}}


def test_p2_a_budget_that_is_gone_protects_nothing() -> None:
    budgets = Budgets()
    budgets.put(pdb("one"))
    budgets.put(pdb("two"))
    before = budgets.version
    budgets.remove(pdb("one"))
    assert budgets.version > before
    assert len(budgets.of(pod())) == 1
    budgets.remove(pdb("two"))
    assert budgets.of(pod()) == []
    assert not budgets


@pytest.mark.parametrize(
    ("spec", "selects"),
    [
        ({}, True),
        ({"namespace": "other"}, False),
        ({"app": None}, False),
        ({"app": None, "selector": {}}, True),
        ({"app": None, "selector": {"matchExpressions": [{"key": "x", "operator": "Bad"}]}}, False),
    ],
)
def test_p2_the_pods_that_a_budget_selects(spec: dict[str, Any], selects: bool) -> None:
    budgets = Budgets()
    budgets.put(pdb(**spec))
    assert bool(budgets.of(pod())) is selects
