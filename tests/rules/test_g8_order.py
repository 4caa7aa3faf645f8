"""G8: which gang is served next, in its queue and among queues, and whom it blocks."""

from __future__ import annotations

import pytest

from stories import (
    HIGH_LOW,
    NO_EVICTIONS,
    Answer,
    Obj,
    gang,
    job,
    node,
    pod,
    podgroup,
    pods,
    priority_class,
    queue,
    role,
    simulate,
    step,
)


def starts(answer: Answer) -> list[str]:
    """Gangs, named by the letter their pods begin with, in the order in which they started."""
    return list(dict.fromkeys(name[0] for name in answer.order()))


def test_g8_higher_priority_first_then_older_then_name() -> None:
    full = pod("z", 2, nodeName="n", run="10s")
    waiting = [
        *gang("d", 2, run="1s", at="2s"),
        *gang("c", 2, run="1s", at="2s"),
        *gang("b", 2, run="1s", at="1s"),
        *gang("a", 2, run="1s", at="3s", priority="high"),
    ]
    answer = simulate(HIGH_LOW, node("n", 2), full, waiting)
    assert starts(answer)[1:] == ["a", "b", "c", "d"]


def test_g8_a_group_and_a_pod_of_the_same_instant() -> None:
    """A group that is let in at once is tried at once: nobody slips in between."""
    answer = simulate(HIGH_LOW, node("n", 2), pods(2, "z", priority="low"), gang("a", 2, priority="high"))
    assert sorted(answer.bound()) == ["a-0", "a-1"]
    rich = gang("a", 2, priority="high", resources={"cpu": "2"})
    answer = simulate(HIGH_LOW, node("n", 2), pods(2, "z", priority="low"), rich)
    assert sorted(answer.bound()) == ["a-0", "a-1"]


def test_g8_namespace_before_name() -> None:
    answer = simulate(
        node("n", 2), gang("a", 2, namespace="two", run="1s"), gang("b", 2, namespace="one", run="1s")
    )  # fmt: skip
    assert starts(answer) == ["b", "a"]


def test_g8_a_groups_own_class_counts_before_its_pods() -> None:
    answer = simulate(
        HIGH_LOW, node("n", 2), pod("z", 2, nodeName="n", run="10s"),
        gang("a", 2, run="1s", group_priority="low", priority="high"),
        gang("b", 2, run="1s", group_priority="high", priority="low", at="1s"),
        gang("c", 2, run="1s"), config=NO_EVICTIONS,
    )  # fmt: skip
    assert starts(answer)[1:] == ["b", "a", "c"]


def test_g8_else_the_highest_of_its_pods() -> None:
    mixed = [podgroup("b", 2), pod("b-0", group="b", run="1s"), pod("b-1", group="b", run="1s", priority="high")]
    answer = simulate(
        HIGH_LOW, node("n", 2), pod("z", 2, nodeName="n", run="10s"), gang("a", 2, run="1s", priority="low"), mixed,
        config=NO_EVICTIONS
    )  # fmt: skip
    assert starts(answer)[1:] == ["b", "a"]


def test_g8_a_job_that_waits_for_enqueue_has_its_templates_priority() -> None:
    answer = simulate(
        HIGH_LOW, node("n", 2), pod("z", 2, nodeName="n", run="10s"), job("a", role("w", 2, run="1s")),
        job("b", role("v", 1, run="1s"), role("w", 1, run="1s", priority="high")),
        job("c", role("w", 2, run="1s", priority="low")), job("d", role("w", 2, run="1s"), priority="high", at="1s"),
        config=NO_EVICTIONS,
    )  # fmt: skip
    assert starts(answer)[1:] == ["b", "d", "c", "a"]


def test_g8_the_global_default_class_counts_too() -> None:
    classes = [priority_class("usual", 100, default=True), priority_class("low", 10)]
    answer = simulate(
        classes, node("n", 2), pod("z", 2, nodeName="n", run="10s"),
        job("a", role("w", 2, run="1s"), priority="low"), job("b", role("w", 2, run="1s")),
    )  # fmt: skip
    assert starts(answer)[1:] == ["b", "a"]


def test_g8_a_gang_that_failed_does_not_block_those_behind_it() -> None:
    answer = simulate(HIGH_LOW, node("n", 2), gang("a", 3, priority="high"), gang("b", 2, at="1s"))
    assert answer.times() == [1.0, 1.0]


def test_g8_a_gang_that_was_refused_at_enqueue_does_not_block_those_behind_it() -> None:
    answer = simulate(node("n", 2), job("a", role("w", 9)), job("b", role("w", 2), at="1s"))
    assert answer.order() == ["b-w-0", "b-w-1"]


