"""S4: the gate of enqueue cannot be jammed. A gang that was enqueued and has no pods counts against others for
`enqueue.expectPodsWithin`, and towards other queues never beyond its own queue's share."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.simulation import NO_EVICTIONS, simulate

NODES = [m.node(f"n{index}", 8) for index in range(4)]


def jam(**fields: Any) -> list[Obj]:
    """PodGroups without pods that together ask for all of 32 cpu times 1.2."""
    asked = {"large": "30", "small": "8400m"}
    return [m.podgroup(name, 1, resources={"cpu": cpu}, namespace="a", **fields) for name, cpu in asked.items()]


def test_s4_attack_t5_podgroups_without_pods_do_not_stop_enqueue() -> None:
    """The job of b waits for 60 s, not for ever."""
    answer = simulate(NODES, jam(), m.job("j", m.role("w", 4), namespace="b", at="5s"))
    assert answer.times("j-") == [60.0] * 4


def test_s4_the_time_is_configured() -> None:
    config = {"enqueue": {"expectPodsWithin": "10s"}}
    answer = simulate(NODES, jam(), m.job("j", m.role("w", 4), namespace="b"), config=config)
    assert answer.times("j-") == [10.0] * 4


def test_s4_one_pod_of_many_makes_no_difference() -> None:
    """A gang that lacks pods is not attempted: one small pod must not make it count for ever."""
    groups = [m.podgroup(f"g{n}", 20, resources={"cpu": "19"}, namespace="a") for n in range(2)]
    pods = [m.pod(f"bait{n}", "1m", group=f"g{n}", namespace="a") for n in range(2)]
    answer = simulate(NODES, groups, pods, m.job("j", m.role("w", 4), namespace="b", at="5s"))
    assert answer.times("j-") == [60.0] * 4


@pytest.mark.parametrize("written_at", ["2026-01-01T00:00:50Z", "2099-01-01T00:00:00Z"])
def test_s4_a_later_time_in_the_status_counts_for_no_longer(written_at: str) -> None:
    """The tenant writes again and again that its PodGroup was enqueued just now."""
    enqueued = {"type": "Enqueued", "status": "True", "reason": "Enqueued", "lastTransitionTime": written_at}
    forged = [m.patch(f"{at}s", "PodGroup", "large", status={"conditions": [enqueued]}) for at in (20, 50)]
    for step in forged:
        step["target"]["namespace"] = "a"
    answer = simulate(NODES, jam(), m.job("j", m.role("w", 4), namespace="b", at="5s"), forged)
    assert answer.times("j-") == [60.0] * 4


def test_s4_towards_other_queues_only_the_share_counts() -> None:
    """Two queues of equal weight. The PodGroup of a asks for all; half of it is a's share, and b's job is enqueued."""
    queues = [m.queue("a"), m.queue("b")]
    job = m.job("j", m.role("w", 16), namespace="b", queue="b")
    answer = simulate(NODES, queues, jam(queue="a"), job, config=NO_EVICTIONS)
    assert answer.times("j-") == [0.0] * 16


def test_s4_within_its_queue_it_counts_in_full() -> None:
    answer = simulate(NODES, m.queue("a"), jam(queue="a"), m.one_pod_job("j", queue="a", at="1s"))
    assert answer.times("j-") == [60.0]


def test_s4_a_fifo_queue_is_not_held_by_a_podgroup_without_pods() -> None:
    queue = m.queue("q", dequeueStrategy="fifo")
    first = m.podgroup("first", 1, resources={"cpu": "1"}, queue="q")
    answer = simulate(NODES, queue, first, m.one_pod_job("second", queue="q", at="1s"))
    assert answer.times("second-") == [60.0]


def test_s4_after_a_restart_the_time_goes_on() -> None:
    job = m.job("j", m.role("w", 4), namespace="b", at="5s")
    answer = simulate(NODES, jam(), job, m.restart("40s"))
    assert answer.times("j-") == [60.0] * 4


def test_s4_v4_the_share_is_of_what_pods_of_other_schedulers_leave() -> None:
    """Another scheduler uses 16 of 32 cpu. The PodGroup of a asks for 16: half of the rest is its share, and the other
    half is for b's job."""
    foreign = [m.pod(f"f{n}", 8, nodeName=f"n{n}", scheduler="other") for n in range(2)]
    first = m.podgroup("first", 1, resources={"cpu": "16"}, namespace="a", queue="a")
    job = m.job("j", m.role("w", 8), namespace="b", queue="b", at="1s")
    answer = simulate(NODES, m.queue("a"), m.queue("b"), foreign, first, job, config=NO_EVICTIONS)
    assert answer.times("j-") == [1.0] * 8
