"""Lifecycle policies (V2): what a job does when its pods fail, are evicted, wait or complete."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj, Ref
from enbloc.units import SECOND
from support.controller_cluster import START, World, job, role


def started(*roles: dict[str, Any], **spec: Any) -> World:
    """A job all of whose pods run."""
    world = World()
    world.submit(job(*roles, **spec))
    world.enqueued()
    world.turn("Running", *world.pods())
    return world


def fail(world: World, name: str, code: int = 1) -> None:
    terminated = {"name": "main", "state": {"terminated": {"exitCode": code}}}
    world.turn("Failed", name, containerStatuses=[terminated])


def uids(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.list("Pod")}


def end_terminating(world: World) -> None:
    """Every pod that terminates is removed, as by its node."""
    world.vanish(*(pod["metadata"]["name"] for pod in world.list("Pod") if pod["metadata"].get("deletionTimestamp")))


def policy(action: str, **fields: Any) -> dict[str, Any]:
    return {"action": action, **fields}


@pytest.mark.parametrize(
    "action, on_the_way, final",
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_v2_actions_that_end_the_job(action: str, on_the_way: str, final: str) -> None:
    world = started(role("a", 3), policies=[policy(action, event="PodFailed")])
    fail(world, "train-a-1")
    assert world.phase() == on_the_way
    end_terminating(world)
    assert world.phase() == final
    assert world.pods() == ["train-a-1"]  # what ended stays, to be looked at
    assert world.settle() == []


def test_v2_restart_job_three_runs() -> None:
    world = started(role("a", 2), policies=[policy("RestartJob", event="PodFailed")], maxRetry=3)
    for run in (1, 2):
        before = uids(world)
        fail(world, "train-a-0")
        assert world.phase() == "Restarting"
        end_terminating(world)
        assert world.phase() == "Pending"
        assert (world.job()["status"]["retryCount"], world.job()["status"]["version"]) == (run, run)
        assert set(uids(world)) == set(before)
        assert not set(uids(world).values()) & set(before.values())
        assert world.pod("train-a-0")["metadata"]["annotations"]["volcano.sh/job-version"] == str(run)
        world.turn("Running", "train-a-0", "train-a-1")
        assert world.phase() == "Running"
    fail(world, "train-a-0")
    assert world.phase() == "Failed"
    assert world.job()["status"]["state"]["reason"] == "MaxRetryReached"


def test_v2_restart_of_a_job_that_failed_as_a_whole() -> None:
    world = started(role("a", 1), policies=[policy("RestartJob", event="PodFailed")])
    fail(world, "train-a-0")
    end_terminating(world)
    assert world.phase() == "Pending"


def test_v2_restart_pod_and_restart_task() -> None:
    world = started(role("a", 2), role("b", 2), policies=[policy("RestartPod", event="PodFailed")])
    before = uids(world)
    fail(world, "train-a-1")
    end_terminating(world)
    changed = {name for name, uid in uids(world).items() if before[name] != uid}
    assert changed == {"train-a-1"}
    world = started(role("a", 2), role("b", 2), policies=[policy("RestartTask", event="PodFailed")])
    before = uids(world)
    fail(world, "train-a-1")
    end_terminating(world)
    changed = {name for name, uid in uids(world).items() if before[name] != uid}
    assert changed == {"train-a-0", "train-a-1"}
    assert world.job()["status"]["restarts"] == {"job": 0, "tasks": {"a": 1}, "pods": {}}
    assert world.job()["status"]["retryCount"] == 1  # as Volcano counts: any restart


def test_v2_role_policy_comes_before_the_jobs() -> None:
    own = [policy("RestartPod", event="PodFailed")]
    world = started(role("a", 2, policies=own), role("b"), policies=[policy("AbortJob", event="PodFailed")])
    before = uids(world)
    fail(world, "train-a-0")
    assert uids(world)["train-a-0"] != before["train-a-0"]
    assert world.phase() == "Pending"
    fail(world, "train-b-0")
    assert world.phase() == "Aborting"


@pytest.mark.parametrize("code, phase", [(3, "Aborting"), (4, "Terminating"), (5, "Running")])
def test_v2_exit_codes(code: int, phase: str) -> None:
    policies = [policy("AbortJob", exitCode=3), policy("TerminateJob", exitCodes=[4, 6])]
    world = started(role("a", 2), policies=policies)
    fail(world, "train-a-0", code)
    assert world.phase() == phase


def test_v2_task_completed() -> None:
    own = [policy("CompleteJob", event="TaskCompleted")]
    world = started(role("driver", policies=own), role("worker", 2))
    world.turn("Succeeded", "train-driver-0")
    end_terminating(world)
    assert world.phase() == "Completed"
    assert world.pods() == ["train-driver-0"]


def test_v2_task_failed_when_restarts_reach_the_roles_max_retry() -> None:
    restarted = role("a", 2, maxRetry=2)
    restarted["template"]["spec"]["restartPolicy"] = "OnFailure"
    world = started(restarted, policies=[policy("AbortJob", event="TaskFailed")])
    for restarts, phase in ((1, "Running"), (2, "Aborting")):
        world.turn("Running", "train-a-0", containerStatuses=[{"name": "main", "restartCount": restarts}])
        assert world.phase() == phase


def test_v2_evicted_is_what_others_delete() -> None:
    world = started(role("a", 2), policies=[policy("AbortJob", event="PodEvicted")])
    world.vanish("train-a-0")
    assert world.phase() == "Aborting"


def test_v2_what_the_controller_deletes_is_no_eviction() -> None:
    world = started(role("a", 3), policies=[policy("AbortJob", event="PodEvicted")])
    world.scale({"a": 1})
    end_terminating(world)
    assert world.phase() == "Running"
    assert world.pods() == ["train-a-0"]


def test_v2_any_event_means_accidents() -> None:
    world = started(role("a", 2), policies=[policy("AbortJob", event="*")])
    world.turn("Succeeded", "train-a-0", "train-a-1")
    assert world.phase() == "Completed"
    world = started(role("a", 2), policies=[policy("AbortJob", event="*")])
    world.store.evict("default", "train-a-0", uids(world)["train-a-0"], "Preempted", "for a better one")
    world.settle()
    end_terminating(world)
    assert world.phase() in ("Aborting", "Aborted")


def waiting(**fields: Any) -> World:
    world = World()
    world.submit(job(role("a", 2), policies=[policy("AbortJob", event="PodPending", **fields)]))
    world.enqueued()
    return world


def test_v2_a_timeout_fires_at_the_instant() -> None:
    world = waiting(timeout="30s")
    assert world.controllers[0].due() == START + 30 * SECOND
    world.now = START + 30 * SECOND - 1
    assert world.settle() == []
    world.now += 1
    world.settle()
    assert world.phase() in ("Aborting", "Aborted")


def test_v2_a_timeout_is_off_when_its_cause_is() -> None:
    world = waiting(timeout="30s")
    world.turn("Running", "train-a-0", "train-a-1")
    assert world.controllers[0].due() is None


def test_v2_policies_survive_a_restart_of_the_controller() -> None:
    world = started(role("a", 2), policies=[policy("RestartJob", event="PodFailed")])
    fail(world, "train-a-0")
    world.restart()
    end_terminating(world)
    assert world.phase() == "Pending"
    assert world.pods() == ["train-a-0", "train-a-1"]


def test_v2_a_restarted_job_begins_with_its_first_wave() -> None:
    world = World()
    depends = {"name": ["a"]}
    world.submit(job(role("a"), role("b", dependsOn=depends), policies=[policy("RestartJob", event="PodFailed")]))
    world.enqueued()
    world.turn("Running", "train-a-0")
    world.turn("Running", "train-b-0")
    fail(world, "train-b-0")
    end_terminating(world)
    assert world.pods() == ["train-a-0"]


def test_v2_a_job_on_its_way_out_makes_no_pods() -> None:
    world = started(role("a", 2), policies=[policy("AbortJob", event="PodFailed")])
    fail(world, "train-a-0")
    world.store.delete(Ref("Pod", "default", "train-a-0"), grace_s=0)
    world.settle()
    assert [pod for pod in world.pods() if pod == "train-a-0"] == []


def test_v2_the_whole_lifecycle() -> None:
    world = started(role("a", 2), policies=[policy("AbortJob", event="PodFailed")])
    fail(world, "train-a-0", 7)
    state: Obj = world.job()["status"]["state"]
    assert state["reason"] == "AbortJob"
    assert state["message"] == "AbortJob on PodFailed of train-a-0 (exit code 7)"
