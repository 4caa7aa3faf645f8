"""V4: queues share by weight, are served by priority, FIFO where they say so, and report what they use."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import Answer
from support.queue_jobs import jobs, taken
from support.simulation import NO_EVICTIONS, simulate

# ---- shares


@pytest.mark.parametrize(
    ("weights", "cpu", "expected"),
    [
        ({"a": 1, "b": 1}, 8, {"a": 4, "b": 4}),
        ({"a": 3, "b": 1}, 8, {"a": 6, "b": 2}),
        ({"a": 1, "b": 3}, 8, {"a": 2, "b": 6}),
        ({"a": 1, "b": 2, "c": 3}, 12, {"a": 2, "b": 4, "c": 6}),
    ],
)
def test_v4_queues_share_by_weight(weights: dict[str, int], cpu: int, expected: dict[str, int]) -> None:
    queues = [m.queue(name, weight) for name, weight in weights.items()]
    waiting = [one for name in weights for one in jobs(name, 15)]
    assert taken(simulate(m.node("n", cpu, "64Gi"), queues, waiting, config=NO_EVICTIONS)) == expected


def test_v4_shares_do_not_depend_on_the_order_of_files() -> None:
    answer = simulate(
        jobs("b", 12), jobs("a", 12), m.queue("b", 1), m.queue("a", 3), m.node("n", 8, "64Gi"), config=NO_EVICTIONS
    )
    assert taken(answer) == {}, "jobs before their queues are refused"
    answer = simulate(
        m.queue("b", 1), m.queue("a", 3), jobs("b", 12), jobs("a", 12), m.node("n", 8, "64Gi"), config=NO_EVICTIONS
    )
    assert taken(answer) == {"a": 6, "b": 2}


def test_v4_only_queues_with_demand_share() -> None:
    """`idle` weighs most and asks for nothing; c asks for little, and the others share what it leaves."""
    queues = [m.queue("a"), m.queue("b"), m.queue("c", 10), m.queue("idle", 1000)]
    answer = simulate(m.node("n", 9, "64Gi"), queues, jobs("a", 12), jobs("b", 12), jobs("c", 1), config=NO_EVICTIONS)
    assert taken(answer) == {"a": 4, "b": 4, "c": 1}


def test_v4_demand_of_gangs_not_yet_enqueued_counts() -> None:
    """All room is taken at first, so that no gang of b is enqueued; yet b's demand counts when room comes free."""
    answer = simulate(
        [m.node("n1", 4), m.queue("a"), m.queue("b")],
        jobs("a", 4, run_time="10s"),
        jobs("b", 4, at="1s", run_time="100s"),
        [m.one_pod_job(f"a-late-{index}", queue="a", at="2s", run_time="100s") for index in range(4)],
        config=NO_EVICTIONS,
    )
    assert Counter(name.partition("-")[0] for name, t in answer.first_bound().items() if t == 10.0) == {"a": 2, "b": 2}


def test_v4_the_queue_is_chosen_anew_after_each_gang() -> None:
    """Gangs of several pods: after each the lowest share is served next, whatever came first."""
    a = [m.job(f"a-{index}", m.role("w", 2), queue="a") for index in range(4)]
    b = [m.job(f"b-{index}", m.role("w", 1), queue="b", at="0s") for index in range(8)]
    answer = simulate(m.node("n", 8, "64Gi"), m.queue("a"), m.queue("b"), a, b, config=NO_EVICTIONS)
    assert taken(answer) == {"a": 4, "b": 4}


def test_v4_what_runs_counts_towards_a_share() -> None:
    """a has had the cluster; what comes free goes to b until both have their share."""
    answer = simulate(
        m.node("n", 6, "64Gi"),
        [m.queue("a"), m.queue("b")],
        jobs("a", 3, run_time="1000s"),
        [m.one_pod_job(f"a-short-{index}", queue="a", run_time="10s") for index in range(3)],
        [m.one_pod_job(f"a-late-{index}", queue="a", at="2s", run_time="1000s") for index in range(6)],
        [m.one_pod_job(f"b-{index}", queue="b", at="3s", run_time="1000s") for index in range(6)],
        config=NO_EVICTIONS,
    )
    assert [name for name, t in answer.first_bound().items() if t == 10.0] == [f"b-{index}-w-0" for index in range(3)]


def test_v4_a_node_that_comes_later_is_shared_too() -> None:
    answer = simulate(
        m.node("n1", 2, "64Gi"),
        m.node("n2", 10, "64Gi", at="10s"),
        [m.queue("a", 2), m.queue("b", 1)],
        jobs("a", 20),
        jobs("b", 20),
        config=NO_EVICTIONS,
    )
    assert taken(answer) == {"a": 8, "b": 4}


