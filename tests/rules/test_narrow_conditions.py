"""Single conditions of the engine that only a narrow case needs: without each of them everything else still passes.

Found by mutating the engine; `make mutants` finds more of their kind.
"""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import parse
from enbloc.engine.decisions import Bind, TimeOut
from enbloc.units import SECOND
from support import manifests as m
from support.answers import Answer
from support.direct_scheduler import DirectScheduler
from support.simulation import NO_EVICTIONS, simulate


def reserving(after: int, percent: int) -> m.Obj:
    arguments = {"starvingJobTimeThreshold": after, "reservedNodePercent": percent}
    actions: list[m.Obj] = [{"name": name} for name in ("enqueue", "allocate", "backfill")]
    return {"actions": [*actions, {"name": "reserve", "arguments": arguments}]}


# ---- G9: what is remembered of a gang ends when the gang changes


@pytest.mark.parametrize("restarts", [[], [m.restart("20s")]], ids=["plain", "restarted"])
def test_g9_a_gang_that_asks_for_less_is_considered_for_a_reservation_anew(restarts: list[m.Obj]) -> None:
    """Half of the nodes may be reserved: too few for both members, enough for one."""
    running = [m.pod(f"full-{name}", 4, nodeName=name, run_time="100s") for name in ("n0", "n1")]
    lowered = m.patch("30s", "PodGroup", "g", spec={"minMember": 1})
    answer = simulate(
        m.node("n0"),
        m.node("n1"),
        running,
        m.gang("g", 2, cpu=4, at="1s"),
        lowered,
        restarts,
        m.pods(20, "s", 2, at="40s", run_time="50s"),
        config=reserving(after=10, percent=50),
        until="200s",
    )
    assert [line["t"] for line in answer.lines("reserved") if line["name"].startswith("g-")][:1] == [30.0]
    assert min(answer.times("g-")) == 100.0


# ---- D5, R7: room that is no longer there is released at once


def waves(node_at_10s: m.Obj) -> Answer:
    """A master runs, and room for two workers is kept until it has started; meanwhile the node changes."""
    workers = m.role("work", 2, run_time="30s", depends_on={"name": ["master"]})
    job = m.job(
        "j",
        m.role("master", 1, run_time="300s", start_delay="200s"),
        workers,
        annotations={"enbloc.dev/depends-on-gang": "true"},
    )
    return simulate(
        m.node("n", 3), job, m.patch("10s", "Node", "n", **node_at_10s), m.node("late", 1, at="20s"), until="30s"
    )


def record(answer: Answer) -> str:
    return str(answer.group_of("j")["metadata"].get("annotations", {}).get("enbloc.dev/claim-wave", ""))


def test_d5_room_for_a_later_wave_ends_when_its_node_shrinks() -> None:
    answer = waves({"status": {"allocatable": {"cpu": "2", "memory": "16Gi", "pods": "110"}}})
    assert not record(answer)


def test_d5_room_for_a_later_wave_stays_while_its_node_has_it() -> None:
    answer = waves({"status": {"allocatable": {"cpu": "3", "memory": "8Gi", "pods": "110"}}})
    assert "work" in record(answer)


# ---- K8, K10: a mark that was refused


def test_k8_a_pod_whose_timeout_mark_was_refused_is_scheduled_again() -> None:
    """One of two fits; both are to be marked at 5 s, which the API refuses; then there is room for both."""
    direct = DirectScheduler(parse(NO_EVICTIONS))
    direct.put(m.node("n", 1))
    for pod in m.koordinator_gang("a", 2, mode=m.NON_STRICT, wait="5s"):
        direct.put(pod)
    direct.engine.run(1)
    marks = [one for one in direct.engine.run(1 + 5 * SECOND) if isinstance(one, TimeOut)]
    assert [name for one in marks for _, name, _ in one.pods] == ["a-0", "a-1"]
    for _, _, uid in marks[0].pods:
        direct.engine.report(marks[0], uid)
    direct.put(m.node("late", 4))
    assert set(bound(direct.engine.run(1 + 6 * SECOND))) == {"a-0", "a-1"}


