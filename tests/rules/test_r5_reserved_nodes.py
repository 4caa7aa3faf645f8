"""R5: which pods may use a reserved node, and when a gang of higher priority takes it over."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer, waits_because
from support.reservations import CLASSES, QUIET, full, released, reserved, reserving
from support.simulation import simulate

RESERVED = "node(s) resource was(were) reserved"

EVERYTHING = (*QUIET, "preempt", "reclaim")


def test_r5_others_are_refused_with_the_reason() -> None:
    answer = simulate(
        m.node("n"),
        m.node("m", 1),
        full(2),
        m.pod("big", 4),
        m.gang("s", 2, at="20s"),
        config=reserving(15),
        until="30s",
    )
    assert reserved(answer) == {"big": (15.0, "n")}
    found = answer.pending("default/s")
    assert {"role": "", "reason": RESERVED, "nodes": 1} in found["reasons"]
    assert f"1 {RESERVED}" in found["message"]
    for one in (answer.obj("Pod", "s-0"), answer.obj("Pod", "s-1"), answer.obj("PodGroup", "s")):
        assert f"1 {RESERVED}" in waits_because(one)


def test_r5_the_reason_goes_when_the_reservation_does() -> None:
    answer = simulate(
        m.node("n"),
        full(2, run=None),
        m.pod("big", 4, delete_at="40s"),
        m.pod("s", 3, at="20s"),
        config=reserving(),
        until="60s",
    )
    assert RESERVED not in waits_because(answer.obj("Pod", "s"))
    assert "Insufficient cpu" in waits_because(answer.obj("Pod", "s"))


def test_r5_its_object_says_which_nodes_are_reserved_for_it() -> None:
    answer = simulate(m.node("n"), full(2), m.gang("g", 1, cpu=4), config=reserving(), until="30s")
    found = answer.pending("default/g")
    assert "reserved" in found["message"]
    assert "n" in found["message"].split()
    assert "reserved" in waits_because(answer.obj("PodGroup", "g"))
    kept = [one for one in answer.obj("PodGroup", "g")["status"]["conditions"] if "reserved on n" in one["message"]]
    assert kept


def test_r5_best_effort_tasks_pass() -> None:
    answer = simulate(
        m.node("n"),
        full(2),
        m.pod("big", 4),
        m.pod("nothing", None, at="20s"),
        m.gang("free", 2, cpu=None, at="21s"),
        config=reserving(),
        until="30s",
    )
    assert answer.at("nothing") == 20.0
    assert answer.times("free-") == [21.0, 21.0]


def test_r5_a_gang_with_one_task_that_asks_for_something_does_not_pass_whole() -> None:
    """Its BestEffort members could go there; the gang starts together or not at all."""
    mixed = m.job("s", m.role("a", 1, cpu=None), m.role("b", 1, cpu=1), at="20s")
    answer = simulate(m.node("n"), full(2), m.pod("big", 4), mixed, config=reserving(), until="30s")
    assert not answer.bound("s-")


def test_r5_nodes_that_are_not_reserved_stay_open() -> None:
    answer = simulate(
        m.node("n"), m.node("m", 2), full(2), m.pod("big", 4), m.pods(3, "s", at="20s"), config=reserving(), until="25s"
    )
    assert {where for _, where in answer.bound("s").values()} == {"m"}
    assert len(answer.bound("s")) == 2


def test_r5_surplus_of_others_is_refused_too() -> None:
    more = m.step("20s", "patch", "Job", "e", patch={"spec": {"tasks": [m.role("w", 4, 1)]}})
    answer = simulate(
        m.node("n"),
        m.node("m", 2),
        full(2),
        m.job("e", m.role("w", 1, 1)),
        m.pod("big", 4),
        more,
        config=reserving(),
        until="30s",
    )
    assert reserved(answer, "big") == {"big": (10.0, "n")}
    assert {where for _, where in answer.bound("e-").values()} == {"m"}
    assert len(answer.bound("e-")) == 2


def test_r5_its_own_surplus_has_no_right_to_the_node_before_the_minimum() -> None:
    answer = simulate(m.node("n"), full(2), m.job("g", m.role("w", 5, 3)), config=reserving(), until="150s")
    assert len(reserved(answer)) == 3
    assert answer.times("g-") == [100.0] * 4


@pytest.mark.parametrize("mode", ["best-effort", "easy"])
def test_r5_in_backfill(mode: str) -> None:
    answer = simulate(
        m.node("n"), full(2), m.pod("big", 4), m.pod("s", 1, at="20s"), config=reserving(mode=mode), until="30s"
    )
    assert answer.at("s") is None
    assert RESERVED in waits_because(answer.obj("Pod", "s"))


def contended(*more: Any, priority: str = "nonpreempting", **kw: Any) -> Answer:
    """A node with a low pod of 2 of its 4 cpu, reserved for `big`, which evicts no pod."""
    return simulate(
        CLASSES,
        m.node("n"),
        m.pod("low", 2, priority="low"),
        m.pod("big", 4, priority=priority, at="1s"),
        *more,
        config=kw.pop("config", reserving(10, actions=EVERYTHING)),
        **kw,
    )


def test_r5_in_preempt_an_equal_evicts_no_pod_there() -> None:
    answer = contended(m.pod("x", 4, priority="mid", at="20s"), until="60s")
    assert reserved(answer, "big") == {"big": (11.0, "n")}
    assert not answer.lines("evicted")
    assert not released(answer)
    assert RESERVED in waits_because(answer.obj("Pod", "x"))


def test_r5_in_preempt_a_lower_one_evicts_no_pod_there() -> None:
    proud = m.priority_class("proud", 2000) | {"preemptionPolicy": "Never"}
    answer = contended(proud, m.pod("x", 4, priority="mid", at="20s"), priority="proud", until="60s")
    assert reserved(answer, "big") == {"big": (11.0, "n")}
    assert not answer.lines("evicted")
    assert answer.at("x") is None


def test_r5_in_reclaim_no_pod_is_evicted_there() -> None:
    """Queue b is within its share and a above its own; the node is reserved all the same."""
    documents = [m.queue("a"), m.queue("b"), m.node("n", 4)]
    running = m.gang("over", 3, minimum=1, queue="a", run_time=None)
    big = m.gang("big", 1, cpu=4, queue="a", at="1s")
    answer = simulate(
        documents,
        running,
        big,
        m.gang("x", 2, queue="b", at="20s"),
        config=reserving(10, actions=EVERYTHING),
        until="60s",
    )
    assert reserved(answer, "big")
    assert not answer.lines("evicted")
    assert not answer.bound("x-")
    assert RESERVED in answer.why("default/x")


@pytest.mark.parametrize("restart", [None, "20s"])
def test_r5_in_reclaim_a_reservation_of_lower_priority_closes_no_node(restart: str | None) -> None:
    """The same for a gang of higher priority than that which the node is reserved for; it stays reserved behind it."""
    answer = simulate(
        CLASSES,
        [m.queue("a"), m.queue("b"), m.node("n", 4)],
        m.gang("over", 3, minimum=1, queue="a", run_time=None),
        m.gang("big", 1, cpu=4, queue="a", at="1s"),
        m.gang("x", 2, queue="b", at="20s", priority="high"),
        [m.step(restart, "restart-scheduler")] if restart else [],
        config=reserving(10, actions=EVERYTHING),
        until="60s",
    )
    assert [one["name"] for one in answer.lines("evicted")] == ["over-2"]
    assert answer.times("x-") == [20.0, 20.0]
    assert reserved(answer, "big") == {"big-0": (20.0, "n")}


def test_r5_in_reclaim_no_reservation_is_released_if_there_is_another_place() -> None:
    """Pods of queue a are on both nodes; those on the node that is not reserved are evicted."""
    answer = simulate(
        CLASSES,
        [m.queue("a"), m.queue("b"), m.node("m", 4), m.node("n", 8)],
        m.gang("over", 12, minimum=1, queue="a", run_time=None),
        m.gang("big", 1, cpu=8, queue="a", at="1s"),
        m.gang("x", 2, queue="b", at="20s", priority="high"),
        config=reserving(10, actions=EVERYTHING),
        until="60s",
    )
    assert reserved(answer, "big") == {"big-0": (11.0, "n")}
    assert not released(answer, "big")
    assert set(answer.bound("x-").values()) == {(20.0, "m")}


def test_r5_a_higher_one_starts_on_a_reserved_node_before_any_pod_is_evicted() -> None:
    answer = contended(m.pod("vip", 2, priority="high", at="20s", run_time="30s"), until="100s")
    assert answer.at("vip") == 20.0
    assert not answer.lines("evicted")
    assert not released(answer), "the node stays reserved behind it"


def test_r5_a_gang_of_higher_priority_too() -> None:
    answer = contended(m.gang("vip", 2, priority="high", at="20s"), until="30s")
    assert answer.times("vip-") == [20.0, 20.0]
    assert not answer.lines("evicted")


def test_r5_no_claim_is_released_if_there_is_another_place() -> None:
    answer = contended(m.node("m", 2, at="15s"), m.pod("vip", 2, priority="high", at="20s"), until="30s")
    assert answer.bound("vip")["vip"] == (20.0, "m")
    assert not released(answer)


def test_r5_no_claim_is_released_in_vain() -> None:
    answer = contended(m.pod("vip", 5, priority="high", at="20s"), until="30s")
    assert not released(answer)
    assert not answer.bound("vip")


def test_r5_without_preempt_a_higher_one_starts_on_a_node_reserved_for_a_lower_one() -> None:
    answer = contended(m.pod("vip", 2, priority="high", at="20s"), config=reserving(10), until="30s")
    assert answer.at("vip") == 20.0
    assert not answer.evicted()


def test_r5_the_plan_of_the_lower_one_is_mended_in_the_same_cycle() -> None:
    """Both nodes are reserved for `big`; the vip takes one. `big` is reserved for on the third, and the second stays
    closed throughout."""
    answer = simulate(
        CLASSES,
        [m.node(name) for name in "abc"],
        [full(2, on=name, name=f"full-{name}", priority="high", run="100s") for name in "abc"],
        m.gang("big", 2, cpu=4),
        m.pod("vip", 2, priority="high", at="20s", nodeSelector={"kubernetes.io/hostname": "a"}),
        m.pod("small", 2, at="21s", nodeSelector={"kubernetes.io/hostname": "b"}),
        config=reserving(10, 60),
        until="50s",
    )
    assert answer.bound("vip")["vip"] == (20.0, "a")
    assert {where for _, where in reserved(answer).values()} == {"b", "c"}
    assert answer.at("small") is None
    assert {time for time, _ in reserved(answer).values()} == {10.0, 20.0}


def test_r5_surplus_does_not_take_over_reserved_nodes() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        full(2, priority="high"),
        m.pod("big", 4),
        m.node("late", 1, at="15s"),
        m.gang("vip", 3, minimum=1, priority="high", at="20s"),
        config=reserving(10),
        until="30s",
    )
    assert [where for _, where in answer.bound("vip").values()] == ["late"]


def test_r5_an_equal_of_higher_priority_is_not_refused_with_a_lower_ones_answer() -> None:
    """Both ask for the same; the first, of equal priority, is closed out."""
    answer = contended(
        m.pod("same", 2, priority="nonpreempting", at="15s"),
        m.pod("vip", 2, priority="high", at="20s"),
        config=reserving(10),
        until="30s",
    )
    assert answer.at("vip") == 20.0
    assert answer.at("same") is None


def test_r3_a_starving_gang_of_higher_priority_takes_over_the_nodes_of_a_lower_one() -> None:
    """Only one of two nodes may be reserved (R6)."""
    answer = simulate(
        CLASSES,
        m.node("a"),
        m.node("b"),
        full(4, on="a", name="x", priority="high", run="50s"),
        full(4, on="b", name="y", priority="high", run="60s"),
        m.pod("low", 4, priority="low"),
        m.pod("high", 4, priority="high", at="5s"),
        config=reserving(10, 50),
        until="20s",
    )
    assert reserved(answer, "low")["low"][0] == 10.0
    assert reserved(answer, "high")["high"][0] == 15.0
    assert released(answer) == [(15.0, "low")]


@pytest.mark.parametrize("mode", [m.NON_STRICT, "Strict"])
def test_r1_a_non_strict_gang_is_reserved_for(mode: str) -> None:
    """Small pods come one after the other: without a reservation it would start after the last of them."""
    answer = simulate(
        m.node("n", 4),
        [m.pod(f"first-{i}", 2, run_time="20s") for i in range(2)],
        m.koordinator_gang("big", 2, cpu=4, mode=mode, wait="900s"),
        [m.pod(f"small-{i}", 2, run_time="20s", at=f"{10 * i + 15}s") for i in range(10)],
        m.node("late", 4, at="12s"),
        m.pod("busy", 4, nodeName="late", run_time="30s", at="12s"),
        config=reserving(10),
        until="200s",
    )
    assert set(answer.times("big-")) == {42.0}


def test_r5_of_two_reserved_nodes_the_one_of_the_lowest_priority_is_used() -> None:
    documents = [
        CLASSES[0],
        CLASSES[1],
        CLASSES[2],
        CLASSES[3],
        m.priority_class("humble", 100) | {"preemptionPolicy": "Never"},
        m.node("a"),
        m.node("b"),
        m.pod("x", 2, priority="low", nodeName="a"),
        m.pod("y", 2, priority="low", nodeName="b"),
        m.pod("p", 4, priority="nonpreempting", nodeSelector={"kubernetes.io/hostname": "a"}),
        m.pod("h", 4, priority="humble", nodeSelector={"kubernetes.io/hostname": "b"}),
    ]
    answer = simulate(
        documents, m.pod("vip", 2, priority="high", at="20s"), config=reserving(10, actions=EVERYTHING), until="30s"
    )
    assert answer.bound("vip")["vip"] == (20.0, "b")
    assert reserved(answer, "p")["p"] == (10.0, "a")


def test_r5_the_claim_goes_before_victims_that_would_be_lower() -> None:
    """Both would do: releasing big's claim on n, or evicting the lowest pod on m."""
    answer = contended(
        m.node("m", 2, at="15s"),
        m.pod("lowest", 2, priority="low", nodeName="m", at="15s"),
        m.pod("vip", 2, priority="high", at="20s"),
        until="30s",
    )
    assert answer.bound("vip")["vip"] == (20.0, "n")
    assert not answer.lines("evicted")


