"""G8: a pod is not started and preempted in one instant. The pods of a Job exist one round after it was enqueued: gangs
of lower priority leave it the room without which its minima would not fit."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import NO_EVICTIONS, simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]


def evicted(answer: Answer) -> list[str]:
    return [line["name"] for line in answer.lines("evicted")]


def test_g8_a_lower_pod_does_not_start_in_the_room_of_a_job_of_the_same_instant() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("low", 4, priority="low", run_time="60s"),
        m.job("high", m.role("w", 4, run_time="60s"), priority="high"),
    )
    assert answer.at("high-w-0") == 0.0
    assert answer.at("low") == 60.0
    assert not evicted(answer)


def test_g8_no_pod_is_evicted_for_a_gang_that_leaves_room_to_such_a_job() -> None:
    """At 30 s `full` ends, and `high` is enqueued. `low` sleeps, and would fit if `victim` left."""
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("victim", 1, run_time="100s"),
        m.pod("full", 3, nodeName="n", priority="high", run_time="30s"),
        m.pod("low", 4, priority="low", at="10s", run_time="10s"),
        m.job("high", m.role("w", 1, cpu=3, run_time="60s"), priority="high", at="30s"),
        until="200s",
    )
    assert answer.at("high-w-0") == 30.0
    assert evicted(answer) == ["victim"]
    assert answer.at("low") == 90.0


def test_g8_nor_by_order() -> None:
    """At 30 s `full` ends and `high` is enqueued. By order `low` comes before `victim`, and would fit if that left."""
    by_order = {"name": "preempt", "arguments": {"by": "order"}}
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("victim", 1, run_time="100s"),
        m.pod("full", 3, nodeName="n", priority="high", run_time="30s"),
        m.pod("low", 4, priority="low", at="10s", run_time="10s"),
        m.job("high", m.role("w", 1, cpu=3, run_time="60s"), priority="high", at="30s"),
        config={"actions": [{"name": "enqueue"}, {"name": "allocate"}, {"name": "backfill"}, by_order]},
        until="200s",
    )
    assert answer.at("high-w-0") == 30.0
    assert evicted(answer) == ["victim"]
    assert answer.at("low") == 90.0


def test_g8_a_lower_pod_beside_which_the_job_fits_starts_at_once() -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("low", 1, priority="low"),
        m.job("high", m.role("w", 3), priority="high"),
        until="20s",
    )
    assert answer.at("low") == answer.at("high-w-2") == 0.0
    assert not evicted(answer)


def test_g8_room_is_left_for_minima_only() -> None:
    """The Job needs 2 of its 4 pods: the pod of lower priority has room, and surplus does not preempt it."""
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("low", 2, priority="low"),
        m.job("high", m.role("w", 4, 2), priority="high"),
        until="20s",
    )
    assert answer.at("low") == 0.0
    assert not evicted(answer)


def test_g8_a_pod_that_terms_of_the_job_keep_away_does_not_put_off_one_alike_but_for_labels() -> None:
    """The job's pod must be away from `a`; `b` may start beside it, and comes before `c`."""
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    answer = simulate(
        CLASSES,
        m.node("n", 4, labels={"kubernetes.io/hostname": "n"}),
        m.pod("a", 3, priority="low", labels={"app": "x"}),
        [m.pod("b", 3, priority="low"), m.pod("c", 2, priority="low")],
        m.job("high", m.role("w", 1, affinity=apart), priority="high"),
        until="20s",
    )
    assert answer.at("b") == answer.at("high-w-0") == 0.0
    assert answer.at("a") is answer.at("c") is None


@pytest.mark.parametrize("priority", ["low", "high"])
def test_g8_a_gang_of_equal_or_higher_priority_takes_its_turn(priority: str) -> None:
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.pod("first", 4, priority="high"),
        m.job("job", m.role("w", 4), priority=priority),
        config=NO_EVICTIONS,
        until="20s",
    )
    assert answer.at("first") == 0.0


def test_g8_a_job_whose_pods_are_refused_keeps_no_room() -> None:
    """A quota of one pod, which exists: the Job's pods are refused, and the lower pod starts in that instant."""
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.resource_quota(1),
        m.pod("low", 4, priority="low"),
        m.job("high", m.role("w", 4), priority="high"),
        until="20s",
    )
    assert answer.at("low") == 0.0


def test_g8_a_restart_between_enqueue_and_pods_changes_nothing() -> None:
    documents = [
        CLASSES,
        m.node("n", 4),
        m.pod("low", 4, priority="low", run_time="60s", at="1s"),
        m.job("high", m.role("w", 4, run_time="60s"), priority="high", at="1s"),
    ]
    plain, restarted = simulate(*documents), simulate(*documents, m.restart("1s"))
    assert plain.at("low") == restarted.at("low") == 61.0


def test_g8_in_a_fifo_queue_a_gang_that_leaves_room_to_a_job_blocks_those_behind_it() -> None:
    """The first gang of the queue does not fit, and is tried again in the next cycle: until then it blocks too."""
    answer = simulate(
        CLASSES,
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo", capability={"cpu": "2"}),
        m.gang("first", 2, cpu=2, queue="q"),
        m.gang("second", 1, queue="q", at="0s"),
        m.job("high", m.role("w", 1), priority="high"),
        config=NO_EVICTIONS,
        until="20s",
    )
    assert answer.at("high-w-0") == 0.0
    assert answer.at("second-0") is None
    assert answer.pending("default/second")["reason"] == "BlockedByFIFO"
