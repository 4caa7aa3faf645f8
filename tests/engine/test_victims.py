"""The units that a plan may evict, their order and cost, and the rows that are examined for them (P1, P2, K7)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import msgspec
import pytest

from enbloc.config import parse
from enbloc.engine.eviction.evictable import Cell
from enbloc.engine.eviction.victims import SHORTLIST, Offer, Shortlist, VictimCandidates, Victims, cost, disruption
from enbloc.engine.tables.tasks import GangState
from support import manifests as m
from support.direct_scheduler import DirectScheduler
from support.simulation import flat

LOW: Cell = ("default", 0)
OTHER: Cell = ("other", 0)
SURPLUS = [["a-2"], ["a-1"], ["a-0"]]
"""Any one pod of a gang with one more than it needs, the last in order first."""


class Running:
    """Gangs whose pods run on node `n`; a pod `vip` waits."""

    def __init__(self, *objects: Any) -> None:
        self.direct = DirectScheduler(parse(None))
        for created_s, one in enumerate(flat(m.node("n", 99), m.queue("other"), *objects, m.pod("vip", 1, priority=9))):
            self.direct.put(one, created_s)
        self.state, self.parts = self.direct.engine.state, self.direct.engine.parts
        self.state.settle()
        self.parts.groups.settle(self.state.dirty.values())

    def gang(self, name: str) -> GangState:
        return next(gang for gang in self.state.gangs.values() if gang.spec.title.endswith(f"/{name}"))

    def candidates(self, *cells: Cell, surplus_only: Collection[Cell] = ()) -> VictimCandidates:
        """Cells in the order in which victims are taken."""
        ranks = {cell: rank for rank, cell in enumerate(cells)}
        return VictimCandidates(self.state, self.parts.evictions, self.parts.groups, ranks, surplus_only)


def names(units: list[Victims]) -> list[list[str]]:
    return [sorted(task.name for task in unit.tasks) for unit in units]


def runs(name: str, count: int, minimum: int | None = None, **fields: Any) -> list[m.Obj]:
    return m.gang(name, count, minimum, nodeName="n", **fields)


def started_together(*queues: str) -> list[m.Obj]:
    """Gangs `g0`, `g1` … of one pod each, in these queues, that start and end together."""
    together = [f"default/g{index}" for index in range(len(queues))]
    return [
        one
        for index, queue in enumerate(queues)
        for one in m.koordinator_gang(f"g{index}", 1, groups=together, queue=queue, nodeName="n")
    ]


def test_p1_surplus_goes_pod_by_pod_and_then_the_gang_as_a_whole() -> None:
    running = Running(runs("a", 3, 2), runs("b", 2))
    found = running.candidates(LOW).all(running.gang("vip"))
    assert names(found) == [*SURPLUS, ["b-0", "b-1"], ["a-0", "a-1", "a-2"]]
    assert [unit.whole_gang for unit in found] == [False, False, False, True, True]
    assert names(running.candidates(LOW).on_row(0, running.gang("vip"))) == [["b-0", "b-1"], *SURPLUS]


def test_p1_victims_are_taken_by_rank_whatever_their_order() -> None:
    running = Running(runs("old", 1, queue="other"), runs("young", 1))
    vip = running.gang("vip")
    assert names(running.candidates(LOW, OTHER).all(vip)) == [["young-0"], ["old-0"]]
    assert names(running.candidates(OTHER, LOW).all(vip)) == [["old-0"], ["young-0"]]
    assert names(running.candidates(LOW).all(vip)) == [["young-0"]]


def test_p2_a_cell_of_which_only_surplus_may_be_evicted() -> None:
    running = Running(runs("a", 3, 2), runs("b", 2))
    vip = running.gang("vip")
    assert names(running.candidates(LOW, surplus_only=[LOW]).all(vip)) == SURPLUS
    assert names(running.candidates(LOW, OTHER, surplus_only=[OTHER]).all(vip)) == [
        *SURPLUS, ["b-0", "b-1"], ["a-0", "a-1", "a-2"],
    ]  # fmt: skip


def test_k7_gangs_that_started_together_are_evicted_together() -> None:
    running = Running(started_together("default", "other"))
    vip = running.gang("vip")
    assert names(running.candidates(LOW, OTHER).all(vip)) == [["g0-0", "g1-0"]]
    assert [unit.rank for unit in running.candidates(LOW, OTHER).all(vip)] == [1]
    assert running.candidates(LOW).all(vip) == [], "one of them is in a queue of which none may be evicted"
    assert running.candidates(LOW, OTHER, surplus_only=[OTHER]).all(vip) == []
    assert running.candidates(LOW, OTHER, surplus_only=[LOW]).all(vip) == []


def test_k7_a_gang_without_bound_pods_does_not_protect_the_others() -> None:
    together = ["default/g0", "default/g1"]
    waits = m.koordinator_gang("g1", 1, groups=together, queue="other")
    running = Running(m.koordinator_gang("g0", 1, groups=together, nodeName="n"), waits)
    assert names(running.candidates(LOW).all(running.gang("vip"))) == [["g0-0"]]


def test_p2_a_member_that_may_not_be_evicted_protects_its_gang() -> None:
    protected = {"annotations": {"volcano.sh/preemptable": "false"}}
    group, first, second = runs("a", 2)
    second["metadata"]["annotations"] |= protected["annotations"]
    running = Running(group, first, second, runs("b", 1))
    assert names(running.candidates(LOW).all(running.gang("vip"))) == [["b-0"]]


@pytest.mark.parametrize(
    ("minimum", "roles", "expected"),
    [
        pytest.param(1, {}, [["a-0"]], id="a minimum"),
        pytest.param(0, {"w": 1}, [["a-0"]], id="a minimum of a role"),
        pytest.param(0, {"m": 1}, [["a-0"], ["a-0"]], id="a minimum of another role"),
        pytest.param(0, {"w": 0}, [["a-0"]], id="none: each pod goes for itself"),
    ],
)
def test_p1_what_makes_a_gang_a_whole(minimum: int, roles: dict[str, int], expected: list[list[str]]) -> None:
    running = Running(m.podgroup("a", 1), m.pod("a-0", group="a", role="w", nodeName="n"))
    gang = running.gang("a")
    gang.spec = msgspec.structs.replace(gang.spec, minimum=minimum, minima=roles)
    found = running.candidates(LOW).all(running.gang("vip"))
    assert names(found) == expected
    assert any(unit.whole_gang for unit in found) is (minimum > 0 or any(roles.values()))


def test_p2_a_surplus_pod_that_may_not_be_evicted_stays() -> None:
    group, *pods = runs("a", 3, 1)
    pods[2]["metadata"]["annotations"] |= {"volcano.sh/preemptable": "false"}
    running = Running(group, pods)
    assert names(running.candidates(LOW).all(running.gang("vip"))) == [["a-1"], ["a-0"]]


def test_p2_pods_of_other_cells_on_a_row_stay() -> None:
    running = Running(runs("a", 1), runs("b", 1, queue="other"), runs("c", 1, priority=5), m.pod("d"))
    vip = running.gang("vip")
    assert names(running.candidates(LOW).on_row(0, vip)) == [["a-0"]]
    assert names(running.candidates(("default", 5)).on_row(0, vip)) == [["c-0"]]


def test_p2_a_pod_whose_eviction_was_refused_stays_for_a_while() -> None:
    running = Running(runs("a", 1), runs("b", 1))
    (refused,) = running.gang("b").tasks
    running.parts.evictions.refused(refused)
    assert names(running.candidates(LOW).all(running.gang("vip"))) == [["a-0"]]


def test_p1_a_gang_evicts_neither_itself_nor_gangs_that_it_needs() -> None:
    running = Running(runs("a", 2, 1), started_together("default", "default"))
    assert names(running.candidates(LOW).all(running.gang("a"))) == [["g0-0", "g1-0"]]
    assert names(running.candidates(LOW).all(running.gang("g0"))) == [["a-1"], ["a-0"], ["a-0", "a-1"]]


def test_p1_units_of_its_own_queue() -> None:
    running = Running(runs("a", 1), runs("b", 1, queue="other"))
    assert names(running.candidates(LOW, OTHER).of_queue(running.gang("vip"))) == [["a-0"]]


def test_p1_a_whole_gang_is_counted_anew_when_it_changes() -> None:
    running = Running(runs("a", 2))
    candidates, vip = running.candidates(LOW), running.gang("vip")
    assert names(candidates.all(vip)) == [["a-0", "a-1"]]
    running.direct.delete("Pod", "a-1")
    assert names(candidates.all(vip)) == [["a-0"]]


def test_p1_what_is_disruptive() -> None:
    """Rank, then whole gangs, then surplus out of order, then more pods, then older gangs."""
    running = Running(runs("old", 2), runs("young", 2))
    old, young = (list(running.gang(name).tasks.values()) for name in ("old", "young"))
    cheapest_first = [
        Victims(young[:1], False, 0),
        Victims(old[:1], False, 0),
        Victims(old, False, 0),
        Victims(young[:1], False, 0, skips=1),
        Victims(young[:1], True, 0),
        Victims(young[:1], False, 1),
    ]
    last_first = cheapest_first[::-1]
    assert sorted(last_first, key=disruption) == cheapest_first
    sets = [[], *([unit] for unit in cheapest_first)]
    assert sorted(sets, key=cost)[-1] == [cheapest_first[-1]]
    young_one, old_one, two, skipping, whole, _ = cheapest_first
    assert cost([young_one]) < cost([old_one]) < cost([skipping]) < cost([two]) < cost([whole])
    assert cost([old_one, skipping]) == (0, 0, 2, 1, -running.gang("old").spec.created_ns)


# ---- rows


def offer(row: int, price: int, valid_for: object = 0) -> Offer:
    return Offer((price,), row, [], valid_for)


def examined(prices: dict[int, int]) -> tuple[Callable[[int], Offer | None], list[int]]:
    """Offers at these prices; rows without one are of no use. And the rows that were examined."""
    seen: list[int] = []

    def examine(row: int) -> Offer | None:
        seen.append(row)
        return offer(row, prices[row]) if row in prices else None

    return examine, seen


def best_rows(shortlist: Shortlist, examine: Any, count: int, facts: Any = lambda row, victims: 0) -> list[int | None]:
    found = [shortlist.best(examine, facts) for _ in range(count)]
    return [one.row if one is not None else None for one in found]


def test_the_cheapest_row_of_the_shortlist_comes_first() -> None:
    examine, seen = examined({0: 5, 1: 3, 2: 3, 4: 1})
    assert best_rows(Shortlist([0, 1, 2, 3, 4]), examine, 4) == [4, 1, 2, 0]
    assert seen == [0, 1, 2, 3, 4]


def test_rows_are_examined_only_as_far_ahead_as_the_shortlist_is_long() -> None:
    examine, seen = examined(dict.fromkeys(range(99), 1))
    shortlist = Shortlist(list(range(99)))
    assert best_rows(shortlist, examine, 1) == [0]
    assert seen == list(range(SHORTLIST))
    assert best_rows(shortlist, examine, 1) == [1]
    assert seen == list(range(SHORTLIST + 1))


def test_rows_on_which_room_was_made_are_examined_again_when_there_are_no_others() -> None:
    prices = {0: 1, 1: 2}
    examine, _ = examined(prices)
    shortlist = Shortlist([0, 1])
    assert best_rows(shortlist, examine, 3) == [0, 1, 0]
    prices.clear()
    assert best_rows(shortlist, examine, 2) == [1, None]  # row 1 is in the list; row 0 is of no use any more


@pytest.mark.parametrize(("now", "rows"), [({0: 1, 1: 2}, [0, 1]), ({0: 3, 1: 2}, [1, 0]), ({1: 2}, [1, 1])])
def test_an_offer_is_examined_again_if_its_facts_changed(now: dict[int, int], rows: list[int | None]) -> None:
    prices = {0: 1, 1: 2}
    examine, _ = examined(prices)
    shortlist = Shortlist([0, 1])
    shortlist._fill(examine, shortlist._rows)
    prices.clear()
    prices.update(now)
    assert best_rows(shortlist, examine, 2, lambda row, victims: 1 if row == 0 else 0) == rows
