"""M5: what a Job's status says, over time; and the phases of its PodGroup beside it (K13)."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

COUNTS = ("pending", "running", "succeeded", "failed", "terminating")


def counts(answer: Answer, name: str = "j") -> dict[str, int]:
    """The totals that are not zero."""
    status = answer.obj("Job", name)["status"]
    return {key: status[key] for key in COUNTS if status[key]}


def by_role(answer: Answer, name: str = "j") -> dict[str, Any]:
    found: dict[str, Any] = answer.obj("Job", name)["status"]["taskStatusCount"]
    return found


def test_m5_a_job_that_runs() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 3, 2), m.role("b", 2)))
    status = answer.obj("Job", "j")["status"]
    assert status["state"]["phase"] == "Running"
    assert status["minAvailable"] == 4
    assert {key: status[key] for key in COUNTS} == {
        "pending": 0,
        "running": 5,
        "succeeded": 0,
        "failed": 0,
        "terminating": 0,
    }
    assert by_role(answer) == {"a": {"phase": {"Running": 3}}, "b": {"phase": {"Running": 2}}}


def test_m5_pending_before_its_pods_exist_and_while_they_wait() -> None:
    answer = simulate(m.node("n", 2), m.one_pod_job("takes", 2), m.job("j", m.role("w", 2), at="1s"), until="1h")
    assert answer.phase("j") == "Pending"
    assert counts(answer) == {}
    answer = simulate(
        m.node("n", 5), m.one_pod_job("takes", 3), m.job("j", m.role("w", 3), at="1s")
    )  # enqueued by overcommit, and no room
    assert answer.phase("j") == "Pending"
    assert counts(answer) == {"pending": 3}
    assert by_role(answer) == {"w": {"phase": {"Pending": 3}}}


def test_m5_running_only_when_the_minimum_runs() -> None:
    """A start delay of one role keeps the job Pending until enough run."""
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 2), m.role("b", 2, start_delay="10s")))
    assert answer.phases("j") == [(0.0, "Pending"), (10.0, "Running")]


def test_m5_surplus_is_not_waited_for() -> None:
    answer = simulate(m.node("n", 3), m.job("j", m.role("w", 5, 2)))
    assert answer.phase("j") == "Running"
    assert counts(answer) == {"running": 3, "pending": 2}


def test_m5_stays_running_while_members_end() -> None:
    """Two of three have ended, so fewer than the minimum run; the job is Running until all have."""
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 2, run_time="10s"), m.role("b", 1, run_time="60s")))
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Completed")]
    groups = [(line["t"], line["to"]) for line in answer.lines("phase") if line["kind"] == "PodGroup"]
    assert groups == [(0.0, "Pending"), (0.0, "Inqueue"), (0.0, "Running"), (60.0, "Completed")]
    assert by_role(answer) == {"a": {"phase": {"Succeeded": 2}}, "b": {"phase": {"Succeeded": 1}}}


def test_m5_stays_running_while_members_fail() -> None:
    answer = simulate(
        m.node("n", 8), m.job("j", m.role("a", 2, run_time="10s", exit_code="1"), m.role("b", 1, run_time="60s"))
    )
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Failed")]
    assert counts(answer) == {"failed": 2, "succeeded": 1}
    assert by_role(answer)["a"] == {"phase": {"Failed": 2}}


@pytest.mark.parametrize(
    ("roles", "phase"),
    [
        ([m.role("w", 3, run_time="5s")], "Completed"),
        ([m.role("w", 3, run_time="5s", exit_code="1")], "Failed"),
        # the minimum succeeded, beyond it a role may fail
        ([m.role("a", 2, 2, run_time="5s"), m.role("b", 2, 0, run_time="5s", exit_code="1")], "Completed"),
        # enough in all, too few of one role
        ([m.role("a", 4, 1, run_time="5s"), m.role("b", 2, 2, run_time="5s", exit_code="1")], "Failed"),
        ([m.role("a", 4, 2, run_time="5s"), m.role("b", 1, 1, run_time="5s", exit_code="3")], "Failed"),
    ],
)
def test_m5_completed_or_failed_by_total_and_by_role(roles: list[dict[str, Any]], phase: str) -> None:
    answer = simulate(m.node("n", 8), m.job("j", *roles))
    assert answer.phases("j")[-1] == (5.0, phase)
    assert answer.group_of("j")["status"]["phase"] == "Completed"


def test_m5_a_failed_pod_of_a_role_with_some_to_spare_is_forgiven() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("w", 3, 2, run_time="20s")),
        m.step("5s", "fail-pod", "Pod", "j-w-2", exitCode=7),
    )
    assert answer.phase("j") == "Completed"
    assert counts(answer) == {"succeeded": 2, "failed": 1}


def test_m5_pending_again_when_so_many_wait_that_the_minimum_cannot_be_met() -> None:
    answer = simulate(
        m.node("n", 2),
        m.job("j", m.role("w", 2)),
        m.step("10s", "fail-node", "Node", "n"),
        m.node("m", 2, at="30s"),
    )
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (10.0, "Pending"), (30.0, "Running")]


def test_m5_a_lost_member_that_can_be_spared_changes_no_phase() -> None:
    answer = simulate(
        m.node("a", 2),
        m.node("b", 1, labels={"which": "b"}),
        m.job("j", m.role("w", 3, 2)),
        m.step("10s", "fail-node", "Node", "b"),
    )
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running")]


def test_m5_terminating_pods_are_counted_as_such() -> None:
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("w", 2, stop_delay="60s")),
        m.step("10s", "delete", "Pod", "j-w-1"),
        until="20s",
    )
    assert counts(answer) == {"running": 1, "terminating": 1}
    assert by_role(answer) == {"w": {"phase": {"Running": 1}}}


def test_m5_a_job_scaled_to_no_replicas_keeps_its_phase() -> None:
    tasks = [m.role("w", 0)]
    answer = simulate(m.node("n", 4), m.job("j", m.role("w", 2)), m.patch("10s", "Job", "j", spec={"tasks": tasks}))
    assert not answer.lines("rejected"), answer.rejected("j")
    assert answer.pods("j-") == []
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running")]
    assert counts(answer) == {}
    answer = simulate(m.node("n", 1), m.job("j", m.role("w", 4)), m.patch("10s", "Job", "j", spec={"tasks": tasks}))
    assert answer.phases("j") == [(0.0, "Pending")]


def test_m5_a_job_of_no_replicas_waits_to_be_scaled_up() -> None:
    answer = simulate(
        m.node("n", 4), m.job("j", m.role("w", 0)), m.patch("10s", "Job", "j", spec={"tasks": [m.role("w", 2)]})
    )
    assert not answer.lines("rejected")
    assert answer.first_bound() == {"j-w-0": 10.0, "j-w-1": 10.0}
    assert answer.phases("j") == [(0.0, "Pending"), (10.0, "Running")]


def test_m5_a_job_that_ended_is_left_alone() -> None:
    """Nothing is created anew for it, and its counts stay."""
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("w", 2, run_time="5s")),
        m.step("10s", "delete", "Pod", "j-w-0"),
        m.step("20s", "restart-scheduler"),
    )
    assert answer.phase("j") == "Completed"
    assert answer.pods("j-") == ["j-w-1"]
    assert len(answer.lines("bound")) == 2


def test_m5_the_phase_survives_a_restart() -> None:
    answer = simulate(
        m.node("n", 4),
        m.job("j", m.role("a", 1, run_time="10s"), m.role("b", 1, run_time="30s")),
        m.step("20s", "restart-scheduler"),
    )
    assert answer.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (30.0, "Completed")]


def test_m5_phase_lines_say_from_and_to() -> None:
    answer = simulate(m.node("n", 4), m.one_pod_job("j", run_time="5s"))
    lines = [(line["from"], line["to"]) for line in answer.lines("phase", "j")]
    assert lines == [("", "Pending"), ("Pending", "Running"), ("Running", "Completed")]


def test_m5_a_deleted_job_takes_its_pods_and_group_along() -> None:
    answer = simulate(m.node("n", 4), m.one_pod_job("j", delete_at="10s"), m.one_pod_job("next", 4, at="1s"))
    assert answer.pods("j-") == []
    assert not [one for one in answer.objects if one["kind"] == "PodGroup" and one["metadata"]["name"].startswith("j-")]
    assert answer.first_bound()["next-w-0"] == 10.0
    assert not any(one["apiVersion"] == m.BATCH and one["metadata"]["name"] == "j" for one in answer.objects)


def test_k13_a_bare_podgroup_goes_through_volcanos_phases() -> None:

    answer = simulate(
        m.node("n", 4),
        m.podgroup("g", 2),
        [m.pod(f"p{index}", group="g", run_time=f"{10 * (index + 1)}s") for index in range(2)],
    )
    lines = [(line["t"], line["to"]) for line in answer.lines("phase", "g")]
    assert lines == [(0.0, "Pending"), (0.0, "Inqueue"), (0.0, "Running"), (20.0, "Completed")]
    status = answer.obj("PodGroup", "g")["status"]
    assert (status["running"], status["succeeded"], status["failed"]) == (0, 2, 0)
