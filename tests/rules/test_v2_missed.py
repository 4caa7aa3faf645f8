"""V2, I5: what went while no controller ran is found by what the status last said, and its policy acts then."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.controller_cluster import World
from support.simulation import simulate

ACTIONS = ("RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "RestartTask", "RestartPod")
NODES = [m.node("n1", 1), m.node("n2", 1), m.node("n3", 1)]
GONE = {
    "its node failed": m.step("5s", "fail-node", "Node", "n1"),
    "deleted": m.step("5s", "delete", "Pod", "j-w-0"),
    "evicted": m.step("5s", "evict-pod", "Pod", "j-w-0"),
    "deleted before it had a node": m.step("5s", "delete", "Pod", "j-w-3"),
}


def run(*more: m.Obj, on: str, action: str, **policy: Any) -> Answer:
    policies = [m.policy(action, "PodEvicted", **policy)]
    roles = [m.role("w", 4, 1, policies=policies if on == "role" else None), m.role("other", 0)]
    job = m.job("j", *roles, minimum=1, maxRetry=9, policies=policies if on == "job" else [])
    return simulate(NODES, job, *more, until="40s")


def story(answer: Answer) -> list[tuple[Any, ...]]:
    """Everything that happened to the job and its pods."""
    keys = ("t", "what", "name", "to", "node", "message")
    return sorted(tuple(str(line.get(key)) for key in keys) for line in answer.timeline if line["what"] != "restarted")


@pytest.mark.parametrize("timeout", [None, "3s"])
@pytest.mark.parametrize("gone", GONE)
@pytest.mark.parametrize("on", ["job", "role"])
@pytest.mark.parametrize("action", ACTIONS)
def test_v2_a_policy_acts_on_a_pod_that_went_while_no_controller_ran(
    action: str, on: str, gone: str, timeout: str | None
) -> None:
    more = {"timeout": timeout} if timeout else {}
    plain = run(GONE[gone], on=on, action=action, **more)
    if action != "RestartPod" and not timeout:  # a pod that runs again in time is no reason to act
        assert [line for line in plain.lines("phase", "j") if line["t"] >= 5.0], plain.timeline
    at, later = m.restart("5s"), m.restart("6s")
    for steps in ([at, GONE[gone]], [GONE[gone], at], [GONE[gone], at, later]):
        assert story(run(*steps, on=on, action=action, **more)) == story(plain)


def world(**policy: Any) -> World:
    made = World()
    made.submit(m.job("train", m.role("w", 3), policies=[m.policy("RestartJob", "PodEvicted", **policy)]))
    made.enqueued()
    made.turn("Running", "train-w-0", "train-w-1", "train-w-2")
    assert made.phase() == "Running"
    return made


def lost_meanwhile(made: World, *names: str) -> str:
    """Pods go while no controller runs; the phase that follows."""
    for name in names:
        made.store.delete(made.ref("Pod", name), grace_s=0)
    made.restart()
    made.settle()
    return made.phase()


def test_v2_nothing_went_and_nothing_acts() -> None:
    assert lost_meanwhile(world()) == "Running"


def test_v2_a_pod_that_went_unseen_restarts_the_job_once() -> None:
    made = world()
    assert lost_meanwhile(made, "train-w-1") == "Restarting"
    made.vanish("train-w-0", "train-w-2")
    made.turn("Running", *made.pods())
    assert (made.phase(), made.job()["status"]["version"]) == ("Running", 1)
    made.restart()
    made.settle()
    assert (made.phase(), made.job()["status"]["version"]) == ("Running", 1)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_v2_a_pod_that_had_ended_is_no_eviction(phase: str) -> None:
    made = world()
    made.turn(phase, "train-w-1")
    assert lost_meanwhile(made, "train-w-1") != "Restarting"
    assert not made.job()["status"].get("version")


def test_v2_a_pod_of_an_index_that_is_no_longer_wanted_is_no_eviction() -> None:
    made = world()
    made.store.patch(made.ref("Job.batch.volcano.sh", "train"), {"spec": {"tasks": scaled(made, 2)}})
    assert lost_meanwhile(made, "train-w-2") == "Running"
    assert not made.job()["status"].get("version")


def scaled(made: World, replicas: int) -> list[m.Obj]:
    (task,) = made.job()["spec"]["tasks"]
    return [{**task, "replicas": replicas, "minAvailable": 1}]


@pytest.mark.parametrize("restarts", [False, True])
def test_v2_a_pod_that_the_controller_deletes_is_no_eviction_though_it_is_wanted_again(restarts: bool) -> None:
    made = world()
    ref = made.ref("Job.batch.volcano.sh", "train")
    made.store.patch(ref, {"spec": {"minAvailable": 1, "tasks": scaled(made, 2)}})
    made.settle()
    assert made.pod("train-w-2")["metadata"]["deletionTimestamp"]
    made.store.patch(ref, {"spec": {"tasks": scaled(made, 3)}})
    if restarts:
        made.restart()
    made.settle()
    made.vanish("train-w-2")
    assert made.phase() == "Running"
    assert not made.job()["status"].get("version")
    assert "train-w-2" in made.pods()


def test_v2_what_was_deleted_in_a_restart_is_no_eviction_of_the_next_run() -> None:
    made = world()
    made.vanish("train-w-0")
    assert made.phase() == "Restarting"
    lost_meanwhile(made, "train-w-1", "train-w-2")
    made.turn("Running", *made.pods())
    assert (made.phase(), made.job()["status"]["version"]) == ("Running", 1)


def test_v2_a_timeout_of_an_eviction_without_a_replacement_survives_restarts() -> None:
    """A quota keeps the replacement from being made, so nothing but the status knows of the eviction."""
    made = world(timeout="10s")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
    made.store.create({**quota, "spec": {"hard": {"pods": "2"}}})
    made.vanish("train-w-0")
    for _ in range(2):
        made.restart()
        made.settle()
    made.now += 10_000_000_000
    made.settle()
    assert made.phase() == "Restarting"


def test_v2_the_record_of_a_strange_status_is_ignored() -> None:
    made = world()
    strange = {"w": "0-99999999999999999999999,5-2,x,7-,-,1e9", "gone": "0-5", "v": 7}
    made.store.patch(made.ref("Job.batch.volcano.sh", "train"), {"status": {"livePods": strange}}, "status")
    assert lost_meanwhile(made) == "Running"
