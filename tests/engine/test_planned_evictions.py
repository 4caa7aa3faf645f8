"""What a plan may evict beside what it evicts already: budgets, minima and shares count what is planned (P2)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.eviction.planned_evictions import PlannedEvictions, bound
from enbloc.engine.eviction.rules import ByPriority, ByShare, Rules
from enbloc.engine.eviction.victims import Victims
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import total
from engine.claims.scenes import Scene
from support import manifests as m

BUDGET = m.budget({"app": "a"}, maxUnavailable=1)


def started(*objects: m.Obj) -> list[m.Obj]:
    """The same, their pods on node `n` since a while: budgets count them as available."""
    return [one | {"status": {"startTime": "1970-01-01T00:00:00Z"}} if one["kind"] == "Pod" else one for one in objects]


def runs(name: str, count: int, minimum: int | None = None, **fields: Any) -> list[m.Obj]:
    return started(*m.gang(name, count, minimum, nodeName="n", **fields))


class Planning:
    """A plan for the pod `vip`; gangs run on node `n`, of 8 cpu."""

    def __init__(self, *objects: Any, by_share: bool = False, spared: str = "") -> None:
        vip = m.pod("vip", 1, priority=9, queue="own")
        self.scene = Scene(m.node("n", 8), m.queue("own"), *objects, vip)
        state, evictions = self.scene.state, self.scene.direct.engine.parts.evictions
        unit = [self.scene.gang("vip")]
        self.rules: Rules = ByPriority(evictions, unit, 9, best_effort_only=False)
        if by_share:
            self.rules = ByShare(state, evictions, unit, total([self.scene.task("vip").cls.request]))
        self.transaction = Transaction(state)
        uids = frozenset(self.scene.task(name).uid for name in spared.split())
        self.plan = PlannedEvictions(state, evictions, self.rules, self.transaction, uids)

    def one(self, name: str) -> Victims:
        """A surplus member."""
        return Victims([self.scene.task(name)], whole_gang=False, rank=0)

    def all(self, gang: str) -> Victims:
        return Victims(list(self.scene.gang(gang).tasks.values()), whole_gang=True, rank=0)

    def occupied(self, gang: str) -> int:
        return self.scene.gang(gang).total_occupied

    def used(self, queue: str) -> int:
        """In cores."""
        return int(self.scene.state.queues.get(queue).used[0]) // 1000


def names(units: list[Victims]) -> list[list[str]]:
    return [[task.name for task in unit.tasks] for unit in units]


# ---- what is allowed in addition


def test_p2_a_budget_counts_what_the_plan_evicts() -> None:
    case = Planning(BUDGET, runs("a", 1, labels={"app": "a"}), runs("b", 1, labels={"app": "a"}))
    first, second = case.all("a"), case.all("b")
    assert (case.plan.allow(first), case.plan.allow(second)) == (True, True)
    case.plan.evict(first)
    assert not case.plan.allow(second)
    assert case.plan.is_limited, "another choice could succeed"
    case.plan.spare(first)
    assert case.plan.allow(second)


def test_p2_a_unit_that_no_budget_allows_limits_no_other_choice() -> None:
    case = Planning(BUDGET, runs("a", 2, labels={"app": "a"}))
    assert not case.plan.allow(case.all("a"))
    assert not case.plan.is_limited


def test_p1_surplus_is_allowed_down_to_the_minimum() -> None:
    case = Planning(runs("a", 3, 2))
    case.plan.evict(case.one("a-2"))
    assert not case.plan.allow(case.one("a-1"))
    assert case.plan.is_limited, "another surplus member could have been chosen"


def test_p2_tasks_that_this_try_spares_are_not_evicted() -> None:
    case = Planning(runs("a", 2), runs("b", 1), spared="a-1")
    assert not case.plan.allow(case.all("a"))
    assert case.plan.allow(case.all("b"))
    assert not case.plan.is_limited


# ---- evicted, spared, and back to a mark


def test_a_unit_that_is_spared_is_where_it_was() -> None:
    case = Planning(BUDGET, runs("a", 2, cpu=3))
    case.plan.evict(unit := case.all("a"))
    assert (case.scene.free_cpu("n"), case.plan.tasks, case.occupied("a")) == (8, unit.tasks, 0)
    assert case.plan.rows_of(unit) == [0, 0], "though they are off their node"
    case.plan.spare(unit)
    assert (case.scene.free_cpu("n"), case.plan.tasks, case.occupied("a")) == (2, [], 2)


def test_back_to_a_mark_keeps_what_was_evicted_before_it() -> None:
    labels = {"app": "a"}
    case = Planning(m.budget(labels, maxUnavailable=2), *(runs(name, 1, labels=labels) for name in "abc"))
    case.plan.evict(case.all("a"))
    mark = case.plan.mark()
    case.plan.evict(case.all("b"))
    assert not case.plan.allow(case.all("c"))
    case.plan.back_to(mark)
    assert names(case.plan.units) == [["a-0"]]
    assert case.plan.allow(case.all("c")), "the budget has one left"
    assert case.scene.free_cpu("n") == 6


def test_start_over_evicts_just_these_units() -> None:
    case = Planning(runs("a", 1), runs("b", 1))
    case.plan.evict(case.all("a"))
    case.plan.start_over([case.all("b")])
    assert names(case.plan.units) == [["b-0"]]
    case.plan.start_over()
    assert case.plan.units == []
    assert case.scene.free_cpu("n") == 6


def test_a_gang_that_goes_after_its_surplus_includes_it() -> None:
    """It has one victim more than the unit that is evicted last; other surplus stays by itself."""
    case = Planning(runs("a", 3, 2), runs("b", 2, 1))
    for unit in (case.one("a-2"), case.one("b-1"), case.all("a")):
        case.plan.evict(unit)
    assert names(case.plan.units) == [["a-2"], ["b-1"], ["a-0", "a-1"]]
    assert names(case.plan.closed_units()) == [["a-2"], ["b-1"], ["a-2", "a-0", "a-1"]]
    assert bound(case.all("a")).tasks == []


# ---- assumed while the victims on one row are chosen


def test_p2_an_assumed_unit_counts_for_budgets_until_it_is_spared() -> None:
    case = Planning(BUDGET, runs("a", 1, labels={"app": "a"}), runs("b", 1, labels={"app": "a"}))
    counted = case.plan.assume(case.all("a"))
    assert not case.plan.allow(case.all("b"))
    case.plan.assume_spared(counted)
    case.plan.evict(case.all("b"))
    assert not case.plan.allow(case.all("a")), "it would be evicted in addition"


def test_p1_an_assumed_unit_counts_for_minima_and_stays_on_its_node() -> None:
    case = Planning(runs("a", 3, 2))
    counted = case.plan.assume(case.one("a-2"))
    assert (case.occupied("a"), case.scene.free_cpu("n")) == (2, 5)
    assert not case.plan.allow(case.one("a-1"))
    case.plan.assume_spared(counted)
    assert case.occupied("a") == 3
    assert case.plan.allow(case.one("a-1"))


def test_p2_a_gang_and_its_surplus_are_counted_once() -> None:
    case = Planning(m.budget({"app": "a"}, maxUnavailable=3), runs("a", 3, 2, labels={"app": "a"}))
    case.plan.assume(case.one("a-2"))
    assert case.plan.allow(case.all("a")), "two more, not three"
    counted = case.plan.assume(case.all("a"))
    assert [task.name for task in counted.tasks] == ["a-0", "a-1"]
    assert case.occupied("a") == 0


@pytest.mark.parametrize("by_share", [False, True])
def test_p2_an_assumed_unit_counts_for_the_share_of_its_queue_only_in_reclaim(by_share: bool) -> None:
    case = Planning(m.queue("q"), runs("a", 3, queue="q"), by_share=by_share)
    counted = case.plan.assume(case.all("a"))
    assert case.used("q") == (0 if by_share else 3)
    case.plan.assume_spared(counted)
    assert case.used("q") == 3


def test_p2_a_queue_is_judged_once_before_a_gang_and_its_surplus_leave() -> None:
    """Of 8 cpu each queue deserves 4; `q` uses 5, by a gang of 5. Its surplus is planned first, and with that the queue
    is within its share."""
    demand = [*m.gang("w", 8, queue="own"), *m.gang("x", 8, queue="q")]
    case = Planning(m.queue("q"), demand, runs("a", 5, 4, queue="q"), runs("b", 1, queue="own"), by_share=True)
    assert case.plan.allow(case.one("a-4"))
    case.plan.evict(case.one("a-4"))
    assert case.used("q") == 4
    assert case.plan.allow(bound(case.all("a"))), "it goes with its surplus"
    assert case.used("q") == 4, "nothing is counted in advance"


@pytest.mark.parametrize(
    ("others", "allowed"),
    [
        pytest.param(0, False, id="without it the queue is at its share: the one planned earlier could not leave then"),
        pytest.param(1, True, id="without it the queue is still above its share"),
    ],
)
def test_p2_a_unit_may_leave_before_one_that_was_planned_earlier(others: int, allowed: bool) -> None:
    """The queue deserves 4 cpu; `big`, of 4, is planned, `small` is of 1, and so are others."""
    demand = [*m.gang("w", 8, queue="own"), *m.gang("x", 8, queue="q")]
    running = [runs("small", 1, queue="q"), runs("big", 1, cpu=4, queue="q"), runs("c", others, queue="q")]
    case = Planning(m.queue("q"), demand, *running, by_share=True)
    case.plan.evict(case.all("big"))
    before = case.used("q")
    assert not case.rules.allows(case.all("small").tasks), "after the other"
    assert case.plan.allow(case.all("small")) is allowed
    assert case.used("q") == before, "nothing is counted in advance"
