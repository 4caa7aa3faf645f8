"""V2: Commands, by which somebody asks for an action."""

from __future__ import annotations

from typing import Any

import pytest

from job_stories import command, made, on, phase, phases, warnings
from stories import job, node, role, simulate, step


@pytest.mark.parametrize(
    "action, final", [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_v2_commands_end_a_job_and_are_gone_then(action: str, final: str) -> None:
    told = simulate(node("n"), job("j", role("a", 2)), command("c", action, "10s"))
    assert phases(told)[-1] == (10.0, final)
    assert not told.all("Command")
    assert not told.all("Pod")
    assert told.group_of("j")["status"]["phase"] == "Completed"


def test_v2_an_aborted_job_is_resumed() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="30s")),
        command("stop", "AbortJob", "10s"),
        command("go", "ResumeJob", "20s"),
    )
    assert phases(told)[2:] == [
        (10.0, "Aborting"),
        (10.0, "Aborted"),
        (20.0, "Restarting"),
        (20.0, "Pending"),
        (20.0, "Running"),
        (50.0, "Completed"),
    ]
    assert told.obj("Job", "j")["status"]["version"] == 1
    assert "retryCount" not in told.obj("Job", "j")["status"], "by hand counts against nothing"


def test_v2_a_resumed_job_queues_anew() -> None:
    told = simulate(
        node("n", 2),
        job("j", role("a", 2, run="30s")),
        command("stop", "AbortJob", "10s"),
        job("other", role("a", 2, run="30s"), at="15s"),
        command("go", "ResumeJob", "20s"),
    )
    assert told.at("j-a-0", "succeeded") == 75.0
    assert phase(told) == "Completed"


def test_v2_aborting_is_resumed_once_its_pods_are_gone() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="30s", stop="10s")),
        command("stop", "AbortJob", "10s"),
        command("go", "ResumeJob", "15s"),
    )
    assert phases(told)[2:5] == [(10.0, "Aborting"), (15.0, "Restarting"), (20.0, "Pending")]
    assert phases(told)[-1] == (50.0, "Completed")


def test_v2_restart_job_by_command_at_any_number_of_runs() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 1, run="30s"), maxRetry=1),
        command("c1", "RestartJob", "10s"),
        command("c2", "RestartJob", "20s"),
    )
    assert made(told, "j-a-0") == [0.0, 10.0, 20.0]
    assert phases(told)[-1] == (50.0, "Completed")


def test_v2_commands_at_one_instant_are_carried_out_in_order() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 1, run="30s")),
        command("c1", "AbortJob", "10s"),
        command("c2", "ResumeJob", "10s"),
        command("c3", "TerminateJob", "10s"),
    )
    assert phases(told)[-1] == (10.0, "Terminated")
    assert not told.all("Command")


def test_v2_a_command_by_a_step() -> None:
    made_by_step = command("c", "AbortJob", "0s")
    del made_by_step["metadata"]["annotations"]
    told = simulate(node("n"), job("j", role("a", 1)), step("10s", "create", object=made_by_step))
    assert phases(told)[-1] == (10.0, "Aborted")


@pytest.mark.parametrize(
    "target, action, word",
    [
        ({"target": "nobody"}, "AbortJob", "nobody"),
        ({"target": "j", "uid": "another"}, "AbortJob", "no Job j"),
        ({"target": "j", "kind": "Pod", "apiVersion": "v1"}, "AbortJob", "no Pod j"),
        ({"target": "j", "apiVersion": "batch/v1"}, "AbortJob", "no Job j"),
        ({"target": "j"}, "Explode", "Explode"),
        ({"target": "j"}, "OpenQueue", "OpenQueue"),
        ({"target": "j"}, "ResumeJob", "Running"),
        ({"target": "default", "kind": "Queue"}, "AbortJob", "AbortJob"),
        ({"target": "nowhere", "kind": "Queue"}, "CloseQueue", "nowhere"),
    ],
)
def test_v2_a_command_that_nobody_can_carry_out_is_removed_with_a_warning(
    target: dict[str, Any], action: str, word: str
) -> None:
    told = simulate(node("n"), job("j", role("a", 1)), command("c", action, "10s", **target))
    assert phase(told) == "Running"
    assert not told.all("Command")
    (warning,) = warnings(told)
    assert word in warning


def test_v2_a_resume_policy_resumes_what_another_aborted() -> None:
    roles = (
        role("a", 1, run="5s", code="1,0", policies=[on("AbortJob", "PodFailed")]),
        role("b", 1, run="4s", code="1,0", policies=[on("ResumeJob", "PodFailed", timeout="20s")]),
    )
    told = simulate(node("n"), job("j", *roles))
    assert phases(told)[2:5] == [(5.0, "Aborting"), (5.0, "Aborted"), (24.0, "Restarting")]
    assert phases(told)[-1] == (29.0, "Completed")
