"""The arithmetic of queues: who deserves how much, what counts where, and what is kept for whom (V4, G8)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.tables.queues import ABSENT_BOUND, ROOT, QueueFacts, QueueTree
from enbloc.engine.core.tables.resources import CEILING, CPU, MEMORY, PODS, Ints, Resources
from enbloc.units import NANO

MILLI = 10**6
GPU = PODS + 1
"""The first column after those that every node has."""


def cpus(amount: int) -> dict[str, int]:
    """So many thousandths of a CPU, as a user's figure."""
    return {"cpu": amount * MILLI}


def tree(*facts: QueueFacts, demand: Mapping[str, int] | None = None) -> QueueTree:
    """Queues under a root, each asking for so many thousandths of a CPU."""
    found = QueueTree(Resources())
    for each in (QueueFacts(ROOT), *facts):
        found.put(each)
    for name, amount in (demand or {}).items():
        found.add_demand(found.get(name), {CPU: amount})
    return found


def vector(cpu: int, memory: int = 0) -> Ints:
    return np.array([cpu, memory, 0], np.int64)


def deserved(queues: QueueTree, cpu: int) -> dict[str, int]:
    queues.order(queues.get(ROOT), vector(cpu))
    return {name: int(queue.deserved[CPU]) for name, queue in queues.queues.items() if name != ROOT}


# ---- shares by weight


@pytest.mark.parametrize(
    "weights, demand, pool, shares",
    [
        ({"a": 1, "b": 1}, {"a": 99, "b": 99}, 60, {"a": 30, "b": 30}),
        ({"a": 1, "b": 2}, {"a": 99, "b": 99}, 60, {"a": 20, "b": 40}),
        ({"a": 1, "b": 2}, {"a": 99, "b": 10}, 60, {"a": 50, "b": 10}),  # what one does not want goes to the other
        ({"a": 1, "b": 2}, {"a": 5, "b": 10}, 60, {"a": 5, "b": 10}),  # a queue deserves at most its demand
        ({"a": 1, "b": 2}, {"a": 99}, 60, {"a": 60, "b": 0}),  # without demand no share
        ({"a": 1, "b": 1, "c": 2}, {"a": 5, "b": 99, "c": 99}, 50, {"a": 5, "b": 15, "c": 30}),
        ({"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 12, "c": 99}, 31, {"a": 1, "b": 12, "c": 18}),  # in three rounds
        ({"a": 3, "b": 7}, {"a": 99, "b": 99}, 1, {"a": 0, "b": 0}),  # rounded down
        ({"a": 1, "b": 1}, {"a": 99, "b": 99}, 0, {"a": 0, "b": 0}),
    ],
)
def test_v4_shares_by_weight(
    weights: dict[str, int], demand: dict[str, int], pool: int, shares: dict[str, int]
) -> None:
    queues = tree(*(QueueFacts(name, weight) for name, weight in weights.items()), demand=demand)
    assert deserved(queues, pool) == shares


def test_v4_a_capability_bounds_a_share() -> None:
    queues = tree(QueueFacts("a", capability=cpus(10)), QueueFacts("b"), demand={"a": 99, "b": 99})
    assert deserved(queues, 60) == {"a": 10, "b": 50}


def test_v4_a_guarantee_is_deserved_whether_asked_for_or_not() -> None:
    queues = tree(QueueFacts("a", guarantee=cpus(25)), QueueFacts("b"), demand={"b": 99})
    assert deserved(queues, 60)["a"] == 25


def test_v4_shares_go_down_the_tree() -> None:
    queues = tree(
        QueueFacts("dev", 1),
        QueueFacts("prod", 3),
        QueueFacts("a", 1, parent="prod"),
        QueueFacts("b", 2, parent="prod"),
        demand={"dev": 999, "a": 999, "b": 999},
    )
    assert deserved(queues, 400) == {"dev": 100, "prod": 300, "a": 100, "b": 200}


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 200), st.none() | st.integers(0, 100)), min_size=1, max_size=6
    ),
    st.integers(0, 400),
)
def test_v4_water_filling(queues: list[tuple[int, int, int | None]], pool: int) -> None:
    """At most its demand for each queue; all is divided or all demands are met; an unmet queue is not behind others."""
    names = [f"q{position}" for position in range(len(queues))]
    made = tree(
        *(
            QueueFacts(name, weight, capability={} if cap is None else cpus(cap))
            for name, (weight, _, cap) in zip(names, queues, strict=True)
        ),
        demand={name: want for name, (_, want, _) in zip(names, queues, strict=True)},
    )
    shares = deserved(made, pool)
    wants = [min(want, want if cap is None else cap) for _, want, cap in queues]
    got = [shares[name] for name in names]
    assert all(share <= want for share, want in zip(got, wants, strict=True))
    assert sum(got) <= pool
    assert sum(got) > min(pool, sum(wants)) - len(queues)  # less than one unit each is lost to rounding
    levels = [Fraction(share, weight) for share, (weight, _, _) in zip(got, queues, strict=True)]
    for share, want, (weight, _, _) in zip(got, wants, queues, strict=True):
        if share < want:
            assert all(Fraction(share + 1, weight) >= level for level in levels)


