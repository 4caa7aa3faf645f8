"""K12: claims of any kind that are in each other's way: a hold, a reservation, room that is being freed."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]
QUIET = ("enqueue", "allocate", "backfill")


def reserving(*actions: str, after: int = 10) -> m.Obj:
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": 100}
    named: list[m.Obj] = [{"name": name} for name in (*QUIET, *actions)]
    return {"actions": [*named, {"name": "reserve", "arguments": arguments}]}


def nonstrict(name: str, count: int, at: str, **fields: Any) -> list[m.Obj]:
    return m.koordinator_gang(name, count, mode="NonStrict", at=at, wait="1h", **fields)


def nodes() -> list[m.Obj]:
    return [m.node("n1", labels={"for": "b"}), m.node("n2")]


def says(answer: Answer, gang: str) -> list[str]:
    """What the events on the pods of a gang say of released claims."""
    return [
        event["message"]
        for event in answer.all("Event")
        if "it released" in event["message"] and event["involvedObject"]["name"].startswith(gang)
    ]


# ---- a hold and a reservation, which use one queue


def by_capability(holder: str) -> list[Any]:
    """b is reserved for on n1. a holds four pods on n2 and needs one more, for which only n1 has room. Both together
    are more than their queue may use."""
    return [
        m.queue("q", capability={"cpu": "6"}),
        nodes(),
        m.pod("full", 4, nodeName="n1", run_time="100s"),
        m.job("b", m.role("w", 4, run_time="50s", nodeSelector={"for": "b"}), queue="q"),
        nonstrict("a", 5, holder, run_time="50s", queue="q"),
    ]


def test_k12_a_hold_and_a_reservation_by_the_capability_of_their_queue() -> None:
    answer = simulate(*by_capability("20s"), config=reserving())
    assert answer.at("b-w-0", "reserved") == 10.0
    assert answer.at("a-3", "held") == 20.0
    assert answer.times("b-") == [100.0] * 4
    assert answer.times("a-") == [150.0] * 5
    assert not answer.lines("timeout")


def test_k12_the_victim_says_so_and_its_clock_starts_anew() -> None:
    documents = by_capability("20s")
    for pod in documents[-1]:
        pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/waiting-time"] = "90s"
    answer = simulate(*documents, config=reserving(), until="120s")
    assert answer.times("b-") == [100.0] * 4
    assert not answer.lines("timeout"), "its clock ran out at 110 s otherwise"
    assert any("so that default/b could start" in message for message in says(answer, "a-"))
    assert "it released" in answer.why("default/a")


@pytest.mark.parametrize("at", ["30s", "99500ms", "100500ms"])
def test_k12_a_restart_changes_nothing(at: str) -> None:
    documents = by_capability("20s")
    plain = simulate(*documents, config=reserving())
    assert simulate(*documents, m.restart(at), config=reserving()).bound() == plain.bound()


@pytest.mark.parametrize("declared", ["pods", "PodGroup"])
def test_k12_i5_the_victim_says_so_after_a_restart_too(declared: str) -> None:
    documents = by_capability("20s")
    if declared == "PodGroup":
        group = m.sigs_podgroup("a", 5, mode="NonStrict", at="20s", wait="1h")
        group["metadata"]["annotations"]["scheduling.volcano.sh/queue-name"] = "q"
        documents[-1] = [group, *m.labelled_pods("a", 5, at="20s", run_time="50s")]
    whys = [
        simulate(*documents, *restarts, config=reserving(), until="120s").why("default/a")
        for restarts in ([], [m.restart("110s")])
    ]
    assert "it released 4 held pods so that default/b could start" in whys[0]
    assert whys[0] == whys[1]
    started = simulate(*documents, m.restart("110s"), m.restart("160s"), config=reserving())
    assert started.times("a-") == [150.0] * 5


# ---- a hold and room that is being freed, by minResources


def by_min_resources() -> list[Any]:
    """b evicts on n1. Meanwhile a holds n2 and needs one more pod, for which only n1 has room: b then finds less free
    than its minResources."""
    of_b = [m.sigs_podgroup("b", 1, at="10s", minResources={"cpu": "6"})]
    of_b += m.labelled_pods("b", 1, cpu=4, at="10s", priority="high", run_time="50s", nodeSelector={"for": "b"})
    return [
        CLASSES,
        nodes(),
        m.pod("low", 4, nodeSelector={"for": "b"}, priority="low", stop_delay="20s"),
        of_b,
        nonstrict("a", 5, "15s", run_time="50s", priority="high"),
    ]


def test_k12_a_hold_and_room_that_is_being_freed() -> None:
    answer = simulate(*by_min_resources(), config={"actions": "enqueue, allocate, backfill, preempt"})
    assert answer.evicted() == [(10.0, "low")]
    assert answer.at("b-0") == 30.0
    assert answer.times("a-") == [80.0] * 5


def test_k12_a_hold_and_a_reservation_by_min_resources() -> None:
    documents = by_min_resources()
    documents[2] = m.pod("low", 4, nodeName="n1", run_time="100s")
    answer = simulate(*documents, config=reserving())
    assert answer.lines("reserved", "b-0")
    assert answer.at("b-0") == 100.0
    assert answer.times("a-") == [150.0] * 5


# ---- the seed's example, with every action


@pytest.mark.parametrize("actions", [(), ("preempt", "reclaim")])
def test_k12_the_seeds_example_runs_with_every_action(actions: tuple[str, ...]) -> None:
    """Ten units; 3, 3 and 4 of three groups of five are held; then all of them starve."""
    first = m.pods(10, "first-", 1, run_time="5s")
    groups = [pod for name in "abc" for pod in nonstrict(name, 5, "1s", run_time="10s")]
    answer = simulate(m.node("n", 10), first, groups, config=reserving(*actions, after=3))
    assert len(answer.bound("a-")) == len(answer.bound("b-")) == len(answer.bound("c-")) == 5
    assert not answer.lines("timeout")
