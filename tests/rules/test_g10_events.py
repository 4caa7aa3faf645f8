"""G10: what happens to a gang is an Event on its object, its Job and its pods: `kubectl describe` shows Events only."""

from __future__ import annotations

from typing import Any

from support.answers import Answer
from support.manifests import gang, job, node, pod, priority_class, role
from support.simulation import simulate

Obj = dict[str, Any]


def events(answer: Answer, kind: str, name: str) -> list[Obj]:
    """The Events on an object, oldest first."""
    found = [
        one
        for one in answer.all("Event")
        if one["involvedObject"]["kind"] == kind and one["involvedObject"]["name"].startswith(name)
    ]
    return sorted(found, key=lambda one: (one["firstTimestamp"], int(one["metadata"]["resourceVersion"])))


def reasons(answer: Answer, kind: str, name: str) -> list[str]:
    return [one["reason"] for one in events(answer, kind, name)]


def test_gang_that_starts() -> None:
    answer = simulate(node("n1"), node("n2"), job("train", role("w", 3, cpu=2)))
    assert reasons(answer, "Pod", "train-w-0") == ["Scheduled"]
    (bound,) = events(answer, "Pod", "train-w-0")
    assert bound["message"] in ("assigned default/train-w-0 to n1", "assigned default/train-w-0 to n2")
    for kind in ("Job", "PodGroup"):
        assert [one for one in reasons(answer, kind, "train") if one in ("Enqueued", "GangScheduled")] == [
            "Enqueued",
            "GangScheduled",
        ]
        (together,) = (one for one in events(answer, kind, "train") if one["reason"] == "GangScheduled")
        assert "3 pods bound together" in together["message"]


def test_gang_that_waits_says_why_on_its_job_and_on_each_pod() -> None:
    answer = simulate(node("n1"), job("train", role("w", 2, cpu=4)), config={"actions": "allocate"})
    why = answer.why("default/train")
    for name in ("train-w-0", "train-w-1"):
        (waits,) = events(answer, "Pod", name)
        assert (waits["type"], waits["reason"], waits["message"]) == ("Warning", "FailedScheduling", why)
        assert waits["related"]["kind"] == "PodGroup"
    on_job = [one for one in events(answer, "Job", "train") if one["type"] == "Warning"]
    on_group = [one for one in events(answer, "PodGroup", "train") if one["type"] == "Warning"]
    assert [one["message"] for one in on_job] == [one["message"] for one in on_group] == [why]
    assert [one["reason"] for one in on_job] == [one["reason"] for one in on_group]


def test_pod_of_no_gang_says_why() -> None:
    answer = simulate(node("n1"), pod("big", cpu=8))
    assert reasons(answer, "Pod", "big") == ["FailedScheduling"]
    assert answer.warnings("Pod") == [f"FailedScheduling: {answer.why('default/big')}"]


def test_timeline_has_one_warning_for_a_gang() -> None:
    answer = simulate(node("n1"), gang("g", 3, cpu=4))
    assert len(answer.lines("warning")) == 1


def test_victim_says_for_whom_it_was_evicted() -> None:
    answer = simulate(
        node("n1"),
        priority_class("high", 10),
        job("low", role("w", 2, cpu=2)),
        job("high", role("w", 1, cpu=4), priority="high", at="10s"),
    )
    preempted = [one for one in events(answer, "Job", "low") if one["reason"] == "Preempted"]
    assert [(one["count"], one["message"]) for one in preempted] == [
        (2, "a pod was evicted: makes room for default/high")
    ]
    assert "Preempted" in reasons(answer, "PodGroup", "low")
    assert {one["message"] for one in events(answer, "Pod", "low-w-") if one["reason"] == "Preempted"} == {
        "evicted: makes room for default/high"
    }


def test_same_event_is_counted_and_not_stored_again() -> None:
    answer = simulate(
        node("n1"),
        pod("first", cpu=4, delete_at="10s"),
        pod("big", cpu=8),
        config={"actions": "allocate"},
    )
    assert len(events(answer, "Pod", "big")) == 1