# ---- shares as they are written


def test_v4_shares_go_by_deserved_where_any_queue_sets_it() -> None:
    queues = tree(QueueFacts("a", 9, deserved=cpus(20)), QueueFacts("b", 1), demand={"a": 99, "b": 99})
    assert deserved(queues, 60) == {"a": 20, "b": 0}


def test_v4_a_parent_that_says_nothing_deserves_what_its_children_do() -> None:
    queues = tree(
        QueueFacts("p"),
        QueueFacts("a", parent="p", deserved=cpus(20)),
        QueueFacts("b", parent="p", deserved=cpus(5), guarantee=cpus(7)),
    )
    assert deserved(queues, 60) == {"p": 27, "a": 20, "b": 7}


def test_v4_a_parent_that_says_nothing_has_a_share_of_all_that_its_children_name() -> None:
    queues = tree(
        QueueFacts("p"),
        QueueFacts("a", parent="p", deserved=cpus(20)),
        QueueFacts("b", parent="p"),
        QueueFacts("c", parent="p", deserved={"memory": 10 * NANO}),
        QueueFacts("d", parent="p"),
    )
    for name, amounts in {"a": (10, 1), "c": (1, 9)}.items():
        queues.allocate(queues.get(name), ((CPU, amounts[0]), (MEMORY, amounts[1]), (GPU, 99)))
    deserved(queues, 60)
    columns = {name: queues.get(name).share_columns for name in "pabcd"}
    assert columns == {"p": {CPU, MEMORY}, "a": {CPU}, "b": None, "c": {MEMORY}, "d": None}
    assert [queues.share(queues.get(name)) for name in "pac"] == [1.0, 0.5, 0.9]


def test_v4_a_share_is_judged_by_the_dimensions_that_deserved_names() -> None:
    queues = tree(QueueFacts("a", deserved=cpus(10)), QueueFacts("b"))
    for name in ("a", "b"):
        queues.allocate(queues.get(name), ((CPU, 5), (MEMORY, 999), (PODS, 1)), 1)
    deserved(queues, 60)
    assert queues.share(queues.get("a")) == 0.5
    assert queues.share(queues.get("b")) == 1.0  # whatever it uses is above its share


@pytest.mark.parametrize(
    ("used", "deserves", "share"), [(0, 1, 0.0), (1, 1, 1.0), (3, 1, 3.0), (3, 2, 1.5), (1, 0, 1.0), (5, 0, 1.0)]
)
def test_v4_a_share_is_what_is_used_of_what_is_deserved(used: int, deserves: int, share: float) -> None:
    """Of a single device, too. A queue that deserves nothing of what it uses has all of its share."""
    queues = tree()
    queues.add_demand(queues.get("a"), {GPU: deserves})
    queues.update_deserved(np.array([9] * (GPU + 1), np.int64))
    queues.allocate(queues.get("a"), ((PODS, 9), (GPU, used)))
    assert queues.share(queues.get("a")) == share


