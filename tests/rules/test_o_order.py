"""O1–O4: the order of a gang's tasks, seen by what is bound when room is short, and by the order of bindings."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.tables.tasks import GangState, Task
from support import manifests as m
from support.simulation import simulate


def two_roles(priorities: bool) -> list[m.Obj]:
    high, low = ("high", "low") if priorities else (None, None)
    return [*m.HIGH_LOW, m.job("j", m.role("master", 5, 3, priority=high), m.role("work", 3, 2, priority=low))]


def bound_with(cpu: int, docs: Iterable[m.Obj]) -> set[str]:
    return {name.removeprefix("j-") for name in simulate(m.node("n", cpu), docs).bound("j-")}


WITH_PRIORITY = ["master-0", "master-1", "master-2", "work-0", "work-1", "master-3", "master-4", "work-2"]
WITHOUT = ["master-0", "work-0", "master-1", "work-1", "master-2", "work-2", "master-3", "master-4"]


@pytest.mark.parametrize("priorities, order", [(True, WITH_PRIORITY), (False, WITHOUT)])
def test_o3_the_examples_hold(priorities: bool, order: list[str]) -> None:
    docs = two_roles(priorities)
    answer = simulate(m.node("n", 8), docs)
    assert [name.removeprefix("j-") for name in answer.order("j-")] == order
    assert bound_with(4, docs) == set()
    for cpu in (5, 6, 7):
        assert bound_with(cpu, docs) == set(order[:cpu])


def test_o1_still_needed_means_less_what_is_occupied() -> None:
    """Two masters of three are lost, no worker: masters come first although workers have lower indexes."""
    docs = [m.node("n", 8), m.job("j", m.role("master", 3, 3), m.role("work", 5, 2))]
    losses = [
        m.step("10s", "delete", "Pod", f"j-{name}") for name in ("master-1", "master-2", "work-0", "work-1", "work-2")
    ]
    answer = simulate(docs, losses, m.pod("squatter", 3, nodeName="n", at="10s"))
    assert answer.order("j-")[8:] == ["j-master-1", "j-master-2"]


def test_o1_succeeded_tasks_are_not_needed_again() -> None:
    group = m.podgroup("a", 3, roles={"x": 1, "y": 2})
    done = m.pod("x-9", group="a", role="x", nodeName="n", run_time="1s")
    waiting = [
        m.pod("x-0", group="a", role="x", at="5s"),
        *(m.pod(f"y-{i}", group="a", role="y", at="5s") for i in (5, 6)),
    ]
    answer = simulate(m.node("n", 2), group, done, waiting)
    assert answer.order()[-2:] == ["y-5", "y-6"]


def members(*names: str, **more: str) -> list[m.Obj]:
    return [m.podgroup("a", 1), *(m.pod(name, group="a", **more) for name in names)]  # type: ignore[arg-type]


def test_o2_higher_priority_first() -> None:
    docs = [m.podgroup("a", 1), m.pod("a-0", group="a", priority="low"), m.pod("a-1", group="a", priority="high")]
    assert simulate(m.HIGH_LOW, m.node("n", 1), docs).order() == ["a-1"]


def test_o2_then_the_lower_index_by_number_not_by_text() -> None:
    answer = simulate(m.node("n", 9), members("a-10", "b-2", "c-1"))
    assert answer.order() == ["c-1", "b-2", "a-10"]


def test_o2_the_index_comes_from_the_label_before_the_name() -> None:
    docs = [
        m.podgroup("a", 1),
        m.pod("a-1", group="a", labels={"volcano.sh/task-index": "7"}),
        m.pod("a-9", group="a", labels={"volcano.sh/task-index": "3"}),
        m.pod("a-5", group="a"),
    ]
    assert simulate(m.node("n", 9), docs).order() == ["a-9", "a-5", "a-1"]


def test_o2_names_without_a_number_come_last() -> None:
    assert simulate(m.node("n", 9), members("aaa", "b-7", "abc")).order() == ["b-7", "aaa", "abc"]


def test_o2_then_the_older_then_the_name() -> None:
    hold = m.pod("z", 9, nodeName="n", delete_at="9s")
    docs = [
        m.podgroup("a", 1),
        m.pod("c-1", group="a", at="2s"),
        m.pod("b-1", group="a", at="2s"),
        m.pod("d-1", group="a", at="1s"),
    ]
    assert simulate(m.node("n", 9), hold, docs).order("")[1:] == ["d-1", "b-1", "c-1"]


def test_o2_a_bad_index_label_counts_as_none() -> None:
    docs = [
        m.podgroup("a", 1),
        m.pod("a-2", group="a", labels={"volcano.sh/task-index": "first"}),
        m.pod("a-1", group="a", labels={"volcano.sh/task-index": "-5"}),
    ]
    assert simulate(m.node("n", 9), docs).order() == ["a-1", "a-2"]


def test_o2_the_same_on_every_run_and_after_a_restart() -> None:
    names = ["a-3", "b-1", "x", "a-1", "y", "c-2"]
    hold = m.pod("z", 9, nodeName="n", delete_at="9s")
    orders = set()
    for order in itertools.islice(itertools.permutations(names), 0, 720, 97):
        for more in ([], [m.restart("5s")]):
            orders.add(tuple(simulate(m.node("n", 9), hold, members(*order), more).order()[1:]))
    assert orders == {("a-1", "b-1", "c-2", "a-3", "x", "y")}


def test_o4_comparing_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order is asked twice at every turn: both times it is the same, and nothing has moved in between."""
    seen = []

    def twice(gang: GangState, pending: list[Task] | None = None, **choice: Any) -> PlacementRequest:
        facts = (dict(gang.occupied), dict(gang.pending), [task.order for task in gang.tasks.values()])
        first, second = request_of(gang, pending, **choice), request_of(gang, pending, **choice)
        assert first == second
        assert facts == (dict(gang.occupied), dict(gang.pending), [task.order for task in gang.tasks.values()])
        seen.append(gang)
        return first

    monkeypatch.setattr("enbloc.engine.core.cycle.request_of", twice)
    monkeypatch.setattr("enbloc.engine.core.intake.request_of", twice)
    answer = simulate(m.node("n", 8), two_roles(False))
    assert seen
    assert [name.removeprefix("j-") for name in answer.order("j-")] == WITHOUT