def test_r5_a_claim_is_released_for_one_of_those_that_may_replace_a_lost_member() -> None:
    """Of two that wait the first fits nowhere, and is passed over (G3)."""
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.gang("a", 2, group_priority="high"),
        m.pod("big", 2, priority="low", at="1s"),
        m.step("20s", "delete", "Pod", "a-1"),
        m.pod("a-2", 3, group="a", at="20s"),
        m.pod("a-3", 1, group="a", at="20s"),
        config=reserving(10, actions=EVERYTHING),
        until="30s",
    )
    assert reserved(answer, "big")
    assert answer.at("a-3") == 20.0
    assert answer.at("a-2") is None


def test_r5_a_job_of_higher_priority_is_enqueued_though_only_reserved_nodes_have_room() -> None:
    """At enqueue (M6), too, a reservation of lower priority does not count; one of equal priority does."""

    def answer(priority: str) -> Answer:
        return simulate(
            CLASSES,
            m.node("n"),
            m.pod("full", 1, run_time="100s"),
            m.job("low", m.role("w", 4, run_time="10s"), at="1s", priorityClassName="low"),
            m.job("j", m.role("w", 3, run_time="10s"), at="15s", priorityClassName=priority),
            config=reserving(),
            until="24s",
        )

    assert answer("high").times("j-") == [15.0] * 3
    assert not answer("low").all("Pod", "j-")