# ---- order


def names_in_order(queues: QueueTree, totals: Ints, with_enqueued: bool = False) -> list[str]:
    leaves = [queue for queue in queues.queues.values() if not queue.children and queue.name != ROOT]
    return [queue.name for queue in sorted(leaves, key=lambda queue: queues.order(queue, totals, with_enqueued))]


def test_g8_priority_then_share_then_name() -> None:
    queues = tree(
        QueueFacts("c"),
        QueueFacts("b"),
        QueueFacts("a"),
        QueueFacts("vip", priority=1),
        demand=dict.fromkeys("abc", 90),
    )
    queues.allocate(queues.get("vip"), ((CPU, 50),), 1)
    queues.allocate(queues.get("a"), ((CPU, 10),), 1)
    assert names_in_order(queues, vector(90)) == ["vip", "b", "c", "a"]
    queues.add_enqueued(queues.get("b"), {CPU: 20})
    assert names_in_order(queues, vector(90)) == ["vip", "b", "c", "a"]
    assert names_in_order(queues, vector(90), with_enqueued=True) == ["vip", "c", "a", "b"]


def test_g8_the_order_is_decided_from_the_top_of_the_tree_down() -> None:
    queues = tree(
        QueueFacts("p"),
        QueueFacts("r"),
        QueueFacts("p1", parent="p"),
        QueueFacts("r1", parent="r"),
        QueueFacts("r2", parent="r", priority=9),
        demand={"p1": 90, "r1": 90, "r2": 90},
    )
    queues.allocate(queues.get("r1"), ((CPU, 10),), 1)
    # r is ahead in use, so all of p is served first, whatever r's children are worth among themselves.
    assert names_in_order(queues, vector(90)) == ["p1", "r2", "r1"]


def test_numbers_of_pods_do_not_count_for_shares() -> None:
    queues = tree(QueueFacts("a"))
    queues.allocate(queues.get("a"), ((PODS, 1),), 50)
    assert queues.share(queues.get("a")) == 0.0


# ---- what counts where

NAMES = "abcdef"
moves = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), st.sampled_from(["", ROOT, *NAMES])),
        st.tuples(st.just("remove"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("use"), st.sampled_from(NAMES), st.integers(-3, 9)),
        st.tuples(st.just("want"), st.sampled_from(NAMES), st.integers(-3, 9)),
        st.tuples(st.just("expect"), st.sampled_from(NAMES), st.integers(-3, 9)),
    ),
    max_size=30,
)


@given(moves, st.integers(0, 20))
def test_what_a_queue_counts_is_its_own_and_its_descendants(moved: list[tuple[str, str, Any]], column: int) -> None:
    """However queues come, go, and move about, in circles too; and whatever columns are heard of late."""
    queues = tree()
    own: dict[tuple[str, str], int] = {}
    field = {"use": "used", "want": "demand", "expect": "enqueued"}
    for what, name, value in moved:
        queue = queues.get(name)
        match what:
            case "put":
                queues.put(QueueFacts(name, parent=value))
            case "remove":
                queues.remove(name)
            case "use":
                queues.allocate(queue, ((column, 2),), value)
            case "want":
                queues.add_demand(queue, {column: 2}, value)
            case "expect":
                queues.add_enqueued(queue, {column: 2}, value)
        if what in field:
            own[field[what], name] = own.get((field[what], name), 0) + 2 * value
    for queue in queues.queues.values():
        below = [other.name for other in queues.queues.values() if queue in other.ancestors]
        for counted in field.values():
            has = getattr(queue, counted)
            assert sum(has) == sum(own.get((counted, name), 0) for name in below)
            assert len(has) <= column or has[column] == sum(has)
    tops = [queue for queue in queues.queues.values() if len(queue.ancestors) == 1]
    assert sum(queues.enqueued_total()) == sum(sum(queue.enqueued) for queue in tops)
    queues.order(queues.get("a"), vector(50))


