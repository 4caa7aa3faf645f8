"""What a gang's counts say: its minima by wave, what it lacks, whether it is ready or complete (M4, G4, D3, K6, K9)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from enbloc.api.meta import Ref
from enbloc.engine.core.tables.commit_marks import Minima
from enbloc.engine.core.tables.need import choices, members_of
from enbloc.engine.core.tables.tasks import TaskStatus, pending_tasks
from enbloc.gangs.gang_tree import Vertex
from enbloc.gangs.hints import NONE, SchedulingHints
from enbloc.gangs.model import ONLY_WAITING, GangStatus
from enbloc.gangs.topology import PodTopology, TopologyConstraint
from engine.gang_states import gang, task

MINIMA = {"m": 1, "w": 2}
OBJECT = Ref("PodGroup.scheduling.volcano.sh", "ns", "g")


# ---- minima by wave


@pytest.mark.parametrize(
    ("ran", "behind", "minima"),
    [
        ("", "", {"a": 1, "b": 2, "c": 4}),
        ("", "bc", {"a": 1}),
        ("a", "c", {"b": 2}),
        ("ab", "", {"c": 4}),
        ("abc", "", {}),
    ],
)
def test_d3_the_minima_are_those_of_the_present_wave(ran: str, behind: str, minima: dict[str, int]) -> None:
    made = gang(7, {"a": 1, "b": 2, "c": 4}, ran=ran, behind=behind)
    assert made.need.minima == minima
    assert made.need.short_of({}) == sum(minima.values())
    assert made.need.short_of(dict.fromkeys("abc", 1)) == sum(minima.values()) - len(minima)
    assert made.need.missing == minima


def test_d3_pods_of_other_waves_do_not_make_up_for_missing_ones() -> None:
    made = gang(4, {"a": 1, "b": 2}, behind="b", pending={"a": 1, "b": 9})
    assert made.need.missing == {"": 1}  # the total of the present wave is 2
    made.ran, made.behind = frozenset("a"), frozenset()
    made.version += 1
    assert made.need.missing == {}


# ---- what is missing, and whether all is there


@pytest.mark.parametrize(
    ("counts", "missing"),
    [
        ({}, {"m": 1, "w": 2, "": 1}),
        ({"pending": {"w": 1}}, {"m": 1, "w": 1, "": 1}),
        ({"occupied": {"m": 1}, "pending": {"w": 2}}, {"": 1}),
        ({"held": {"m": 1}, "pending": {"w": 2, "x": 1}}, {}),
        ({"occupied": {"m": 1, "w": 1}, "held": {"w": 1}, "pending": {"w": 1}}, {}),
        ({"pending": {"x": 9}}, {"m": 1, "w": 2}),
        ({"occupied": {"w": 9}, "pending": {"w": 9}}, {"m": 1}),
    ],
)
def test_g4_members_that_are_missing_by_role_and_in_all(counts: dict[str, Any], missing: dict[str, int]) -> None:
    assert gang(4, MINIMA, **counts).need.missing == missing


@pytest.mark.parametrize(
    ("counts", "ready"),
    [
        ({}, False),
        ({"occupied": {"m": 1, "w": 2}}, False),
        ({"occupied": {"m": 1, "w": 2, "x": 1}}, True),
        ({"occupied": {"w": 4}}, False),
        ({"occupied": {"m": 1, "w": 2}, "held": {"w": 1}}, False),
        ({"held": {"m": 2, "w": 2}}, False),
        ({"occupied": {"m": 1, "w": 3}, "pending": {"w": 2}}, True),
    ],
)
def test_m4_ready_by_what_is_bound_not_by_what_is_held(counts: dict[str, Any], ready: bool) -> None:
    assert gang(4, MINIMA, **counts).need.ready is ready


@pytest.mark.parametrize(
    ("fields", "only_waiting", "found", "ready"),
    [
        ({"covered": "3"}, True, {"w": 1}, False),
        ({"covered": ""}, False, {"w": 4}, True),
        ({"covered": "3", "match_policy": ""}, False, {"w": 4}, True),
        ({"covered": "3", "pending": {}}, True, {"w": 1}, True),
    ],
)
def test_k9_only_waiting_pods_count_once_the_minimum_was_met(
    fields: dict[str, Any], only_waiting: bool, found: dict[str, int], ready: bool
) -> None:
    given: dict[str, Any] = {"match_policy": ONLY_WAITING, "pending": {"w": 1}, **fields}
    made = gang(3, occupied={"w": 3}, held={"w": 1}, **given)
    assert made.only_waiting is only_waiting
    assert (made.need.found, made.total_found) == (found, found["w"])
    assert made.need.ready is ready


@pytest.mark.parametrize(("minimum", "minima", "ready"), [(0, {}, True), (0, {"w": 1}, False), (1, {}, False)])
def test_k9_with_a_minimum_of_0_all_that_waits_is_surplus(minimum: int, minima: dict[str, int], ready: bool) -> None:
    made = gang(minimum, minima, match_policy=ONLY_WAITING, covered="3", pending={"w": 1}, occupied={"w": 1})
    assert made.need.ready is ready


# ---- sub-groups


def test_t0_a_choice_of_sub_groups_sets_minima_and_total() -> None:
    tree = Vertex("", 1, (Vertex("a", 3), Vertex("b", 1)))
    made = gang(3, {"a": 3}, total=2, tree=tree, pending={"a": 3, "b": 1})
    first, second = choices(made, made.spec)
    assert (first, second) == (Minima(3, {"a": 3}), Minima(2, {"b": 1}))
    version = made.version
    made.choose(first)
    assert made.version == version
    made.choose(second)
    assert (made.minima, made.version) == (second, version + 1)


def test_t0_members_exist_whether_they_are_placed_or_wait() -> None:
    made = gang(1, pending={"a": 2}, occupied={"a": 1, "b": 1}, held={"c": 1}, covered="1;a=1")
    members = members_of(made)
    assert members == ({"a": 3, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}, {"a": 1})


# ---- hints


@pytest.mark.parametrize(
    ("of_gang", "templates", "of_pods", "run_time"),
    [
        (None, None, [], None),
        (None, 7, [], 7),
        (5, 7, [9], 5),
        (None, 7, [3, 4], 4),
        (None, 7, [3, None], None),
        (0, 7, [3], 0),
    ],
)
def test_r8_the_run_time_of_a_gang(
    of_gang: int | None, templates: int | None, of_pods: list[int | None], run_time: int | None
) -> None:
    made = gang(1, hints=SchedulingHints(run_time_ns=of_gang), longest_run_ns=templates)
    for index, own in enumerate(of_pods):
        task(made, f"p{index}", hints=SchedulingHints(run_time_ns=own))
    assert made.run_time_ns == run_time


def test_r8_a_pods_own_run_time_comes_first() -> None:
    made = gang(1, hints=SchedulingHints(run_time_ns=5))
    own, none = task(made, "own", hints=SchedulingHints(run_time_ns=0)), task(made, "none")
    assert (own.run_time_ns, none.run_time_ns) == (0, 5)


@pytest.mark.parametrize(
    ("of_object", "own", "of_pods", "waits"),
    [
        (True, 5, [1], 5),
        (True, None, [1], None),
        (False, 5, [1], 5),
        (False, None, [None, 3, 2], 2),
        (False, None, [None], None),
        (False, 0, [3], 0),
    ],
)
def test_r1_how_long_a_gang_may_wait(
    of_object: bool, own: int | None, of_pods: list[int | None], waits: int | None
) -> None:
    """A gang without an object has its pods' annotations only."""
    made = gang(1, hints=SchedulingHints(own), object=OBJECT if of_object else None)
    for index, wait in enumerate(of_pods):
        task(made, f"p{index}", hints=SchedulingHints(wait) if wait is not None else NONE)
    assert made.sla_waiting_ns == waits