GROUP = ["default/a", "default/b"]


@pytest.mark.parametrize("mode", ["Strict", "NonStrict"])
def test_r5_nodes_of_a_groups_gangs_are_open_to_all_of_them_when_it_preempts(mode: str) -> None:
    """`late` starts in the cycle in which the group is complete: nodes are reserved before it may be evicted. In the
    next cycle the group preempts, on the nodes that are reserved for its gangs."""
    answer = simulate(
        CLASSES,
        m.node("n", 8),
        m.pod("early", 3),
        m.koordinator_gang("a", 1, 2, 2, groups=GROUP, mode=mode, priority="high"),
        m.koordinator_gang("b", 2, 2, 2, groups=GROUP, mode=mode, priority="high"),
        m.koordinator_gang("a", 1, 2, 2, first=1, groups=GROUP, mode=mode, priority="high", at="10s"),
        m.pod("late", 4, at="10s"),
        config=reserving(5, actions=(*QUIET, "preempt")),
    )
    assert answer.times("a-") == answer.times("b-") == [10.0, 10.0]


def test_r5_nodes_of_a_groups_gangs_are_open_to_all_of_them_when_it_starts() -> None:
    """`a` is reserved for on n, `b` on m. The node that b was to start on grows, and has room for both."""
    answer = simulate(
        m.node("n", 2),
        m.node("m", 2),
        full(2, run=None),
        full(2, run="50s", on="m", name="other"),
        m.koordinator_gang("a", 1, 1, 2, groups=GROUP),
        m.koordinator_gang("b", 1, 1, 2, groups=GROUP),
        m.patch("20s", "Node", "m", status={"allocatable": {"cpu": "4", "memory": "64Gi", "pods": "110"}}),
        config=reserving(10),
    )
    assert {where for _, where in reserved(answer).values()} == {"n", "m"}
    assert answer.times("a-") == answer.times("b-") == [50.0]