def test_queues_in_a_circle_have_no_parent() -> None:
    queues = tree(QueueFacts("a", parent="b"), QueueFacts("b", parent="a"), QueueFacts("c", parent="a"))
    assert [[place.name for place in queues.get(name).ancestors] for name in "abc"] == [["a"], ["b"], ["c", "a"]]
    assert [place.name for place in tree(QueueFacts("x", parent="x")).get("x").ancestors] == ["x"]


# ---- capability and guarantee


def test_v4_a_capability_caps_the_dimensions_that_it_names() -> None:
    queues = tree(QueueFacts("a", capability=cpus(10)))
    queue = queues.get("a")
    queues.allocate(queue, ((CPU, 4), (MEMORY, 1000)), 1)
    assert queues.allowed_tasks(queue, ((CPU, 2), (PODS, 1)), vector(0)) == 3
    assert queues.allowed_tasks(queue, ((CPU, 7), (PODS, 1)), vector(0)) == 0
    assert queues.allowed_tasks(queue, ((MEMORY, 10**9), (PODS, 1)), vector(0)) == CEILING
    assert queues.over_capability(queue, {CPU: 6}, with_enqueued=False) is None
    assert queues.over_capability(queue, {CPU: 7, MEMORY: 1}, with_enqueued=False) == (queue, CPU)
    queues.add_enqueued(queue, {CPU: 1})
    assert queues.over_capability(queue, {CPU: 6}, with_enqueued=True) == (queue, CPU)
    assert queues.over_capability(queue, {CPU: 6}, with_enqueued=False) is None


def test_v4_a_queue_that_is_already_above_its_capability_has_no_room() -> None:
    queues = tree(QueueFacts("a", capability=cpus(3)))
    queues.allocate(queues.get("a"), ((CPU, 4),), 1)
    assert queues.allowed_tasks(queues.get("a"), ((CPU, 1), (PODS, 1)), vector(0)) == 0
    assert queues.over_capability(queues.get("a"), {MEMORY: 1}, with_enqueued=False) is None  # it is not asked for


def test_v4_a_parents_capability_caps_its_children_together() -> None:
    queues = tree(
        QueueFacts("p", capability=cpus(10)),
        QueueFacts("a", parent="p", capability=cpus(8)),
        QueueFacts("b", parent="p"),
    )
    queues.allocate(queues.get("a"), ((CPU, 6),), 1)
    assert queues.allowed_tasks(queues.get("b"), ((CPU, 1), (PODS, 1)), vector(0)) == 4
    assert queues.allowed_tasks(queues.get("a"), ((CPU, 1), (PODS, 1)), vector(0)) == 2
    assert queues.over_capability(queues.get("b"), {CPU: 5}, with_enqueued=False) == (queues.get("p"), CPU)


def kept(queues: QueueTree, name: str) -> int:
    return int(queues.guaranteed_to_others(queues.get(name))[CPU])


def test_v4_a_guarantee_is_kept_from_others_as_far_as_it_is_unused() -> None:
    queues = tree(QueueFacts("a", guarantee=cpus(10)), QueueFacts("b"))
    assert (kept(queues, "b"), kept(queues, "a")) == (10, 0)
    assert queues.allowed_tasks(queues.get("b"), ((CPU, 1), (PODS, 1)), vector(12)) == 2
    assert queues.allowed_tasks(queues.get("a"), ((CPU, 1), (PODS, 1)), vector(12)) == CEILING  # the nodes decide
    queues.allocate(queues.get("a"), ((CPU, 4),), 1)
    assert kept(queues, "b") == 6
    queues.allocate(queues.get("a"), ((CPU, 40),), 1)
    assert kept(queues, "b") == 0
    queues.remove("a")
    assert not queues.guarantees