def test_v4_a_changed_weight_counts_from_then_on() -> None:
    answer = simulate(
        m.node("n1", 4, "64Gi"),
        [m.queue("a"), m.queue("b")],
        jobs("a", 20),
        jobs("b", 20),
        m.patch("5s", "Queue", "b", spec={"weight": 4}),
        m.node("n2", 6, "64Gi", at="10s"),
        config=NO_EVICTIONS,
    )
    assert taken(answer, until=5) == {"a": 2, "b": 2}
    assert taken(answer) == {"a": 2, "b": 8}


def test_v4_deserved_decides_where_a_queue_sets_it() -> None:
    """Weights say the opposite and are not asked."""
    queues = [m.queue("a", 1, deserved={"cpu": "6"}), m.queue("b", 9, deserved={"cpu": "2"})]
    assert taken(simulate(m.node("n", 8, "64Gi"), queues, jobs("a", 15), jobs("b", 15), config=NO_EVICTIONS)) == {
        "a": 6,
        "b": 2,
    }


def test_v4_a_queue_that_deserves_nothing_comes_after_those_that_do() -> None:
    queues = [m.queue("a", 9), m.queue("b", deserved={"cpu": "6"})]
    answer = simulate(m.node("n", 8, "64Gi"), queues, jobs("a", 15), jobs("b", 6), config=NO_EVICTIONS)
    assert taken(answer) == {"a": 2, "b": 6}


def test_v4_deserved_of_gpus_alone() -> None:
    """Only the dimension that `deserved` names is looked at."""
    gpu = {"nvidia.com/gpu": "1"}

    def train(name: str, queue_name: str) -> Obj:
        return m.job(name, m.role("w", 1, extra=gpu, cpu=1), queue=queue_name)

    queues = [m.queue("a", deserved={"nvidia.com/gpu": "6"}), m.queue("b", deserved={"nvidia.com/gpu": "2"})]
    waiting = [train(f"{name}-{index:02}", name) for name in ("b", "a") for index in range(10)]
    answer = simulate(m.node("n", 64, "64Gi", extra={"nvidia.com/gpu": "8"}), queues, waiting, config=NO_EVICTIONS)
    assert taken(answer) == {"a": 6, "b": 2}


def test_v4_a_share_is_the_largest_over_resources() -> None:
    """a asks for memory, b for cpu: each dominant share is what counts."""
    a = [m.job(f"a-{index:02}", m.role("w", 1, cpu=1, memory="4Gi"), queue="a") for index in range(20)]
    b = [m.job(f"b-{index:02}", m.role("w", 1, cpu=2, memory="1Gi"), queue="b") for index in range(20)]
    answer = simulate(m.node("n", 16, "32Gi"), m.queue("a"), m.queue("b"), a, b, config=NO_EVICTIONS)
    assert taken(answer) == {"a": 6, "b": 5}


# ---- priority of queues


def test_v4_a_queue_of_higher_priority_is_served_first() -> None:
    queues = [m.queue("a", 100), m.queue("b", 1, priority=5)]
    answer = simulate(m.node("n", 4, "64Gi"), queues, jobs("a", 6), jobs("b", 3), config=NO_EVICTIONS)
    assert taken(answer) == {"a": 1, "b": 3}


def test_v4_priority_of_a_queue_counts_at_enqueue_too() -> None:
    """Room for one gang: the one of the high queue is enqueued, though it came last."""
    queues = [m.queue("a"), m.queue("b", priority=1)]
    answer = simulate(
        m.node("n", 4, "64Gi"),
        queues,
        m.one_pod_job("a-0", 4, queue="a"),
        m.one_pod_job("b-0", 4, queue="b"),
        config=NO_EVICTIONS,
    )
    assert list(answer.first_bound()) == ["b-0-w-0"]
    assert answer.group_of("b-0")["status"]["phase"] == "Running"
    assert answer.group_of("a-0")["status"]["phase"] == "Pending"


# ---- strict FIFO


def test_v4_fifo_blocks_those_behind_and_the_default_does_not() -> None:
    def run(**spec: Any) -> Answer:
        big, tiny = m.job("big", m.role("w", 5), queue="q"), m.one_pod_job("tiny", queue="q", at="1s")
        return simulate(
            m.node("n", 4), m.queue("q", **spec), big, tiny, m.node("late", 4, at="30s"), config=NO_EVICTIONS
        )

    assert run().first_bound()["tiny-w-0"] == 1.0
    assert run(dequeueStrategy="traverse").first_bound()["tiny-w-0"] == 1.0
    answer = run(dequeueStrategy="fifo")
    assert set(answer.first_bound().values()) == {30.0}
    assert len(answer.first_bound()) == 6


def test_v4_fifo_says_behind_whom_it_waits() -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        m.job("big", m.role("w", 5), queue="q"),
        m.one_pod_job("tiny", queue="q", at="1s"),
        config=NO_EVICTIONS,
    )
    assert not answer.first_bound()
    assert "default/big" in answer.pending("default/tiny")["message"]
    assert "fifo" in answer.pending("default/tiny")["message"].lower()


