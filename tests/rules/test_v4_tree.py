"""V4: queues as a tree, at admission and when they are closed; and the queue of a namespace."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.simulation import lint, simulate

NAMESPACE_QUEUE = "scheduling.volcano.sh/queue-name"


def refused(*queues: Obj) -> dict[str, str]:
    """Field → message of the faults of these queues."""
    return {fault.field: fault.message for fault in lint(*queues).faults}


@pytest.mark.parametrize("kind", ["capability", "deserved", "guarantee"])
def test_v4_a_child_beyond_any_ancestor_is_refused_with_the_numbers(kind: str) -> None:
    """The level between names no cpu and is skipped."""
    queues = (m.queue("top", **{kind: {"cpu": "4"}}), m.queue("mid", parent="top"))
    field = "spec.guarantee.resource.cpu" if kind == "guarantee" else f"spec.{kind}.cpu"
    found = refused(*queues, m.queue("low", parent="mid", **{kind: {"cpu": "5"}}))
    assert found.keys() == {field}
    assert all(word in found[field] for word in ("5", "4", "'top'"))
    assert refused(*queues, m.queue("low", parent="mid", **{kind: {"cpu": "4"}})) == {}


def test_v4_siblings_may_not_be_guaranteed_more_than_their_parent() -> None:
    queues = [m.queue("top", guarantee={"cpu": "4"}), m.queue("a", parent="top", guarantee={"cpu": "3"})]
    found = refused(*queues, m.queue("b", parent="top", guarantee={"cpu": "2"}))
    assert all(word in found["spec.guarantee.resource.cpu"] for word in ("5", "4", "'top'"))
    assert refused(*queues, m.queue("b", parent="top", guarantee={"cpu": "1"})) == {}


def patched(name: str, spec: dict[str, Any], *objects: Any) -> Any:
    return simulate(m.node("n"), *objects, m.step("5s", "patch", "Queue", name, patch={"spec": spec}))


@pytest.mark.parametrize(
    "spec, word",
    [
        ({"capability": {"cpu": "3"}}, "'low'"),
        ({"guarantee": {"resource": {"cpu": "1"}}}, "guarantees of the queues below"),
    ],
)
def test_v4_a_parent_may_not_shrink_below_its_children(spec: dict[str, Any], word: str) -> None:
    queues = [
        m.queue("top", capability={"cpu": "8"}, guarantee={"cpu": "2"}),
        m.queue("low", parent="top", capability={"cpu": "4"}, guarantee={"cpu": "1"}),
        m.queue("other", parent="top", guarantee={"cpu": "1"}),
    ]
    answer = patched("top", spec, *queues)
    assert word in answer.rejected("top")
    assert answer.obj("Queue", "top")["spec"]["capability"] == {"cpu": "8"}


def test_v4_a_queue_with_jobs_cannot_become_a_parent() -> None:
    answer = simulate(
        m.node("n"),
        m.queue("q"),
        m.one_pod_job("j", queue="q", run_time="20s"),
        m.queue("early", parent="q", at="10s"),
        m.queue("late", parent="q", at="30s"),
    )
    assert "'q'" in answer.rejected("early")
    assert "cannot become a parent" in answer.rejected("early")
    assert answer.obj("Queue", "late")["spec"]["parent"] == "q"


def states(answer: Any) -> dict[str, str]:
    return {queue["metadata"]["name"]: queue["status"]["state"] for queue in answer.all("Queue")}


def close(at: str, name: str, state: str = "Closed") -> Obj:
    return m.step(at, "patch", "Queue", name, patch={"status": {"state": state}})


TREE = (m.queue("top"), m.queue("mid", parent="top"), m.queue("low", parent="mid"), m.queue("own", parent="top"))


def test_v4_closing_a_parent_closes_its_children_and_opening_opens_them() -> None:
    answer = simulate(m.node("n"), *TREE, close("5s", "top"))
    assert {name: states(answer)[name] for name in ("top", "mid", "low", "own")} == dict.fromkeys(
        ("top", "mid", "low", "own"), "Closed"
    )
    answer = simulate(m.node("n"), *TREE, close("4s", "own"), close("5s", "top"), close("10s", "top", "Open"))
    assert {name: states(answer)[name] for name in ("top", "mid", "low", "own")} == {
        "top": "Open",
        "mid": "Open",
        "low": "Open",
        "own": "Closed",  # it was closed for itself
    }


def test_v4_a_child_of_a_closed_parent_is_not_opened() -> None:
    answer = simulate(m.node("n"), *TREE, close("5s", "top"), close("10s", "low", "Open"))
    assert states(answer)["low"] == "Closed"


def test_v4_a_job_for_the_child_of_a_closed_parent_is_refused() -> None:
    queues = [m.queue("top", state="Closed"), m.queue("low", parent="top")]
    (fault,) = lint(*queues, m.one_pod_job("j", queue="low")).faults
    assert "'low'" in fault.message
    assert "'top'" in fault.message


def test_v4_a_queues_status_counts_every_phase() -> None:
    answer = simulate(
        m.node("n", 2),
        m.queue("q"),
        m.one_pod_job("done", queue="q", run_time="5s"),
        m.one_pod_job("runs", queue="q", run_time="500s"),
        m.one_pod_job("large", 99, queue="q"),
        until="60s",
    )
    status = answer.obj("Queue", "q")["status"]
    counts = {phase: status[phase] for phase in ("pending", "inqueue", "running", "unknown", "completed")}
    assert counts == {"pending": 1, "inqueue": 0, "running": 1, "unknown": 0, "completed": 1}


def team(queue: str = "team") -> Obj:
    annotations = {NAMESPACE_QUEUE: queue}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns", "annotations": annotations}}


def test_v4_the_queue_of_a_namespace_is_that_of_its_jobs_and_podgroups() -> None:
    answer = simulate(
        m.node("n"),
        m.queue("team"),
        m.queue("own"),
        team(),
        m.one_pod_job("j", namespace="ns"),
        m.one_pod_job("other", namespace="ns", queue="own"),
        m.podgroup("g", 1, namespace="ns"),
        m.one_pod_job("elsewhere"),
    )
    groups = {group["metadata"]["name"].partition("-")[0]: group["spec"]["queue"] for group in answer.all("PodGroup")}
    assert groups == {"j": "team", "other": "own", "g": "team", "elsewhere": "default"}


def test_v4_a_namespace_whose_queue_does_not_exist_refuses_its_jobs() -> None:
    answer = simulate(m.node("n"), team("nowhere"), m.one_pod_job("j", namespace="ns"))
    assert "nowhere" in answer.rejected("j")