def test_v4_a_parents_guarantee_holds_its_childrens() -> None:
    queues = tree(
        QueueFacts("p", guarantee=cpus(10)),
        QueueFacts("a", parent="p", guarantee=cpus(4)),
        QueueFacts("b", parent="p", guarantee=cpus(3)),
        QueueFacts("other"),
    )
    assert kept(queues, "other") == 10  # not 17
    assert kept(queues, "a") == 3  # its parent's is its own to use, its sibling's is not
    assert kept(queues, "b") == 4
    queues.allocate(queues.get("a"), ((CPU, 9),), 1)
    assert kept(queues, "other") == 3  # the parent's is all but used; b's own is not
    assert kept(queues, "a") == 3


def test_v4_guarantees_of_children_hold_without_the_parents() -> None:
    queues = tree(QueueFacts("p"), QueueFacts("a", parent="p", guarantee=cpus(4)), QueueFacts("other"))
    assert kept(queues, "other") == 4


# ---- many columns, large figures

MANY = {f"example.com/r{number}": 5 * NANO for number in range(12)}


@pytest.mark.parametrize("field", ["capability", "guarantee", "deserved"])
def test_a_queue_may_name_resources_that_no_node_has(field: str) -> None:
    queues = tree(QueueFacts("a", **{field: MANY}), QueueFacts("b"), demand={"a": 10, "b": 10})
    for name in "ab":
        queue = queues.get(name)
        queues.order(queue, vector(60))
        assert queues.over_capability(queue, {CPU: 10}, with_enqueued=True) is None
        assert queues.allowed_tasks(queue, ((CPU, 1), (PODS, 1)), vector(60)) > 0
        queues.guaranteed_to_others(queue)
        queues.allocate(queue, ((30, 1),), 1)


@pytest.mark.parametrize("late", [7, 8, 9, 15, 16, 30])
def test_columns_that_are_used_late_leave_all_amounts_where_they_were(late: int) -> None:
    queues = tree(QueueFacts("a", guarantee=cpus(3)), QueueFacts("b"), demand={"b": 9})
    queues.allocate(queues.get("a"), ((CPU, 1),))
    assert deserved(queues, 20) == {"a": 3, "b": 9}
    assert queues.over_capability(queues.get("b"), {late: 1}, with_enqueued=False) is None
    assert not queues.above_share(queues.get("b"), {CPU: 9})
    assert queues.above_share(queues.get("b"), {late: 1})
    assert (kept(queues, "b"), queues.below_guarantee(queues.get("a"), {CPU: 0})) == (2, True)
    assert {name: int(queues.get(name).deserved[CPU]) for name in "ab"} == {"a": 3, "b": 9}


@pytest.mark.parametrize("columns", [3, 8, 9, 10, 24])
def test_v4_nodes_may_have_any_number_of_resources(columns: int) -> None:
    queues = tree()
    queues.add_demand(queues.get("a"), {CPU: 5, columns - 1: 7})
    totals = np.array([6] * columns, np.int64)
    with queues.as_deserved_now(totals):
        assert [int(queues.get("a").deserved[column]) for column in (CPU, columns - 1)] == [5, 6]
    queues.update_deserved(totals)
    assert [int(queues.get("a").deserved[column]) for column in (CPU, columns - 1)] == [5, 6]


def test_what_no_node_can_have_is_no_demand() -> None:
    """A thousand pods of 64 PiB each leave the sums in int64."""
    queues = tree(QueueFacts("a"), QueueFacts("b"), demand={"a": 10, "b": 10})
    for _ in range(1000):
        queues.add_demand(queues.get("a"), {CPU: 1, MEMORY: CEILING + 1})
    assert int(queues.get(ROOT).demand[CPU]) == 1020
    assert int(queues.get("a").demand[MEMORY]) == 0
    assert deserved(queues, 40) == {"a": 30, "b": 10}