def test_v4_fifo_of_bare_gangs_blocks_in_allocate() -> None:
    """No enqueue stands before them; BestEffort ones wait behind as well."""
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        [m.podgroup("big", 5, queue="q"), *(m.pod(f"big-{index}", group="big") for index in range(5))],
        [m.podgroup("tiny", 1, queue="q", at="1s"), m.pod("tiny-0", group="tiny", at="1s")],
        [m.podgroup("free", 1, queue="q", at="2s"), m.pod("free-0", group="free", at="2s", cpu=None, memory=None)],
        m.node("late", 2, at="30s"),
        config=NO_EVICTIONS,
    )
    assert set(answer.first_bound().values()) == {30.0}
    assert len(answer.first_bound()) == 7


def test_v4_fifo_one_refused_at_enqueue_blocks_one_that_needs_no_enqueue() -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        m.job("big", m.role("w", 5), queue="q"),
        [m.podgroup("tiny", 1, queue="q", at="1s"), m.pod("tiny-0", group="tiny", at="1s")],
        config=NO_EVICTIONS,
    )
    assert not answer.first_bound()
    assert "default/big" in answer.pending("default/tiny")["message"]


def test_v4_fifo_blocks_only_its_own_queue() -> None:
    answer = simulate(
        m.node("n", 4),
        [m.queue("q", dequeueStrategy="fifo"), m.queue("r")],
        m.job("big", m.role("w", 5), queue="q"),
        m.one_pod_job("tiny", queue="r", at="1s"),
        config=NO_EVICTIONS,
    )
    assert answer.first_bound() == {"tiny-w-0": 1.0}


def test_v4_fifo_goes_on_when_the_one_in_front_goes_away() -> None:
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        m.job("big", m.role("w", 5), queue="q", delete_at="20s"),
        m.one_pod_job("tiny", queue="q", at="1s"),
        config=NO_EVICTIONS,
    )
    assert answer.first_bound() == {"tiny-w-0": 20.0}
    assert not answer.waiting()


def test_v4_fifo_keeps_priority_and_age() -> None:
    """Those who run at once run in order; a gang that lacks members was not tried, and blocks no other (G4)."""
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        [m.podgroup("lacks", 2, queue="q"), m.pod("lacks-0", group="lacks")],
        m.one_pod_job("tiny", queue="q", at="1s"),
        config=NO_EVICTIONS,
    )
    assert answer.first_bound() == {"tiny-w-0": 1.0}


# ---- status


def test_v4_queue_status_counts_podgroups_by_phase() -> None:
    answer = simulate(
        m.node("n", 4),
        [m.queue("q"), m.queue("empty")],
        m.one_pod_job("ran", queue="q", run_time="5s"),
        m.one_pod_job("runs", 4, queue="q", at="10s"),
        m.one_pod_job("waits", 4, queue="q", at="11s"),
        m.podgroup("alone", 2, queue="q"),
        config=NO_EVICTIONS,
    )
    status = answer.obj("Queue", "q")["status"]
    counts = {phase: status.get(phase, 0) for phase in ("pending", "inqueue", "running", "unknown", "completed")}
    assert counts == {"pending": 1, "inqueue": 1, "running": 1, "unknown": 0, "completed": 1}
    assert status["state"] == "Open"
    assert answer.obj("Queue", "empty")["status"]["pending"] == 0


def test_v4_queue_status_follows_deletions() -> None:
    answer = simulate(m.node("n", 4), m.queue("q"), m.one_pod_job("runs", queue="q", delete_at="9s"))
    assert answer.obj("Queue", "q")["status"]["running"] == 0


def test_v4_survives_a_restart_of_the_scheduler() -> None:
    answer = simulate(
        m.node("n", 8, "64Gi"),
        [m.queue("a", 3), m.queue("b"), m.queue("vip", guarantee={"cpu": "2"})],
        jobs("a", 12, run_time="10s"),
        jobs("b", 12, run_time="10s"),
        m.step("5s", "restart-scheduler"),
        config=NO_EVICTIONS,
        until="10s",
    )
    assert Counter(name.partition("-")[0] for name, t in answer.first_bound().items() if t == 0.0) == {"a": 4, "b": 2}
    assert len(answer.first_bound()) == 12


def test_v4_shares_are_of_what_pods_of_other_schedulers_leave() -> None:
    """16 CPU, of which a pod of another scheduler uses 12: three queues share 4, and `c` gets its part of those."""
    answer = simulate(
        m.node("n", 16),
        [m.queue(name) for name in "abc"],
        m.pod("foreign", 12, schedulerName="other", nodeName="n"),
        m.gang("a", 2, 1, cpu=1, queue="a", at="1s"),
        m.gang("b", 2, 1, cpu=1, queue="b", at="1s"),
        m.gang("c", 1, cpu=1, queue="c", at="10s"),
        until="20s",
    )
    assert len(answer.lines("evicted")) == 1
    assert answer.at("c-0") == 10.0
