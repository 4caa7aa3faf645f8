"""Gangs that were satisfied once, and gangs that are bound only in part (G7, G11)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.partial_gangs import MARKED_OF_WAVES, PartialGangs, _mark_of_started, has_lost_members, mark_others
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from engine.claims.scenes import SECOND_NS, Scene, group
from engine.gang_states import gang, task
from support import manifests as m

BOUND, PENDING, SUCCEEDED = TaskStatus.BOUND, TaskStatus.PENDING, TaskStatus.SUCCEEDED
FAILED, RELEASING = TaskStatus.FAILED, TaskStatus.RELEASING


def bound(of: GangState, name: str, since_s: int | None = 5, **fields: Any) -> Task:
    """Bound by a decision of ours."""
    since_ns = since_s * SECOND_NS if since_s is not None else None
    return task(of, name, **{"status": BOUND, "decision": "d", "since_ns": since_ns, **fields})


def waits(of: GangState, name: str, created_s: int, **fields: Any) -> Task:
    return task(of, name, created_ns=created_s * SECOND_NS, **fields)


# ---- members that are gone


@pytest.mark.parametrize(
    ("created_s", "lost"),
    [
        pytest.param([1, 2], False, id="the others wait since before"),
        pytest.param([1, 5], False, id="as the first one started"),
        pytest.param([1, 6], True, id="one was created since: it replaces one that is gone"),
        pytest.param([1], True, id="one is gone"),
        pytest.param([1, 2, 9], False, id="one more came since"),
    ],
)
def test_g11_members_that_existed_when_the_first_was_bound_are_too_few(created_s: list[int], lost: bool) -> None:
    """The gang needs 3; one started in the 5th second, and another since."""
    of = gang(minimum=3)
    bound(of, "first", 5)
    for number, created in enumerate(created_s):
        waits(of, f"w-{number}", created)
    assert has_lost_members(of) is lost


@pytest.mark.parametrize(
    ("fields", "known"),
    [
        pytest.param({}, True, id="bound by a decision of ours"),
        pytest.param({"decision": ""}, False, id="bound otherwise"),
        pytest.param({"since_s": None}, False, id="has not reported its start"),
        pytest.param({"status": PENDING}, False, id="waits"),
        pytest.param({"status": SUCCEEDED}, True, id="has succeeded"),
        pytest.param({"status": FAILED}, True, id="has failed"),
    ],
)
def test_g11_what_shows_that_members_are_gone(fields: dict[str, Any], known: bool) -> None:
    """The gang needs 2, and one is there."""
    of = gang(minimum=2)
    bound(of, "first", **fields)
    assert has_lost_members(of) is known


def test_g11_the_first_start_counts_and_pods_that_occupy_count_whenever_they_came() -> None:
    of = gang(minimum=3)
    bound(of, "first", 5)
    bound(of, "second", 50, created_ns=40 * SECOND_NS)
    waits(of, "w-0", 20)
    assert has_lost_members(of), "the third came since the first was bound"
    bound(of, "third", 60, created_ns=55 * SECOND_NS)
    assert not has_lost_members(of)


@pytest.mark.parametrize(("minima", "lost"), [({"w": 1}, False), ({"w": 2}, True), ({"m": 1}, True)])
def test_g11_members_of_every_role_must_be_there(minima: dict[str, int], lost: bool) -> None:
    of = gang(minimum=2, minima=minima)
    bound(of, "first", role="w")
    bound(of, "second", role="")
    assert has_lost_members(of) is lost


WAVES = {"waves": True, "wave_of": {"a": 0, "b": 1, "c": 2}}


@pytest.mark.parametrize(
    ("roles", "mark", "lost"),
    [
        pytest.param("a", "2;a=2", True, id="of the first wave one of two is there"),
        pytest.param("aa", "2;a=2", False, id="the first wave is there: the others have not begun"),
        pytest.param("aab", "3;a=2;b=1", False, id="the second has begun"),
        pytest.param("b", "1;a=2;b=1", True, id="the first is gone, though the second has begun"),
        pytest.param("aabc", "4;a=2;b=1;c=1", False, id="all are there"),
    ],
)
def test_d3_waves_that_have_not_begun_lack_no_members(roles: str, mark: str, lost: bool) -> None:
    of = gang(minimum=4, minima={"a": 2, "b": 1, "c": 1}, **WAVES)
    for number, role in enumerate(roles):
        bound(of, f"p-{number}", role=role)
    assert has_lost_members(of) is lost
    if not lost:
        assert _mark_of_started(of) == mark


# ---- which pods carry the mark


def marked(of: GangState) -> list[str]:
    found = mark_others(of)
    assert all(one.mark == of.covered for one in found)
    return [one.name for one in found]


def test_g11_a_gang_without_a_mark_marks_no_pod() -> None:
    of = gang(minimum=1)
    bound(of, "a")
    assert marked(of) == []


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param({"b": BOUND, "a": BOUND}, ["a"], id="the first that is bound"),
        pytest.param({"a": SUCCEEDED, "b": BOUND}, ["b"], id="a bound one rather than one that has succeeded"),
        pytest.param({"a": FAILED, "b": SUCCEEDED}, ["b"], id="one that has succeeded rather than a failed one"),
        pytest.param({"a": FAILED, "b": PENDING}, ["a"], id="else a failed one"),
        pytest.param({"a": PENDING, "b": RELEASING}, [], id="none that waits or leaves"),
    ],
)
def test_g11_one_pod_inherits_the_mark_if_none_carries_it(statuses: dict[str, TaskStatus], expected: list[str]) -> None:
    of = gang(minimum=1, covered="1")
    for name, status in statuses.items():
        task(of, name, status=status)
    assert marked(of) == expected


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        pytest.param({"a": "2", "b": ""}, [], id="one carries it"),
        pytest.param({"a": "1", "b": ""}, ["a"], id="one carries a smaller one, from before the minimum was raised"),
        pytest.param({"a": "1", "b": "1", "c": "2"}, ["a", "b"], id="all with smaller ones"),
        pytest.param({"a": "3"}, [], id="a larger one covers it"),
    ],
)
def test_g11_pods_with_a_smaller_mark_get_the_present_one(marks: dict[str, str], expected: list[str]) -> None:
    of = gang(minimum=2, covered="2")
    for name, mark in marks.items():
        bound(of, name, mark=mark)
    assert marked(of) == expected


def test_g11_a_mark_on_a_pod_that_leaves_is_inherited() -> None:
    of = gang(minimum=1, covered="1")
    task(of, "a", status=RELEASING, mark="1")
    bound(of, "b")
    assert marked(of) == ["b"]


@pytest.mark.parametrize(
    ("carriers", "expected"),
    [
        pytest.param([], ["a", "b", "c"], id="three get it"),
        pytest.param(["n9"], ["a", "b"], id="one has it"),
        pytest.param(["n0"], ["b", "c"], id="one has it on the node of the first: others come before that"),
        pytest.param(["n7", "n8", "n9"], [], id="three have it"),
        pytest.param(["n6", "n7", "n8", "n9"], [], id="more than three have it"),
    ],
)
def test_g11_of_a_gang_with_waves_a_few_pods_get_the_mark(carriers: list[str], expected: list[str]) -> None:
    assert MARKED_OF_WAVES == 3
    of = gang(minimum=2, minima={"a": 1, "b": 1}, covered="2;a=1;b=1", waves=True, wave_of={"a": 0, "b": 1})
    for number, name in enumerate("abcd"):
        bound(of, name, mark="1;a=1", node=f"n{number}")
    for number, node in enumerate(carriers):
        bound(of, f"x-{number}", mark="2;a=1;b=1", node=node)
    assert marked(of) == expected


# ---- partially bound gangs


class Partial:
    """Gangs `a`, `b` … of 2 pods, of each of which one was bound by a decision that was cut off; others wait."""

    def __init__(self, *others: m.Obj, timeout_s: int = 60, **priorities: int) -> None:
        found: list[m.Obj] = []
        for name, priority in priorities.items():
            found += [
                group(name, 2),
                m.pod(f"{name}-0", group=name, priority=priority, nodeName="n"),
                m.pod(f"{name}-1", 2, group=name, priority=priority, nodeSelector={"for": name}),
            ]
        nodes = [m.node("n", 9), *(m.node(f"n-{name}", labels={"for": name}) for name in priorities)]
        self.scene = Scene(*nodes, found, *others)
        for name in priorities:
            self.scene.task(f"{name}-0").decision = "d"
        self.gangs = PartialGangs(self.scene.state, self.scene.groups, timeout_s * SECOND_NS)
        self.begin(10)

    def begin(self, now_s: int) -> None:
        self.gangs.cycle_begins(now_s * SECOND_NS)
        for one in self.scene.state.gangs.values():
            self.gangs.update(one)

    def closed_to(self, name: str) -> set[str]:
        found = self.gangs.closed_to(self.scene.gang(name))
        rows = self.scene.state.nodes.rows
        return {node for node, row in rows.items() if found[row]} if found is not None else set()

    def evicted(self, now_s: int) -> list[str]:
        return [one.name for one in self.gangs.evict_timed_out(now_s * SECOND_NS)]


def test_g11_a_partial_gang_is_evicted_when_its_time_is_up() -> None:
    case = Partial(a=0)
    assert (bool(case.gangs), case.gangs.due()) == (True, 70 * SECOND_NS)
    case.begin(20)
    assert case.gangs.due() == 70 * SECOND_NS, "since it was first seen so"
    assert case.evicted(69) == []
    assert case.evicted(70) == ["a-0"]
    assert (bool(case.gangs), case.gangs.due()) == (False, None)


@pytest.mark.parametrize(
    ("change", "partial"),
    [
        pytest.param({}, True, id="as it is"),
        pytest.param({"mark": "2"}, False, id="its pod carries a mark"),
        pytest.param({"decision": ""}, False, id="its pod was bound otherwise"),
        pytest.param({"status": PENDING}, False, id="no pod is bound"),
    ],
)
def test_g11_which_gangs_are_partial(change: dict[str, Any], partial: bool) -> None:
    case = Partial(a=0)
    bound_one = case.scene.task("a-0")
    for name, value in change.items():
        setattr(bound_one, name, value)
    case.begin(20)
    assert bool(case.gangs) is partial


def test_g11_a_gang_that_is_being_completed_is_not_partial() -> None:
    case = Partial(a=0)
    case.scene.task("a-1").status = TaskStatus.ASSUMED
    assert case.evicted(99) == [], "in this very cycle"
    case.begin(20)
    assert not case.gangs


@pytest.mark.parametrize(
    ("priority", "closed"), [(4, {"n-a"}), (5, {"n-a"}), (6, set())], ids=["lower", "equal", "higher"]
)
def test_g11_nodes_that_a_partial_gang_needs_are_closed_to_gangs_of_equal_or_lower_priority(
    priority: int, closed: set[str]
) -> None:
    case = Partial(m.pod("x", priority=priority), a=5)
    assert case.closed_to("x") == closed
    assert case.closed_to("a") == set(), "its own"


def test_g11_nodes_of_several_partial_gangs_are_closed() -> None:
    assert Partial(m.pod("x"), a=5, b=7).closed_to("x") == {"n-a", "n-b"}


@pytest.mark.parametrize(
    ("a", "b", "to_a", "to_b"),
    [
        pytest.param(5, 5, set(), {"n-a"}, id="of equals the older goes first"),
        pytest.param(5, 7, {"n-b"}, set(), id="the higher goes first"),
        pytest.param(7, 5, set(), {"n-a"}, id="whichever it is"),
    ],
)
def test_g11_two_partial_gangs_do_not_wait_for_each_other(a: int, b: int, to_a: set[str], to_b: set[str]) -> None:
    case = Partial(a=a, b=b)
    assert (case.closed_to("a"), case.closed_to("b")) == (to_a, to_b)


def test_g11_a_gang_that_is_gone_closes_nothing() -> None:
    case = Partial(m.pod("x"), a=5)
    gone = case.scene.gang("a")
    del case.scene.state.gangs[gone.key]
    case.gangs.cycle_begins(20 * SECOND_NS)
    assert not case.gangs
    assert gone.partial_since_ns is None


def test_g11_only_in_the_first_cycle_lost_members_show_that_a_gang_was_committed() -> None:
    """To a scheduler that starts; later ones know whether it was."""
    running = m.pod("g-0", group="g", nodeName="n")
    running["status"] = {"startTime": "1970-01-01T00:00:05Z"}
    scene = Scene(m.node("n"), group("g", 2), running)
    scene.task("g-0").decision = "d"
    for cycles, covered in ((2, ""), (1, "2")):
        gangs = PartialGangs(scene.state, scene.groups, SECOND_NS)
        for _ in range(cycles):
            gangs.cycle_begins(10 * SECOND_NS)
        gangs.update(scene.gang())
        assert scene.gang().covered == covered