def test_queues_that_do_not_exist_are_dropped_when_there_are_many() -> None:
    """Whatever happened to the tree meanwhile; queues that exist do not count, however many they are."""
    queues = tree(*(QueueFacts(f"q{index}") for index in range(2 * ABSENT_BOUND)))
    queues.remove("q0")
    assert not queues.needs_compaction()
    for index in range(ABSENT_BOUND):
        queues.get(f"unknown{index}")
    assert queues.needs_compaction(), "one was deleted, others never existed"
    queues.put(QueueFacts("child", parent="q1"))
    assert queues.needs_compaction(), "the tree changed, and none of them exists yet"
    queues.retain(["unknown0"])
    assert "unknown0" in queues.queues
    assert "unknown1" not in queues.queues
    assert not queues.needs_compaction()


def paths(queues: QueueTree) -> dict[str, str]:
    """Each queue's way to the root."""
    return {name: " ".join(place.name for place in queue.ancestors) for name, queue in queues.queues.items()}


def test_queues_are_below_the_parents_that_they_name_as_soon_as_those_are_known() -> None:
    """A parent that comes late, by its own object or because a gang names it, and one that goes."""
    queues = tree(QueueFacts("a", parent="p"))
    assert paths(queues) == {"root": "root", "a": "a"}
    queues.get("p")
    assert paths(queues) == {"root": "root", "a": "a p root", "p": "p root"}
    queues.put(QueueFacts("b", parent="p"))
    queues.get("c")
    assert paths(queues)["b"] == "b p root"
    assert paths(queues)["c"] == "c root"
    assert [child.name for child in queues.get(ROOT).children] == ["c", "p"]
    assert [child.name for child in queues.get("p").children] == ["a", "b"]
    queues.put(QueueFacts("b", parent=""))
    assert [child.name for child in queues.get("p").children] == ["a"]
    assert paths(queues)["b"] == "b root"


def test_queues_without_a_root_are_all_on_top() -> None:
    queues = QueueTree(Resources())
    queues.put(QueueFacts("a"))
    queues.get("b")
    for name, amount in (("a", 3), ("b", 5)):
        queues.add_enqueued(queues.get(name), {CPU: amount})
        queues.add_demand(queues.get(name), {CPU: amount})
    assert int(queues.enqueued_total()[CPU]) == 8
    queues.update_deserved(vector(8))
    assert [int(queues.get(name).deserved[CPU]) for name in "ab"] == [3, 5]
    queues.get(ROOT)
    assert paths(queues) == {"a": "a root", "b": "b root", "root": "root"}
    assert int(queues.enqueued_total()[CPU]) == 8


@pytest.mark.parametrize("absent", [ABSENT_BOUND, ABSENT_BOUND + 1])
def test_compaction_pays_beyond_a_bound_and_twice_what_is_still_named(absent: int) -> None:
    queues = tree()
    names = [f"unknown{index}" for index in range(absent)]
    for name in names:
        queues.get(name)
    assert queues.needs_compaction() is (absent > ABSENT_BOUND)
    queues.retain(names[:5])
    assert sorted(queues.queues) == [ROOT, *sorted(names[:5])]
    for index in range(ABSENT_BOUND + 5):
        queues.get(f"more{index}")
    assert not queues.needs_compaction()
    queues.get("last")
    assert queues.needs_compaction()
    for name in names[:5]:
        queues.put(QueueFacts(name))
    assert not queues.needs_compaction(), "they exist by now"


def test_compaction_keeps_what_exists_the_root_and_parents() -> None:
    queues = QueueTree(Resources())
    queues.put(QueueFacts("a", parent="p"))
    for name in (ROOT, "p", "unknown"):
        queues.allocate(queues.get(name), ((CPU, 1),))
    queues.retain([])
    assert sorted(queues.queues) == ["a", "p", ROOT]
    assert {queue.name for queue in queues.take_touched()} == {"p", ROOT}
    assert [child.name for child in queues.get(ROOT).children] == ["p"]
    assert int(queues.get(ROOT).used[CPU]) == 2


# ---- what is computed anew, and when


def versions(queues: QueueTree) -> tuple[int, int]:
    return queues.version, queues.used_version


