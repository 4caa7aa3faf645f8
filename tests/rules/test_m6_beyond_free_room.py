"""M6: a gang is enqueued for what it may preempt or reclaim, or because it starves, though there is no room yet."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.engine.features.admission import enqueue
from enbloc.units import SECOND
from support import manifests as m
from support.answers import Answer, condition, waits_because
from support.simulation import NO_EVICTIONS, simulate

CLASSES = [
    m.priority_class("high", 1000),
    m.priority_class("mid", 500),
    m.priority_class("low", 10),
    m.priority_class("nonpreempting", 1000) | {"preemptionPolicy": "Never"},
]


def evicted(answer: Answer) -> list[str]:
    return [line["name"] for line in answer.lines("evicted")]


def reserving(after: int = 20, percent: int = 100, *actions: str) -> m.Obj:
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": percent}
    named: list[m.Obj] = [{"name": n} for n in ("enqueue", "allocate", "backfill", *actions)]
    return {"actions": [*named, {"name": "reserve", "arguments": arguments}]}


def wants(cpu: int = 1, replicas: int = 4, at: str = "10s", **more: Any) -> m.Obj:
    return m.job("j", m.role("w", replicas, cpu=cpu), at=at, **more)


# ---- preempt


def test_m6_enqueued_for_what_it_may_preempt() -> None:
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 4, priority="low"), wants(priority="high"))
    assert answer.at("j-w-0", "created") == 10.0
    assert answer.times("j-") == [10.0] * 4
    assert evicted(answer) == ["a"]


def test_m6_only_what_is_lower_counts() -> None:
    running = [m.pod("a", 3, priority="mid"), m.pod("b", 1, priority="low")]
    answer = simulate(CLASSES, m.node("n"), running, wants(priority="mid"), until="1h")
    assert not answer.all("Pod", "j-")
    assert "not enqueued" in waits_because(answer.group_of("j"))


def test_m6_not_without_the_action_preempt() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.pod("a", 4, priority="low"), wants(priority="high"), config=NO_EVICTIONS, until="1h"
    )
    assert not answer.all("Pod", "j-")


def test_m6_not_if_it_is_nonpreempting() -> None:
    answer = simulate(CLASSES, m.node("n"), m.pod("a", 4, priority="low"), wants(priority="nonpreempting"), until="1h")
    assert not answer.all("Pod", "j-")
    assert not evicted(answer)


def test_m6_what_may_not_be_evicted_does_not_count() -> None:
    kept = m.pod("a", 4, priority="low", annotations={"volcano.sh/preemptable": "false"})
    answer = simulate(CLASSES, m.node("n"), kept, wants(priority="high"), until="1h")
    assert not answer.all("Pod", "j-")


def test_m6_what_is_of_another_queue_does_not_count() -> None:
    queues = [m.queue("q", weight=1), m.queue("r", weight=9)]
    running = m.gang("a", 4, queue="r", priority="low")
    answer = simulate(
        CLASSES,
        queues,
        m.node("n"),
        running,
        wants(priority="high", queue="q"),
        config=reserving(10**6, 100, "preempt"),
        until="1h",
    )
    assert not answer.all("Pod", "j-")


def test_m6_free_room_and_what_it_may_preempt_count_together() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.pod("a", 2, priority="low"),
        m.pod("b", 1, priority="high"),
        wants(replicas=3, priority="high"),
    )
    assert answer.times("j-") == [10.0] * 3


def test_m6_its_queues_cap_counts_less_what_it_may_preempt_there() -> None:
    capped = m.queue("q", capability={"cpu": "4"})
    answer = simulate(
        CLASSES,
        capped,
        m.node("n", 8),
        m.gang("a", 4, queue="q", priority="low"),
        wants(priority="high", queue="q"),
        until="1h",
    )
    assert answer.times("j-") == [10.0] * 4
    assert len(evicted(answer)) == 4
    answer = simulate(
        CLASSES,
        capped,
        m.node("n", 8),
        m.gang("a", 4, queue="q", priority="high"),
        wants(priority="high", queue="q"),
        until="1h",
    )
    assert not answer.all("Pod", "j-")


def test_m6_never_what_the_cluster_could_not_hold() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.pod("a", 4, priority="low"), wants(replicas=5, priority="high"), until="1h"
    )
    assert not answer.all("Pod", "j-")
    assert not evicted(answer)


def test_m6_the_condition_says_on_what_grounds() -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.pod("a", 4, priority="low", stop_delay="30s"), wants(priority="high"), until="20s"
    )
    reported = condition(answer.group_of("j"), "Enqueued")
    assert reported is not None
    assert reported["reason"].lower().startswith("preempt")


def test_m6_enqueued_by_preempting_and_over_a_restart() -> None:
    answer = simulate(
        CLASSES,
        m.node("n"),
        m.pod("a", 4, priority="low", stop_delay="30s"),
        wants(priority="high"),
        [m.restart("10s"), m.restart("25s")],
        m.job("k", m.role("w", 4), at="20s"),
        until="60s",
    )
    assert answer.times("j-") == [40.0] * 4
    assert not answer.bound("k-")
    assert evicted(answer) == ["a"]


def test_m6_enqueued_when_the_protection_of_lower_priorities_ends() -> None:
    off = m.step("30s", "delete", "Pod", "b")
    running = [m.pod("a", 2, priority="low"), m.pod("b", 2, priority="high")]
    answer = simulate(CLASSES, m.node("n"), running, wants(priority="high"), off)
    assert answer.times("j-") == [30.0] * 4


# ---- reclaim


def test_m6_enqueued_for_what_it_may_reclaim() -> None:
    queues = [m.queue("a"), m.queue("b")]
    running = [one for i in range(4) for one in m.gang(f"x{i}", 1, queue="a")]
    answer = simulate(queues, m.node("n"), running, wants(replicas=2, queue="b"), until="1h")
    assert answer.times("j-") == [10.0, 10.0]
    assert len(evicted(answer)) == 2


def test_m6_not_for_more_than_it_may_reclaim() -> None:
    queues = [m.queue("a"), m.queue("b")]
    running = [one for i in range(4) for one in m.gang(f"x{i}", 1, queue="a")]
    answer = simulate(queues, m.node("n"), running, wants(replicas=3, queue="b"), until="1h")
    assert not answer.all("Pod", "j-")
    assert not evicted(answer)
    stubborn = [m.queue("a", reclaimable=False), m.queue("b")]
    answer = simulate(stubborn, m.node("n"), running, wants(replicas=2, queue="b"), until="1h")
    assert not answer.all("Pod", "j-")


# ---- starving


def test_m6_enqueued_once_it_starves() -> None:
    answer = simulate(m.node("n"), m.pod("full", 4, run_time="100s"), wants(), config=reserving(20))
    assert answer.at("j-w-0", "created") == 30.0
    assert [line["t"] for line in answer.lines("reserved")] == [30.0] * 4
    assert answer.times("j-") == [100.0] * 4


def test_m6_by_its_own_waiting_time() -> None:
    one = wants()
    one["metadata"]["annotations"]["volcano.sh/sla-waiting-time"] = "5s"
    answer = simulate(m.node("n"), m.pod("full", 4, run_time="100s"), one, config=reserving(20))
    assert answer.at("j-w-0", "created") == 15.0


def test_m6_starving_within_the_clusters_allocatable_only() -> None:
    answer = simulate(m.node("n"), m.pod("full", 4, run_time="100s"), wants(replicas=5), config=reserving(20))
    assert not answer.all("Pod", "j-")
    answer = simulate(
        m.node("n"),
        m.pod("full", 4, run_time="100s"),
        wants(replicas=5),
        m.node("m", 1, at="50s"),
        config=reserving(20),
    )
    assert answer.at("j-w-0", "created") == 50.0


def test_m6_starving_does_not_pass_the_queues_cap() -> None:
    capped = m.queue("q", capability={"cpu": "3"})
    answer = simulate(capped, m.node("n"), wants(queue="q"), config=reserving(20), until="1h")
    assert not answer.all("Pod", "j-")


def test_m6_without_reserve_no_gang_starves() -> None:
    answer = simulate(m.node("n"), m.pod("full", 4), wants(), config=NO_EVICTIONS, until="1000h")
    assert not answer.all("Pod", "j-")


def test_m6_one_enqueued_by_starving_that_cannot_be_reserved_for_counts_against_no_other() -> None:
    """Half of two nodes is one, and it needs two: it is enqueued, and keeps no other gang out."""
    full = [m.pod(f"full{i}", 4, nodeName=name, run_time="100s") for i, name in enumerate("nm")]
    answer = simulate(
        m.node("n"),
        m.node("m"),
        m.node("o", 2),
        full,
        wants(cpu=4, replicas=2),
        m.job("k", m.role("w", 2), at="40s"),
        config=reserving(20, 50),
    )
    assert answer.at("j-w-0", "created") == 30.0
    assert answer.times("k-") == [40.0, 40.0]


def test_m6_its_claims_count_against_others() -> None:
    """All that is free is reserved: a job that comes is not enqueued, and says why."""
    answer = simulate(
        m.node("n"),
        m.pod("full", 2, run_time="100s"),
        wants(replicas=4),
        m.job("k", m.role("w", 2, run_time="5s"), at="40s"),
        config=reserving(20),
        until="60s",
    )
    assert not answer.bound("k-")
    assert answer.why("default/k")


@pytest.mark.parametrize("instants", [(29,), (31,), (60,), (99,), (20, 40, 60, 80)])
def test_m6_enqueued_by_starving_and_over_a_restart(instants: tuple[int, ...]) -> None:
    answer = simulate(
        m.node("n"),
        m.pod("full", 4, run_time="100s"),
        wants(),
        [m.pod(f"s{i}", 1, at=f"{35 + 20 * i}s") for i in range(4)],
        [m.restart(f"{i}s") for i in instants],
        config=reserving(20),
        until="110s",
    )
    assert answer.at("j-w-0", "created") == 30.0
    assert answer.times("j-") == [100.0] * 4
    assert not answer.bound("s")


def test_m6_a_starving_one_of_two_that_ask_for_the_same() -> None:
    """They are equivalent; only the older one starves, and only it is enqueued."""
    answer = simulate(
        m.node("n"),
        m.pods(4, "full", run_time="100s"),
        m.job("a", m.role("w", 4)),
        m.job("b", m.role("w", 4), at="15s"),
        config=reserving(20),
        until="25s",
    )
    assert answer.all("Pod", "a-")
    assert not answer.all("Pod", "b-")


def test_m6_what_is_used_and_reserved_on_one_node_counts_once() -> None:
    """n is full and reserved; m is free: a job of m's size is enqueued."""
    answer = simulate(
        m.node("n"),
        m.node("m"),
        m.pod("full", 4, nodeName="n", run_time="100s"),
        m.pod("big", 4, nodeSelector={"kubernetes.io/hostname": "n"}),
        m.job("s", m.role("w", 4), at="30s"),
        config=reserving(20),
    )
    assert answer.times("s-") == [30.0] * 4


