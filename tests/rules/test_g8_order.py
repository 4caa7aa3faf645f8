"""G8: which gang is served next, in its queue and among queues, and whom it blocks."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import NO_EVICTIONS, simulate


def starts(answer: Answer) -> list[str]:
    """Gangs, named by the letter their pods begin with, in the order in which they started."""
    return list(dict.fromkeys(name[0] for name in answer.order()))


def test_g8_higher_priority_first_then_older_then_name() -> None:
    full = m.pod("z", 2, nodeName="n", run_time="10s")
    waiting = [
        *m.gang("d", 2, run_time="1s", at="2s"),
        *m.gang("c", 2, run_time="1s", at="2s"),
        *m.gang("b", 2, run_time="1s", at="1s"),
        *m.gang("a", 2, run_time="1s", at="3s", priority="high"),
    ]
    answer = simulate(m.HIGH_LOW, m.node("n", 2), full, waiting)
    assert starts(answer)[1:] == ["a", "b", "c", "d"]


def test_g8_a_group_and_a_pod_of_the_same_instant() -> None:
    """A group that is enqueued at once is tried at once: no other gang slips in between."""
    answer = simulate(m.HIGH_LOW, m.node("n", 2), m.pods(2, "z", priority="low"), m.gang("a", 2, priority="high"))
    assert sorted(answer.bound()) == ["a-0", "a-1"]
    rich = m.gang("a", 2, priority="high", resources={"cpu": "2"})
    answer = simulate(m.HIGH_LOW, m.node("n", 2), m.pods(2, "z", priority="low"), rich)
    assert sorted(answer.bound()) == ["a-0", "a-1"]


def test_g8_namespace_before_name() -> None:
    answer = simulate(
        m.node("n", 2), m.gang("a", 2, namespace="two", run_time="1s"), m.gang("b", 2, namespace="one", run_time="1s")
    )
    assert starts(answer) == ["b", "a"]


def test_g8_a_groups_own_class_counts_before_its_pods() -> None:
    answer = simulate(
        m.HIGH_LOW,
        m.node("n", 2),
        m.pod("z", 2, nodeName="n", run_time="10s"),
        m.gang("a", 2, run_time="1s", group_priority="low", priority="high"),
        m.gang("b", 2, run_time="1s", group_priority="high", priority="low", at="1s"),
        m.gang("c", 2, run_time="1s"),
        config=NO_EVICTIONS,
    )
    assert starts(answer)[1:] == ["b", "a", "c"]


def test_g8_else_the_highest_of_its_pods() -> None:
    mixed = [
        m.podgroup("b", 2),
        m.pod("b-0", group="b", run_time="1s"),
        m.pod("b-1", group="b", run_time="1s", priority="high"),
    ]
    answer = simulate(
        m.HIGH_LOW,
        m.node("n", 2),
        m.pod("z", 2, nodeName="n", run_time="10s"),
        m.gang("a", 2, run_time="1s", priority="low"),
        mixed,
        config=NO_EVICTIONS,
    )
    assert starts(answer)[1:] == ["b", "a"]


def test_g8_a_job_that_waits_for_enqueue_has_its_templates_priority() -> None:
    answer = simulate(
        m.HIGH_LOW,
        m.node("n", 2),
        m.pod("z", 2, nodeName="n", run_time="10s"),
        m.job("a", m.role("w", 2, run_time="1s")),
        m.job("b", m.role("v", 1, run_time="1s"), m.role("w", 1, run_time="1s", priority="high")),
        m.job("c", m.role("w", 2, run_time="1s", priority="low")),
        m.job("d", m.role("w", 2, run_time="1s"), priority="high", at="1s"),
        config=NO_EVICTIONS,
    )
    assert starts(answer)[1:] == ["b", "d", "c", "a"]


def test_g8_the_global_default_class_counts_too() -> None:
    classes = [m.priority_class("usual", 100, default=True), m.priority_class("low", 10)]
    answer = simulate(
        classes,
        m.node("n", 2),
        m.pod("z", 2, nodeName="n", run_time="10s"),
        m.job("a", m.role("w", 2, run_time="1s"), priority="low"),
        m.job("b", m.role("w", 2, run_time="1s")),
    )
    assert starts(answer)[1:] == ["b", "a"]


def test_g8_a_gang_that_failed_does_not_block_those_behind_it() -> None:
    answer = simulate(m.HIGH_LOW, m.node("n", 2), m.gang("a", 3, priority="high"), m.gang("b", 2, at="1s"))
    assert answer.times() == [1.0, 1.0]


def test_g8_a_gang_that_was_refused_at_enqueue_does_not_block_those_behind_it() -> None:
    answer = simulate(m.node("n", 2), m.job("a", m.role("w", 9)), m.job("b", m.role("w", 2), at="1s"))
    assert answer.order() == ["b-w-0", "b-w-1"]


def test_g8_in_a_fifo_queue_no_pod_is_evicted_for_a_gang_behind_one_like_it() -> None:
    """For the first one a pod is being evicted already: until it has started those behind it are not tried."""
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        [m.pod(f"low-{index}", stop_delay="10s") for index in range(4)],
        [m.pod(f"p-{index}", queue="q", at="5s") for index in range(2)],
        until="60s",
    )
    assert [line["t"] for line in answer.lines("evicted")] == [5.0, 15.0]
    assert answer.times("p-") == [15.0, 25.0]


@pytest.mark.parametrize("behind", ["job", "group", "pod"])
def test_g8_in_a_fifo_queue_a_failed_gang_blocks(behind: str) -> None:
    second = {
        "job": [m.job("b", m.role("w", 1), queue="q", at="1s")],
        "group": m.gang("b", 1, queue="q", at="1s"),
        "pod": [m.pod("b-0", at="1s", annotations={"scheduling.volcano.sh/queue-name": "q"})],
    }[behind]
    first = m.gang("a", 4, queue="q")
    fifo = m.queue("q", dequeueStrategy="fifo")
    answer = simulate(m.node("n", 3), fifo, first, second, m.node("late", 1, at="50s"), m.node("later", 4, at="60s"))
    assert answer.times("a") == [50.0] * 4
    assert answer.times("b") == [60.0]
    stuck = simulate(m.node("n", 3), fifo, first, second)
    assert not stuck.bound()
    (reported,) = [one["message"] for one in stuck.data["pending"] if one["gang"].startswith("default/b")]
    assert "behind default/a" in reported


@pytest.mark.parametrize("behind", ["job", "group", "best effort"])
def test_g8_in_a_fifo_queue_a_gang_refused_at_enqueue_blocks(behind: str) -> None:
    second = {
        "job": [m.job("b", m.role("w", 1), queue="q", at="1s")],
        "group": m.gang("b", 1, queue="q", at="1s"),
        "best effort": m.gang("b", 1, cpu=None, queue="q", at="1s"),
    }[behind]
    fifo = m.queue("q", dequeueStrategy="fifo")
    squatter = m.pod("z", 3, nodeName="n", run_time="50s")
    answer = simulate(m.node("n", 4), fifo, squatter, m.job("a", m.role("w", 4), queue="q"), second, until="40s")
    assert not answer.bound("a")
    assert not answer.bound("b")
    answer = simulate(m.node("n", 4), fifo, squatter, m.job("a", m.role("w", 4, run_time="10s"), queue="q"), second)
    assert answer.times("a") == [50.0] * 4
    assert answer.times("b") == [50.0 if behind == "best effort" else 60.0]


@pytest.mark.parametrize(
    "lifted",
    [
        [m.step("10s", "delete", "PodGroup", "a")],
        [m.step("10s", "delete", "Pod", f"a-{i}") for i in range(4)],
        [m.step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 2}})],
        [m.step("10s", "patch", "Queue", "q", patch={"spec": {"dequeueStrategy": "traverse"}})],
        [m.step("10s", "patch", "PodGroup", "b", patch={"spec": {"queue": "default"}})],
    ],
    ids=["group gone", "pods gone", "lower minimum", "no longer fifo", "another queue"],
)
def test_g8_in_a_fifo_queue_those_behind_go_once_the_first_is_out_of_their_way(lifted: list[m.Obj]) -> None:
    fifo = m.queue("q", dequeueStrategy="fifo")
    answer = simulate(m.node("n", 3), fifo, m.gang("a", 4, queue="q"), m.gang("b", 1, queue="q", at="1s"), lifted)
    assert answer.at("b-0") == 10.0


def test_g8_a_fifo_queue_blocks_no_gang_of_another_queue() -> None:
    answer = simulate(
        m.node("n", 3),
        m.queue("q", dequeueStrategy="fifo"),
        m.queue("r"),
        m.gang("a", 4, queue="q"),
        m.gang("b", 1, queue="r"),
    )
    assert answer.order() == ["b-0"]


def test_g8_priority_counts_before_age_in_a_fifo_queue() -> None:
    answer = simulate(
        m.HIGH_LOW,
        m.node("n", 3),
        m.queue("q", dequeueStrategy="fifo"),
        m.gang("a", 4, queue="q"),
        m.gang("b", 2, queue="q", at="1s", group_priority="high"),
    )
    assert answer.times("b") == [1.0, 1.0]


def test_g8_the_queue_of_the_highest_priority_is_served_first() -> None:
    answer = simulate(
        m.HIGH_LOW,
        m.node("n", 2),
        m.pod("z", 2, nodeName="n", run_time="10s"),
        m.queue("minor"),
        m.queue("major", priority=5),
        m.gang("a", 2, queue="minor", run_time="1s", priority="high"),
        m.gang("b", 2, queue="major", run_time="1s", at="2s"),
        config=NO_EVICTIONS,
    )
    assert starts(answer)[1:] == ["b", "a"]


def test_g8_then_that_of_the_lowest_share_chosen_anew_after_each_gang() -> None:
    one = [doc for i in range(4) for doc in m.gang(f"a{i}", 1, queue="one")]
    two = [doc for i in range(4) for doc in m.gang(f"b{i}", 1, queue="two", at="1s")]
    hold = m.pod("z", 6, nodeName="n", delete_at="5s")
    answer = simulate(m.node("n", 6), m.queue("one"), m.queue("two"), hold, one, two, config=NO_EVICTIONS)
    assert [name[0] for name in answer.order()[1:]] == ["a", "b", "a", "b", "a", "b"]


def test_g8_enqueued_gangs_count_towards_a_queues_share() -> None:
    one = [m.job(f"a{i}", m.role("w", 1, cpu=2), queue="one") for i in range(3)]
    two = [m.job(f"b{i}", m.role("w", 1, cpu=2), queue="two", at="1s") for i in range(3)]
    hold = m.pod("z", 4, nodeName="n", delete_at="5s")
    answer = simulate(m.node("n", 4), m.queue("one"), m.queue("two"), hold, one, two, config=NO_EVICTIONS)
    assert starts(answer)[1:] == ["a", "b"]
    assert len(answer.bound("a")) == len(answer.bound("b")) == 1


CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "none"}]}
HELD: dict[str, list[m.Obj]] = {
    "pods": m.gang("a", 2, queue="q", **CLAIMS),
    "one of its pods": [m.podgroup("a", 2, queue="q"), m.pod("a-0", group="a", **CLAIMS), m.pod("a-1", group="a")],
    "of one pod": [m.pod("a-0", queue="q", **CLAIMS)],
    "a job": [m.job("a", m.role("w", 2, **CLAIMS), queue="q")],
    "a job with a pod that does not exist": [m.resource_quota(1), m.job("a", m.role("w", 2, **CLAIMS), queue="q")],
}


@pytest.mark.parametrize("held", HELD)
def test_g8_n1_in_a_fifo_queue_a_gang_that_is_held_is_not_in_line(held: str) -> None:
    fifo = m.queue("q", dequeueStrategy="fifo")
    behind = [m.pod("b", queue="q", namespace="other", at="1s")]
    answer = simulate(m.node("n", 4), fifo, HELD[held], behind, until="9s")
    assert [one["reason"] for one in answer.data["pending"]] == ["UnsupportedConstraint"]
    assert answer.bound() == {"b": (1.0, "n")}