def test_versions_increase_with_every_change() -> None:
    queues = tree(QueueFacts("a"))
    changes: list[tuple[Any, tuple[bool, bool]]] = [
        (lambda: queues.put(QueueFacts("a", weight=2)), (True, False)),
        (lambda: queues.add_demand(queues.get("a"), {CPU: 1}), (True, False)),
        (lambda: queues.remove_demand(queues.get("a"), ((CPU, 1),)), (True, False)),
        (lambda: queues.add_demand(queues.get("a"), {}), (False, False)),
        (lambda: queues.allocate(queues.get("a"), ((CPU, 1),)), (False, True)),
        (lambda: queues.release(queues.get("a"), ((CPU, 1),)), (False, True)),
        (lambda: queues.remove("a"), (True, False)),
        (lambda: queues.remove("unknown"), (False, False)),
    ]
    for change, increases in changes * 2:
        before = versions(queues)
        change()
        assert tuple(after > then for after, then in zip(versions(queues), before, strict=True)) == increases
    assert not queues.get("a").used.any()


def test_queues_that_use_more_or_less_are_touched_with_their_ancestors() -> None:
    queues = tree(QueueFacts("p"), QueueFacts("a", parent="p"), QueueFacts("b"))
    queues.take_touched()
    queues.allocate(queues.get("a"), ((CPU, 1),))
    assert {queue.name for queue in queues.take_touched()} == {"a", "p", ROOT}
    queues.add_enqueued(queues.get("b"), {CPU: 1})
    assert {queue.name for queue in queues.take_touched()} == {"b", ROOT}
    assert queues.take_touched() == set()


def test_v4_what_queues_deserve_follows_every_change() -> None:
    queues = tree(QueueFacts("a"), QueueFacts("b"), demand={"a": 99, "b": 99})
    assert deserved(queues, 60) == {"a": 30, "b": 30}
    computed, shares = queues.deserved_version, queues.shares_version
    assert deserved(queues, 60) == {"a": 30, "b": 30}
    assert (queues.deserved_version, queues.shares_version) == (computed, shares), "nothing changed"
    queues.put(QueueFacts("b", weight=2))
    assert deserved(queues, 60) == {"a": 20, "b": 40}
    assert (queues.deserved_version > computed, queues.shares_version > shares) == (True, True)
    assert deserved(queues, 90) == {"a": 30, "b": 60}
    shares = queues.shares_version
    queues.add_demand(queues.get("a"), {CPU: 1})
    assert deserved(queues, 90) == {"a": 30, "b": 60}
    assert queues.shares_version == shares, "computed anew, with the same result"
    queues.remove("b")
    assert deserved(queues, 90) == {"a": 45, "b": 45}


def test_reading_what_queues_deserve_now_changes_nothing_for_the_actions() -> None:
    queues = tree(QueueFacts("a", deserved=cpus(10)), demand={"a": 99})
    deserved(queues, 60)
    queues.put(QueueFacts("a", deserved=cpus(20)))
    known = queues.deserved_version, queues.shares_version
    with queues.as_deserved_now(vector(60)):
        assert int(queues.get("a").deserved[CPU]) == 20
    assert int(queues.get("a").deserved[CPU]) == 10
    assert (queues.deserved_version, queues.shares_version) == known
    assert deserved(queues, 60) == {"a": 20}


# ---- shares


@pytest.mark.parametrize(
    ("used", "more", "above", "below", "within"),
    [
        (0, 1, False, True, True),
        (9, 1, False, True, True),
        (9, 2, True, True, False),
        (10, 1, True, False, False),
        (10, 0, False, False, False),
        (11, 0, True, False, False),
    ],
)
def test_p2_above_below_and_within_a_share_of_10(used: int, more: int, above: bool, below: bool, within: bool) -> None:
    """A resource that its `deserved` does not name, and the number of pods, do not count."""
    queues = tree(QueueFacts("a", deserved=cpus(10)))
    queue = queues.get("a")
    queues.allocate(queue, ((CPU, used), (MEMORY, 50), (PODS, 3)))
    deserved(queues, 60)
    assert queues.above_share(queue, {CPU: more, PODS: 9}) is above
    assert queues.above_share(queue) is (used > 10)
    assert queues.below_share(queue) is below
    assert queues.within_share(queue, {CPU: more, MEMORY: 1, PODS: 1}) is within
    assert int(queue.used[CPU]) == used


