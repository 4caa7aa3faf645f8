"""V2: Commands, by which a user asks for an action."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.simulation import simulate


@pytest.mark.parametrize(
    "action, final", [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
)
def test_v2_commands_end_a_job_and_are_gone_then(action: str, final: str) -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("a", 2)), m.command("c", action, "10s"))
    assert answer.phases("j")[-1] == (10.0, final)
    assert not answer.all("Command")
    assert not answer.all("Pod")
    assert answer.group_of("j")["status"]["phase"] == "Completed"


def test_v2_an_aborted_job_is_resumed() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="30s")),
        m.command("stop", "AbortJob", "10s"),
        m.command("go", "ResumeJob", "20s"),
    )
    assert answer.phases("j")[2:] == [
        (10.0, "Aborting"),
        (10.0, "Aborted"),
        (20.0, "Restarting"),
        (20.0, "Pending"),
        (20.0, "Running"),
        (50.0, "Completed"),
    ]
    assert answer.obj("Job", "j")["status"]["version"] == 1
    assert "retryCount" not in answer.obj("Job", "j")["status"], "by hand counts against nothing"


def test_v2_a_resumed_job_queues_anew() -> None:
    answer = simulate(
        m.node("n", 2),
        m.job("j", m.role("a", 2, run_time="30s")),
        m.command("stop", "AbortJob", "10s"),
        m.job("other", m.role("a", 2, run_time="30s"), at="15s"),
        m.command("go", "ResumeJob", "20s"),
    )
    assert answer.at("j-a-0", "succeeded") == 75.0
    assert answer.phase("j") == "Completed"


def test_v2_aborting_is_resumed_once_its_pods_are_gone() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="30s", stop_delay="10s")),
        m.command("stop", "AbortJob", "10s"),
        m.command("go", "ResumeJob", "15s"),
    )
    assert answer.phases("j")[2:5] == [(10.0, "Aborting"), (15.0, "Restarting"), (20.0, "Pending")]
    assert answer.phases("j")[-1] == (50.0, "Completed")


def test_v2_restart_job_by_command_at_any_number_of_runs() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1, run_time="30s"), maxRetry=1),
        m.command("c1", "RestartJob", "10s"),
        m.command("c2", "RestartJob", "20s"),
    )
    assert answer.created("j-a-0") == [0.0, 10.0, 20.0]
    assert answer.phases("j")[-1] == (50.0, "Completed")


def test_v2_commands_at_one_instant_are_carried_out_in_order() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1, run_time="30s")),
        m.command("c1", "AbortJob", "10s"),
        m.command("c2", "ResumeJob", "10s"),
        m.command("c3", "TerminateJob", "10s"),
    )
    assert answer.phases("j")[-1] == (10.0, "Terminated")
    assert not answer.all("Command")


def test_v2_a_command_by_a_step() -> None:
    made_by_step = m.command("c", "AbortJob", "0s")
    del made_by_step["metadata"]["annotations"]
    answer = simulate(m.node("n"), m.job("j", m.role("a", 1)), m.step("10s", "create", object=made_by_step))
    assert answer.phases("j")[-1] == (10.0, "Aborted")


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
def test_v2_a_command_that_cannot_be_executed_is_removed_with_a_warning(
    target: dict[str, Any], action: str, word: str
) -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("a", 1)), m.command("c", action, "10s", **target))
    assert answer.phase("j") == "Running"
    assert not answer.all("Command")
    (warning,) = answer.warnings()
    assert word in warning


def test_v2_a_resume_policy_resumes_what_another_aborted() -> None:
    roles = (
        m.role("a", 1, run_time="5s", exit_code="1,0", policies=[m.policy("AbortJob", "PodFailed")]),
        m.role("b", 1, run_time="4s", exit_code="1,0", policies=[m.policy("ResumeJob", "PodFailed", timeout="20s")]),
    )
    answer = simulate(m.node("n"), m.job("j", *roles))
    assert answer.phases("j")[2:5] == [(5.0, "Aborting"), (5.0, "Aborted"), (24.0, "Restarting")]
    assert answer.phases("j")[-1] == (29.0, "Completed")