# ---- tasks


def test_o2_pending_tasks_in_order() -> None:
    """By priority, number, age and name; a name without a number comes last."""
    made = gang()
    task(made, "unnumbered", created_ns=-1)
    task(made, "second", 1)
    task(made, "younger", 0, created_ns=5)
    task(made, "b", 0)
    task(made, "a", 0)
    task(made, "urgent", 9, priority=1)
    task(made, "nominated", 2, status=TaskStatus.NOMINATED)
    task(made, "bound", 0, status=TaskStatus.BOUND)
    task(made, "foreign", 0, ours=False)
    assert [one.name for one in pending_tasks(made)] == [
        "urgent", "a", "b", "younger", "second", "nominated", "unnumbered",
    ]  # fmt: skip


def test_a_gang_remembers_that_a_pod_named_a_place() -> None:
    made = gang()
    task(made, "p")
    assert not made.has_topology_of_pods
    task(made, "q", topology=(PodTopology(TopologyConstraint("t", required="zone")),))
    assert made.has_topology_of_pods


def test_what_was_decided_counts_until_the_api_says_otherwise() -> None:
    made = gang(observed=GangStatus(enqueued=False, tried=True))
    assert made.status == made.spec.observed
    made.assume(enqueued=True)
    assert made.status == msgspec.structs.replace(made.spec.observed, enqueued=True)
    assert not made.spec.observed.enqueued
    made.assume(finished=True)
    assert (made.status.enqueued, made.status.tried, made.status.finished) == (True, True, True)


def test_the_story_of_a_gang_in_words() -> None:
    made = gang()
    assert made.story == "story of ns/g: nothing happened yet"
    made.note("p", "", 3)
    made.note("waits")
    assert made.story == "story of ns/g: p 3; waits"
