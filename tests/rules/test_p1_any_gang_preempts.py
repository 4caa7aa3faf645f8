"""P1, K7: NonStrict groups preempt and reclaim like any gang; `minResources` decide whether, not how many leave."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]


def evicted(answer: Answer) -> set[str]:
    return {line["name"] for line in answer.lines("evicted")}


def starts(answer: Answer, *names: str) -> set[float | None]:
    return {answer.at(name) for name in names}


@pytest.mark.parametrize("mode", ["Strict", "NonStrict"])
def test_p1_a_koordinator_gang_of_either_mode_preempts(mode: str) -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.pods(2, "low-", 1, priority="low"),
        m.koordinator_gang("g", 2, mode=mode, priority="high", at="10s"),
        until="60s",
    )
    assert evicted(answer) == {"low-0", "low-1"}
    assert starts(answer, "g-0", "g-1") == {10.0}


def test_p1_what_a_nonstrict_gang_holds_is_not_freed_again() -> None:
    """One CPU is free and held for `g-0`: one victim makes room for the other member."""
    answer = simulate(
        CLASSES,
        m.node("n", 3),
        m.pods(2, "low-", 1, priority="low"),
        m.koordinator_gang("g", 2, mode="NonStrict", priority="high", at="10s"),
        until="60s",
    )
    assert len(evicted(answer)) == 1
    assert starts(answer, "g-0", "g-1") == {10.0}


def test_p1_a_nonstrict_gang_moves_what_it_holds_if_it_fits_only_so() -> None:
    """`g-0` is held on `n` when `big` of the same gang comes, which fits only there, and beside nothing else."""
    node = {"kubernetes.io/hostname": "n"}
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.node("o", 1),
        m.pod("low", 1, priority="low", nodeSelector={"kubernetes.io/hostname": "o"}),
        m.koordinator_gang("g", 1, 2, mode="NonStrict", priority="high", at="1s"),
        m.pod(
            "g-1",
            2,
            priority="high",
            at="10s",
            nodeSelector=node,
            annotations=m.koordinator_annotations("g", 2, mode="NonStrict"),
        ),
        until="60s",
    )
    assert evicted(answer) == {"low"}
    assert starts(answer, "g-0", "g-1") == {10.0}


def test_p1_a_nonstrict_gang_for_which_evictions_do_not_suffice_evicts_none() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 2),
        m.pods(2, "low-", 1, priority="low"),
        m.koordinator_gang("g", 3, mode="NonStrict", priority="high", at="10s"),
        until="60s",
    )
    assert not evicted(answer)


def test_p1_a_nonstrict_gang_reclaims() -> None:
    answer = simulate(
        m.node("n", 4),
        [m.queue("a"), m.queue("b")],
        m.gang("a", 4, 1, cpu=1, queue="a"),
        m.koordinator_gang("g", 2, mode="NonStrict", queue="b", at="10s"),
        until="60s",
    )
    assert evicted(answer) == {"a-2", "a-3"}
    assert starts(answer, "g-0", "g-1") == {10.0}


@pytest.mark.parametrize("api, label", [(m.SIGS, m.SIGS_LABEL), (m.PLUGINS, m.PLUGINS_LABEL)])
@pytest.mark.parametrize("cpu, gone", [("2", {"low-1"}), ("3", set()), ("9", set())])
def test_k7_min_resources_of_a_preemptor(api: str, label: str, cpu: str, gone: set[str]) -> None:
    """Its pod needs 2 CPU. With 2 as minResources one victim suffices and it starts; with 3 free room and what one
    victim leaves do not reach them, and no second victim is evicted for them; 9 are more than the cluster has."""
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("low-0", 2, priority="low"),
        m.pod("low-1", 2, priority="low", at="1s"),
        m.sigs_podgroup("g", 1, api=api, minResources={"cpu": cpu}, at="10s"),
        m.labelled_pods("g", 1, label, 2, priority="high", at="10s"),
        until="60s",
    )
    assert evicted(answer) == gone
    assert answer.at("g-0") == (10.0 if gone else None)


def test_k7_r5_claims_are_not_released_for_a_preemptor_that_min_resources_keep_waiting() -> None:
    """Its pod would fit in place of the one that is held, and 4 free CPUs are not 5: it waits, and nothing is lost."""
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.node("m", 4),
        m.pod("full", 4, priority="high"),
        m.koordinator_gang("low", 2, cpu=3, mode=m.NON_STRICT, priority="low"),
        m.sigs_podgroup("g", 1, minResources={"cpu": "5"}, at="10s"),
        m.labelled_pods("g", 1, cpu=3, priority="high", at="10s"),
        until="30s",
    )
    assert answer.pending("default/g")["reason"] == "NotEnoughResources"
    assert [line["name"] for line in answer.lines("held")] == ["low-0"]
    assert not answer.lines("released")


def test_r5_k6_what_a_gang_holds_stays_held_while_only_its_reservation_is_released() -> None:
    """Nodes are reserved for both pods of `low`, one of which is held on another node later. To release the reservation
    makes no room for `g`: what is held is released."""
    arguments = {"starvingJobTimeThreshold": 5, "reservedNodePercent": 100}
    answer = simulate(
        CLASSES,
        m.node("m", 4),
        m.pod("full", 4, priority="high"),
        m.node("n", 3, at="8s"),
        m.koordinator_gang("low", 2, cpu=2, mode=m.NON_STRICT, priority="low"),
        m.gang("g", 2, priority="high", at="10s"),
        config={
            "actions": [{"name": "allocate"}, {"name": "preempt"}, {"name": "reserve", "arguments": arguments}],
        },
        until="20s",
    )
    assert {line["name"] for line in answer.lines("reserved")} == {"low-0", "low-1"}
    assert answer.nodes("g-") == {"g-0": "n", "g-1": "n"}


# ---- D3: members that an earlier wave lost

LATER_WAVES: dict[str, m.Obj] = {
    "fits on no node": m.role("work", 1, nodeSelector={"no": "node"}),
    "is too large": m.role("work", 4),
    "is gated": m.role("work", 1, schedulingGates=[{"name": "example.com/hold"}]),
    "is another scheduler's": m.role("work", 1, schedulerName="another"),
}


@pytest.mark.parametrize("action", ["preempt", "reclaim"])
@pytest.mark.parametrize("why", LATER_WAVES)
def test_p1_d3_a_lost_member_of_an_earlier_wave_preempts_alone(why: str, action: str) -> None:
    """The room is its own while the victim stops, and one victim is enough."""
    queue, priority = ("a", "high") if action == "preempt" else ("b", "low")
    later = {**LATER_WAVES[why], "dependsOn": {"name": ["master"]}}
    job = m.job("j", m.role("master", 2), later, priorityClassName=priority, queue=queue)
    answer = simulate(
        m.priority_class("high", 1000),
        m.priority_class("low", 10),
        [m.queue("a"), m.queue("b", weight=4)],
        m.node("n", 2),
        job,
        m.node("late", 3, at="3s"),
        m.pods(3, "a", priority="low", queue="a", stop_delay="5s", at="3s"),
        m.step("9s", "patch", "Node", "n", patch={"spec": {"unschedulable": True}}),
        m.step("10s", "delete", "Pod", "j-master-1"),
        m.pod("thief", priority="low", queue="a", at="12s"),
        config={"actions": f"enqueue, allocate, backfill, {action}"},
        until="60s",
    )
    assert answer.bound("j-master-1")["j-master-1"] == (15.0, "late")
    assert len(answer.evicted()) == 1
    assert not answer.bound("j-work")
