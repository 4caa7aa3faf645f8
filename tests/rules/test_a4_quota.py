"""A4 under a ResourceQuota: replacements come first, a job in its delay keeps its turn, no minimum is half made."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

CLASSES = [m.priority_class("high", 1000), m.priority_class("low", 10)]


def made(answer: Answer, prefix: str = "", *, since: float = 0) -> list[tuple[float, str]]:
    return [
        (line["t"], line["name"])
        for line in answer.lines("created", kind="Pod")
        if line["name"].startswith(prefix) and line["t"] >= since
    ]


def quota(**hard: Any) -> m.Obj:
    return m.resource_quota(0) | {"spec": {"hard": {key.replace("_", "."): str(n) for key, n in hard.items()}}}


def high(replicas: int, minimum: int, **fields: Any) -> m.Obj:
    return m.queue_job("high", m.role("w", replicas, **fields), minimum=minimum, priorityClassName="high")


def low(replicas: int = 4, minimum: int = 2, **fields: Any) -> m.Obj:
    return m.queue_job("low", m.role("w", replicas, **fields), minimum=minimum, priorityClassName="low", at="1s")


def fail(at: str, name: str = "high-w-0") -> m.Obj:
    return m.step(at, "fail-pod", "Pod", name)


RESTARTS = [m.restart("22s"), m.restart("25s"), m.restart("43s")]


@pytest.mark.parametrize("more", [[], RESTARTS])
def test_a4_a_failed_pod_is_replaced_before_the_rest_of_its_own_job(more: list[m.Obj]) -> None:
    job = m.queue_job("q", m.role("m", 1, priority="high"), m.role("w", 6, priority="low"), minimum=2)
    answer = simulate(CLASSES, m.resource_quota(4), m.node("n", 8), job, fail("20s", "q-m-0"), more, until="60s")
    assert made(answer, since=1) == [(20.0, "q-m-0")]
    assert len(answer.bound("q")) == 4


LOSSES = {
    "failed": [fail("20s")],
    "deleted": [m.step("20s", "delete", "Pod", "high-w-0")],
    "evicted": [m.step("20s", "fail-node", "Node", "gone")],
}


@pytest.mark.parametrize("stop", [None, "5s"])
@pytest.mark.parametrize("more", [[], RESTARTS])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a4_a_lost_pod_is_replaced_before_the_minimum_of_a_lower_job(
    loss: list[m.Obj], more: list[m.Obj], stop: str | None
) -> None:
    """Its minimum is met: what it lost is surplus, and comes back all the same."""
    nodes = [m.node("gone", 1), m.node("n", 3), m.node("spare", 9, at="21s")]
    answer = simulate(CLASSES, m.resource_quota(4), nodes, high(4, 2, stop_delay=stop), low(), loss, more, until="100s")
    assert not made(answer, "low")
    assert len(made(answer, "high")) == 5
    alive = [pod for pod in answer.all("Pod", "high") if pod["status"]["phase"] == "Running"]
    assert len(alive) == 4


@pytest.mark.parametrize("more", [[], RESTARTS])
def test_a4_a_job_in_its_restart_delay_keeps_its_turn(more: list[m.Obj]) -> None:
    docs = [*CLASSES, m.resource_quota(4), m.node("n", 9), high(4, 4), low(), fail("20s"), fail("40s"), *more]
    answer = simulate(docs, until="200s")
    assert not made(answer, "low")
    assert [at for at, _ in made(answer, "high")] == [0.0] * 4 + [20.0] * 4 + [50.0] * 4
    waiting = simulate(docs, until="45s").why("default/low")
    assert "0 of 2 pods exist, 2 more are needed; the quota is kept for QueueJob high" in waiting
    assert "restart 2, next attempt at 2" in waiting
    assert "00:00:50Z" in waiting


def test_a4_a_failing_pod_in_its_delay_keeps_its_turn() -> None:
    """Only one pod starts over, each time later; the minimum of its job runs on."""
    docs = [*CLASSES, m.resource_quota(3), m.node("n", 9), high(3, 2), low(2, 1), fail("20s"), fail("40s")]
    answer = simulate(docs, until="100s")
    assert [at for at, _ in made(answer, "high", since=1)] == [20.0, 50.0]
    assert not made(answer, "low")
    assert "kept for QueueJob high, which comes first: pod high-w-0: attempt 3 at 2" in simulate(docs, until="45s").why(
        "default/low"
    )


def test_a4_quota_that_a_job_in_its_delay_does_not_need_is_free_for_others() -> None:
    docs = [*CLASSES, m.node("n", 9), high(3, 3), low(2, 2), fail("20s"), fail("40s")]
    late = m.queue_job("late", m.role("w", 2), minimum=2, at="42s")
    answer = simulate(m.resource_quota(7), docs, late, until="100s")
    assert [at for at, _ in made(answer, "late")] == [42.0] * 2
    tight = simulate(m.resource_quota(6), docs, late, until="100s")
    assert made(tight, "late") == [(50.0, "late-w-0")]  # before, it would not have been completed
    assert len(tight.bound("high")) == 3


def test_a4_no_pod_is_made_of_a_minimum_that_cannot_be_completed_while_a_higher_job_waits() -> None:
    answer = simulate(CLASSES, m.resource_quota(3), m.node("n", 9), high(6, 2), low(), until="60s")
    assert [name for _, name in made(answer)] == ["high-w-0", "high-w-1", "high-w-2"]
    both = m.queue_job("low", m.role("w", 4), minimum=2, priorityClassName="low")
    docs = [*CLASSES, m.resource_quota(3), m.node("n", 9), both, high(6, 2)]
    answer = simulate(docs, until="60s")
    assert [name for _, name in made(answer)] == ["high-w-0", "high-w-1", "high-w-2"]
    assert "QueueJob high, which comes first, waits for it too" in answer.why("default/low")
    wider = m.step("30s", "patch", "ResourceQuota", "q", patch={"spec": {"hard": {"pods": "5"}}})
    wider["target"]["apiVersion"] = "v1"
    assert made(simulate(docs, wider, until="60s"), since=1) == [(30.0, "low-w-0"), (30.0, "low-w-1")]


@pytest.mark.parametrize(
    ("hard", "numbers"),
    [({"pods": 4}, "pods=5 of quota q, whose limit is 4"), ({"requests_cpu": 4}, "requests.cpu=5 of quota q")],
)
def test_a4_a_minimum_beyond_the_hard_limit_makes_no_pod_and_keeps_no_turn(hard: m.Obj, numbers: str) -> None:
    docs = [*CLASSES, m.node("n", 9), high(6, 5), low(4, 2)]
    answer = simulate(quota(**hard), docs, until="60s")
    assert not made(answer, "high")
    assert len(answer.bound("low")) == 4
    assert f"0 of 5 pods exist, 5 more are needed; its minimum takes {numbers}" in answer.why("default/high")
    assert "its minimum takes" in next(
        one["message"]
        for one in answer.obj("QueueJob", "high")["status"]["conditions"]
        if one["type"] == "Unschedulable"
    )
    wider = m.step(
        "30s", "patch", "ResourceQuota", "q", patch={"spec": {"hard": {next(iter(hard)).replace("_", "."): "9"}}}
    )
    wider["target"]["apiVersion"] = "v1"
    assert [at for at, _ in made(simulate(quota(**hard), docs, wider, until="60s"), "high")] == [30.0] * 5


def test_a4_a_minimum_beyond_the_hard_limit_is_reported_in_the_instant_of_its_creation() -> None:
    """The SchedulingSpec is created once, and says so as soon as it is seen."""
    answer = simulate(quota(pods=2), m.node("n", 9), m.queue_job("q", m.role("w", 3), minimum=3), until="0s")
    assert "its minimum takes pods=3 of quota q, whose limit is 2" in answer.why("default/q")


def test_a4_a_quota_that_does_not_cover_a_job_does_not_make_it_wait() -> None:
    """The quota counts pods of class high only."""
    of_high = quota(pods=4)
    of_high["spec"]["scopeSelector"] = {
        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
    }
    docs = [*CLASSES, of_high, m.node("n", 20), high(4, 4, priority="high"), fail("20s"), fail("40s")]
    late = m.queue_job("late", m.role("w", 2), minimum=2, at="42s")
    assert [at for at, _ in made(simulate(docs, late, until="100s"), "late")] == [42.0] * 2


def test_a4_a_job_that_is_done_or_gone_keeps_no_turn() -> None:
    docs = [*CLASSES, m.resource_quota(4), m.node("n", 9), low(2, 2)]
    done = simulate(docs, high(4, 4, run_time="30s"), until="100s")
    assert [at for at, _ in made(done, "low")] == [30.0] * 2
    gone = m.step("45s", "delete", "QueueJob", "high")
    assert [at for at, _ in made(simulate(docs, high(4, 4), fail("20s"), fail("40s"), gone), "low")] == [45.0] * 2