# ---- an echo that says more than its Binding


def near(app: str) -> m.Obj:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def bound(decisions: list[Any]) -> dict[str, str]:
    """Pods that a cycle binds, and where."""
    return {place.name: place.node for one in decisions if isinstance(one, Bind) for place in one.placements}


def test_g6_a_label_that_arrives_with_the_echo_of_a_binding_counts() -> None:
    direct = DirectScheduler(parse(NO_EVICTIONS))
    for name in ("n0", "n1"):
        direct.put(m.node(name))
    direct.put(m.pod("a", labels={"app": "old"}))
    where = bound(direct.engine.run(1))["a"]
    direct.put(m.pod("a", nodeName=where, labels={"app": "new"}))
    direct.put(m.pod("b", affinity=near("new")))
    direct.put(m.pod("c", affinity=near("old")))
    assert bound(direct.engine.run(2)) == {"b": where}


# ---- P3: room that is there is for the gang it was made for


def test_p3_room_that_is_all_there_is_not_for_another_nominated_gang() -> None:
    """Both wait for the same node, and the first has come to need more than what was made for it: when all victims have
    left it must not take the second's room."""
    running = [m.pod("a", 2, priority="low", stop_delay="9s"), m.pod("b", 2, priority="low", stop_delay="10s")]
    first = m.gang("first", 2, 1, cpu=2, at="1s", priority="high", group_priority="high")
    second = m.gang("second", 1, cpu=2, at="2s", priority="high", group_priority="high")
    raised = m.patch("5s", "PodGroup", "first", spec={"minMember": 2})
    answer = simulate(m.HIGH_LOW, m.node("n", 4), running, first, second, raised, until="60s")
    assert {line["name"] for line in answer.lines("reserved")} == {"first-0", "second-0"}
    assert answer.evicted() == [(1.0, "b"), (2.0, "a")], "both leave at 11 s"
    assert answer.first_bound("second") == {"second-0": 11.0}
    assert not answer.bound("first")


# ---- P1: the lowest priorities that suffice, however many there are


@pytest.mark.parametrize("count", [3, 16, 17, 40])
def test_p1_the_lowest_priority_is_evicted_of_however_many(count: int) -> None:
    classes = [m.priority_class(f"c{value}", value) for value in range(1, count + 1)]
    running = [m.pod(f"p{value:02}", 1, priority=f"c{value}") for value in range(1, count + 1)]
    answer = simulate(
        classes,
        m.priority_class("high", 1000),
        m.node("n", count),
        running,
        m.pod("vip", 1, priority="high", at="5s"),
        until="60s",
    )
    assert [name for _, name in answer.evicted()] == ["p01"]
    assert answer.at("vip") is not None


def test_p1_two_of_the_lowest_priorities_leave_before_one_above_them() -> None:
    classes = [m.priority_class(f"c{value}", value) for value in range(1, 18)]
    running = [m.pod(f"p{value:02}", 2 if value == 3 else 1, priority=f"c{value}") for value in range(1, 18)]
    vip = m.pod("vip", 2, priority="high", at="5s")
    answer = simulate(classes, m.priority_class("high", 1000), m.node("n", 18), running, vip, until="60s")
    assert sorted(name for _, name in answer.evicted()) == ["p01", "p02"]


# ---- M6: a gang that was placed may have to leave again for one that waits to be enqueued


def test_m6_one_that_was_placed_can_be_counted_on_by_one_of_higher_priority() -> None:
    """`low` has been enqueued, and its pods come at 10 s: only once they are bound could they be preempted."""
    low = m.podgroup("low", 4, resources={"cpu": "4"}, priority="low")
    members = m.pods(4, "low-", group="low", priority="low", at="10s")
    high = m.job("high", m.role("w", 4, priority="high"), priority="high", at="1s")
    answer = simulate(m.HIGH_LOW, m.node("n", 4), low, members, high, until="100s")
    assert answer.phases("high")
    assert len(answer.bound("high")) == 4