@pytest.mark.parametrize("behind", ["job", "group", "pod"])
def test_g8_in_a_fifo_queue_a_failed_gang_blocks(behind: str) -> None:
    second = {
        "job": [job("b", role("w", 1), queue="q", at="1s")],
        "group": gang("b", 1, queue="q", at="1s"),
        "pod": [pod("b-0", at="1s", notes={"scheduling.volcano.sh/queue-name": "q"})],
    }[behind]
    first = gang("a", 4, queue="q")
    fifo = queue("q", dequeueStrategy="fifo")
    answer = simulate(node("n", 3), fifo, first, second, node("late", 1, at="50s"), node("later", 4, at="60s"))
    assert answer.times("a") == [50.0] * 4
    assert answer.times("b") == [60.0]
    stuck = simulate(node("n", 3), fifo, first, second)
    assert not stuck.bound()
    (told,) = [one["message"] for one in stuck.data["pending"] if one["gang"].startswith("default/b")]
    assert "behind default/a" in told


@pytest.mark.parametrize("behind", ["job", "group", "best effort"])
def test_g8_in_a_fifo_queue_a_gang_refused_at_enqueue_blocks(behind: str) -> None:
    second = {
        "job": [job("b", role("w", 1), queue="q", at="1s")],
        "group": gang("b", 1, queue="q", at="1s"),
        "best effort": gang("b", 1, cpu=None, queue="q", at="1s"),
    }[behind]
    fifo = queue("q", dequeueStrategy="fifo")
    squatter = pod("z", 3, nodeName="n", run="50s")
    answer = simulate(node("n", 4), fifo, squatter, job("a", role("w", 4), queue="q"), second, until="40s")
    assert not answer.bound("a")
    assert not answer.bound("b")
    answer = simulate(node("n", 4), fifo, squatter, job("a", role("w", 4, run="10s"), queue="q"), second)
    assert answer.times("a") == [50.0] * 4
    assert answer.times("b") == [50.0 if behind == "best effort" else 60.0]


@pytest.mark.parametrize(
    "lifted",
    [
        [step("10s", "delete", "PodGroup", "a")],
        [step("10s", "delete", "Pod", f"a-{i}") for i in range(4)],
        [step("10s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 2}})],
        [step("10s", "patch", "Queue", "q", patch={"spec": {"dequeueStrategy": "traverse"}})],
        [step("10s", "patch", "PodGroup", "b", patch={"spec": {"queue": "default"}})],
    ],
    ids=["group gone", "pods gone", "lower minimum", "no longer fifo", "another queue"],
)
def test_g8_in_a_fifo_queue_those_behind_go_once_the_first_is_out_of_their_way(lifted: list[Obj]) -> None:
    fifo = queue("q", dequeueStrategy="fifo")
    answer = simulate(node("n", 3), fifo, gang("a", 4, queue="q"), gang("b", 1, queue="q", at="1s"), lifted)
    assert answer.at("b-0") == 10.0


def test_g8_a_fifo_queue_blocks_nobody_in_another_queue() -> None:
    answer = simulate(
        node("n", 3), queue("q", dequeueStrategy="fifo"), queue("r"), gang("a", 4, queue="q"), gang("b", 1, queue="r")
    )  # fmt: skip
    assert answer.order() == ["b-0"]


def test_g8_priority_counts_before_age_in_a_fifo_queue() -> None:
    answer = simulate(
        HIGH_LOW, node("n", 3), queue("q", dequeueStrategy="fifo"), gang("a", 4, queue="q"),
        gang("b", 2, queue="q", at="1s", group_priority="high"),
    )  # fmt: skip
    assert answer.times("b") == [1.0, 1.0]


def test_g8_the_queue_of_the_highest_priority_is_served_first() -> None:
    answer = simulate(
        HIGH_LOW, node("n", 2), pod("z", 2, nodeName="n", run="10s"), queue("minor"), queue("major", priority=5),
        gang("a", 2, queue="minor", run="1s", priority="high"), gang("b", 2, queue="major", run="1s", at="2s"),
        config=NO_EVICTIONS,
    )  # fmt: skip
    assert starts(answer)[1:] == ["b", "a"]


def test_g8_then_that_of_the_lowest_share_chosen_anew_after_each_gang() -> None:
    one = [doc for i in range(4) for doc in gang(f"a{i}", 1, queue="one")]
    two = [doc for i in range(4) for doc in gang(f"b{i}", 1, queue="two", at="1s")]
    hold = pod("z", 6, nodeName="n", gone="5s")
    answer = simulate(node("n", 6), queue("one"), queue("two"), hold, one, two, config=NO_EVICTIONS)
    assert [name[0] for name in answer.order()[1:]] == ["a", "b", "a", "b", "a", "b"]


def test_g8_what_was_let_in_counts_towards_a_queues_share() -> None:
    one = [job(f"a{i}", role("w", 1, cpu=2), queue="one") for i in range(3)]
    two = [job(f"b{i}", role("w", 1, cpu=2), queue="two", at="1s") for i in range(3)]
    hold = pod("z", 4, nodeName="n", gone="5s")
    answer = simulate(node("n", 4), queue("one"), queue("two"), hold, one, two, config=NO_EVICTIONS)
    assert starts(answer)[1:] == ["a", "b"]
    assert len(answer.bound("a")) == len(answer.bound("b")) == 1