def test_m6_g9_a_gang_is_looked_at_again_when_the_share_of_its_queue_grows() -> None:
    """Its pods are few, so its queue deserves little at first. A job of the same queue comes: now the default queue is
    above its share, and enough could be reclaimed for both."""
    big = m.job("big", m.role("a", 3, 3, cpu=2), m.role("c", 2, 0, cpu=2))
    answer = simulate(
        m.queue("q"),
        m.node("n", 12),
        big,
        m.podgroup("g", 4, queue="q", minResources={"cpu": "5"}, at="10s"),
        m.pod("g-1", None, group="g"),
        m.job("j", m.role("a", 2, cpu=3), queue="q", at="20s"),
        config={"actions": "enqueue, allocate, backfill, reclaim"},
        until="30s",
    )
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Inqueue"


def test_m6_s4_g9_a_gang_is_looked_at_again_when_a_queue_with_awaited_pods_deserves_less() -> None:
    """`g` was enqueued and has no pods: towards other queues it counts up to the share of its own, 2 cpu. At 20 s a
    third queue has demand: `g` counts for less, and `j` is enqueued."""
    answer = simulate(
        m.queue("top", priority=1),
        m.queue("q", parent="top", guarantee={"cpu": "1"}),
        m.queue("other", parent="top"),
        m.node("n", 4),
        m.podgroup("g", 1, queue="q", minResources={"cpu": "2"}),
        m.podgroup("j", 2, minResources={"cpu": "2"}),
        m.gang("x", 1, 0, cpu=3, memory="4Gi", queue="other", at="20s"),
        config={"actions": "enqueue, allocate, backfill"},
        until="30s",
    )
    assert answer.obj("PodGroup", "j")["status"]["phase"] == "Inqueue"


def test_m6_g9_a_gang_of_a_queue_above_its_share_is_not_looked_at_again_when_shares_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The other queue comes to deserve more: nothing can be reclaimed for a gang of the default queue."""
    looked_at: list[tuple[str, int]] = []
    real = enqueue._refusal

    def refusal(cycle: Any, gang: Any, *rest: Any) -> Any:
        looked_at.append((gang.key.name, cycle.now_ns // SECOND % 100))
        return real(cycle, gang, *rest)

    monkeypatch.setattr(enqueue, "_refusal", refusal)
    simulate(
        m.queue("q"),
        m.node("n", 12),
        m.job("big", m.role("a", 6, 5, cpu=2)),
        m.podgroup("g", 4, minResources={"cpu": "5"}, at="5s"),
        m.podgroup("s1", 4, queue="q", minResources={"cpu": "3"}, at="10s"),
        m.queue("idle", at="20s"),  # the simulation's answer, which looks at all gangs, is of this instant
        config={"actions": "enqueue, allocate, backfill, reclaim"},
        until="30s",
    )
    assert ("g", 5) in looked_at
    assert ("s1", 10) in looked_at
    assert ("g", 10) not in looked_at