@pytest.mark.parametrize(
    ("used", "below"),
    [
        ((4, 4, 0, 4), False),
        ((3, 4, 0, 4), True),
        ((4, 3, 0, 4), True),
        ((4, 4, 0, 3), True),
        ((9, 3, 0, 9), True),
        ((5, 5, 0, 5), False),
    ],
)
def test_p2_below_a_share_of_any_resource_but_the_number_of_pods(used: tuple[int, ...], below: bool) -> None:
    """It deserves 4 of cpu, 4 of memory, 9 pods and 4 of a fourth resource."""
    queues = tree()
    queue = queues.get("a")
    queues.add_demand(queue, {CPU: 4, MEMORY: 4, PODS: 9, GPU: 4})
    queues.update_deserved(np.array([9] * (GPU + 1), np.int64))
    assert queue.deserved[: GPU + 1].tolist() == [4, 4, 9, 4]
    queues.allocate(queue, tuple(enumerate(used)))
    assert queues.below_share(queue) is below


def test_p2_a_queue_that_deserves_nothing_is_above_its_share_with_any_use() -> None:
    queues = tree(QueueFacts("a", deserved=cpus(10)), QueueFacts("b"))
    deserved(queues, 60)
    assert not queues.above_share(queues.get("b"), {PODS: 1})
    assert queues.above_share(queues.get("b"), {MEMORY: 1})


@pytest.mark.parametrize(("used", "less", "below"), [(10, 0, False), (10, 1, True), (12, 2, False), (12, 3, True)])
def test_v4_below_its_guarantee(used: int, less: int, below: bool) -> None:
    queues = tree(QueueFacts("a", guarantee=cpus(10)), QueueFacts("b"))
    for name in "ab":
        queues.allocate(queues.get(name), ((CPU, used), (MEMORY, 5)))
    assert queues.below_guarantee(queues.get("a"), {CPU: less, MEMORY: 5}) is below
    assert not queues.below_guarantee(queues.get("b"), {CPU: less})


@pytest.mark.parametrize(
    ("requested", "free", "allowed"),
    [
        ({"a": 6}, None, True),
        ({"a": 7}, None, False),
        ({"a": 5, "b": 5}, None, True),
        ({"a": 5, "b": 6}, None, False),  # more than their parent's capability together
        ({"c": 7}, 10, True),
        ({"c": 8}, 10, False),  # 3 of the free 10 are guaranteed to `a`
        ({"a": 4, "c": 4}, 10, False),
        ({"a": 3, "c": 4}, 10, True),
    ],
)
def test_v4_whether_queues_may_use_amounts_all_at_once(
    requested: dict[str, int], free: int | None, allowed: bool
) -> None:
    queues = tree(
        QueueFacts("p", capability=cpus(10)),
        QueueFacts("a", parent="p", capability=cpus(6), guarantee=cpus(3)),
        QueueFacts("b", parent="p"),
        QueueFacts("c"),
    )
    asked = {name: {CPU: amount} for name, amount in requested.items()}
    assert queues.allows(asked, None if free is None else vector(free)) is allowed


@pytest.mark.parametrize(("cpu", "memory", "allowed"), [(7, 5, True), (7, 99, True), (8, 5, False), (8, 99, False)])
def test_v4_what_no_queue_is_guaranteed_is_left_to_the_nodes(cpu: int, memory: int, allowed: bool) -> None:
    """10 cpu and 5 of memory are free, and 3 of these cpu are guaranteed to `a`."""
    queues = tree(QueueFacts("a", guarantee=cpus(3)), QueueFacts("b"))
    free = vector(10, 5)
    assert queues.allows({"b": {CPU: cpu, MEMORY: memory}}, free) is allowed
    assert queues.allowed_tasks(queues.get("b"), ((CPU, cpu), (MEMORY, memory)), free) == allowed
