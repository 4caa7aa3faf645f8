"""M5: what a Job's status says, over time; and the phases of its PodGroup beside it (K13)."""

from __future__ import annotations

from typing import Any

import pytest

from queue_stories import BATCH, Told, job, node, patch, play, podgroup, role, small, step

COUNTS = ("pending", "running", "succeeded", "failed", "terminating")


def counts(told: Told, name: str = "j") -> dict[str, int]:
    """The totals that are not zero."""
    status = told.obj("Job", name)["status"]
    return {key: status[key] for key in COUNTS if status[key]}


def by_role(told: Told, name: str = "j") -> dict[str, Any]:
    found: dict[str, Any] = told.obj("Job", name)["status"]["taskStatusCount"]
    return found


def test_m5_a_job_that_runs() -> None:
    told = play(node("n", 8), job("j", role("a", 3, 2), role("b", 2)))
    status = told.obj("Job", "j")["status"]
    assert status["state"]["phase"] == "Running"
    assert status["minAvailable"] == 4
    assert {key: status[key] for key in COUNTS} == {
        "pending": 0,
        "running": 5,
        "succeeded": 0,
        "failed": 0,
        "terminating": 0,
    }
    assert by_role(told) == {"a": {"phase": {"Running": 3}}, "b": {"phase": {"Running": 2}}}


def test_m5_pending_before_its_pods_exist_and_while_they_wait() -> None:
    told = play(node("n", 2), small("takes", 2), job("j", role("w", 2), at="1s"), until="1h")
    assert told.phase("j") == "Pending"
    assert counts(told) == {}
    told = play(node("n", 5), small("takes", 3), job("j", role("w", 3), at="1s"))  # let in by overcommit, and no room
    assert told.phase("j") == "Pending"
    assert counts(told) == {"pending": 3}
    assert by_role(told) == {"w": {"phase": {"Pending": 3}}}


def test_m5_running_only_when_the_minimum_runs() -> None:
    """A start delay of one role keeps the job Pending until enough run."""
    told = play(node("n", 8), job("j", role("a", 2), role("b", 2, start="10s")))
    assert told.phases("j") == [(0.0, "Pending"), (10.0, "Running")]


def test_m5_surplus_is_not_waited_for() -> None:
    told = play(node("n", 3), job("j", role("w", 5, 2)))
    assert told.phase("j") == "Running"
    assert counts(told) == {"running": 3, "pending": 2}


def test_m5_stays_running_while_members_end() -> None:
    """Two of three have ended, so fewer than the minimum run; the job is Running until all have."""
    told = play(node("n", 8), job("j", role("a", 2, run="10s"), role("b", 1, run="60s")))
    assert told.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Completed")]
    groups = [(line.t, line.to) for line in told.lines("phase") if line.kind == "PodGroup"]
    assert groups == [(0.0, "Pending"), (0.0, "Inqueue"), (0.0, "Running"), (60.0, "Completed")]
    assert by_role(told) == {"a": {"phase": {"Succeeded": 2}}, "b": {"phase": {"Succeeded": 1}}}


def test_m5_stays_running_while_members_fail() -> None:
    told = play(node("n", 8), job("j", role("a", 2, run="10s", exit_code="1"), role("b", 1, run="60s")))
    assert told.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Failed")]
    assert counts(told) == {"failed": 2, "succeeded": 1}
    assert by_role(told)["a"] == {"phase": {"Failed": 2}}


@pytest.mark.parametrize(
    ("roles", "phase"),
    [
        ([role("w", 3, run="5s")], "Completed"),
        ([role("w", 3, run="5s", exit_code="1")], "Failed"),
        # the minimum succeeded, beyond it a role may fail
        ([role("a", 2, 2, run="5s"), role("b", 2, 0, run="5s", exit_code="1")], "Completed"),
        # enough in all, too few of one role
        ([role("a", 4, 1, run="5s"), role("b", 2, 2, run="5s", exit_code="1")], "Failed"),
        ([role("a", 4, 2, run="5s"), role("b", 1, 1, run="5s", exit_code="3")], "Failed"),
    ],
)
def test_m5_completed_or_failed_by_total_and_by_role(roles: list[dict[str, Any]], phase: str) -> None:
    told = play(node("n", 8), job("j", *roles))
    assert told.phases("j")[-1] == (5.0, phase)
    assert told.group_of("j")["status"]["phase"] == "Completed"


def test_m5_a_failed_pod_of_a_role_with_some_to_spare_is_forgiven() -> None:
    told = play(node("n", 8), job("j", role("w", 3, 2, run="20s")), step("5s", "fail-pod", "Pod", "j-w-2", exitCode=7))
    assert told.phase("j") == "Completed"
    assert counts(told) == {"succeeded": 2, "failed": 1}


def test_m5_pending_again_when_so_many_wait_that_the_minimum_cannot_be_met() -> None:
    told = play(
        node("n", 2),
        job("j", role("w", 2)),
        step("10s", "fail-node", "Node", "n"),
        node("m", 2, at="30s"),
    )
    assert told.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (10.0, "Pending"), (30.0, "Running")]


def test_m5_a_lost_member_that_can_be_spared_changes_no_phase() -> None:
    told = play(
        node("a", 2),
        node("b", 1, labels={"which": "b"}),
        job("j", role("w", 3, 2)),
        step("10s", "fail-node", "Node", "b"),
    )
    assert told.phases("j") == [(0.0, "Pending"), (0.0, "Running")]


def test_m5_terminating_pods_are_counted_as_such() -> None:
    told = play(
        node("n", 4),
        job("j", role("w", 2, stop="60s")),
        step("10s", "delete", "Pod", "j-w-1"),
        until="20s",
    )
    assert counts(told) == {"running": 1, "terminating": 1}
    assert by_role(told) == {"w": {"phase": {"Running": 1}}}


def test_m5_a_job_scaled_to_no_replicas_keeps_its_phase() -> None:
    tasks = [role("w", 0)]
    told = play(node("n", 4), job("j", role("w", 2)), patch("10s", "Job", "j", spec={"tasks": tasks}))
    assert not told.lines("rejected"), told.rejected("j")
    assert told.pods("j-") == []
    assert told.phases("j") == [(0.0, "Pending"), (0.0, "Running")]
    assert counts(told) == {}
    told = play(node("n", 1), job("j", role("w", 4)), patch("10s", "Job", "j", spec={"tasks": tasks}))
    assert told.phases("j") == [(0.0, "Pending")]


def test_m5_a_job_of_no_replicas_waits_to_be_scaled_up() -> None:
    told = play(node("n", 4), job("j", role("w", 0)), patch("10s", "Job", "j", spec={"tasks": [role("w", 2)]}))
    assert not told.lines("rejected")
    assert told.bound() == {"j-w-0": 10.0, "j-w-1": 10.0}
    assert told.phases("j") == [(0.0, "Pending"), (10.0, "Running")]


def test_m5_a_job_that_ended_is_left_alone() -> None:
    """Nothing is created anew for it, and its counts stay."""
    told = play(
        node("n", 4),
        job("j", role("w", 2, run="5s")),
        step("10s", "delete", "Pod", "j-w-0"),
        step("20s", "restart-scheduler"),
    )
    assert told.phase("j") == "Completed"
    assert told.pods("j-") == ["j-w-1"]
    assert len(told.lines("bound")) == 2


def test_m5_the_phase_survives_a_restart() -> None:
    told = play(
        node("n", 4),
        job("j", role("a", 1, run="10s"), role("b", 1, run="30s")),
        step("20s", "restart-scheduler"),
    )
    assert told.phases("j") == [(0.0, "Pending"), (0.0, "Running"), (30.0, "Completed")]


def test_m5_phase_lines_say_from_and_to() -> None:
    told = play(node("n", 4), small("j", run="5s"))
    lines = [(line.from_, line.to) for line in told.lines("phase", "j")]
    assert lines == [("", "Pending"), ("Pending", "Running"), ("Running", "Completed")]


def test_m5_a_deleted_job_takes_its_pods_and_group_along() -> None:
    told = play(node("n", 4), small("j", delete_at="10s"), small("next", 4, at="1s"))
    assert told.pods("j-") == []
    assert not [one for one in told.objects if one["kind"] == "PodGroup" and one["metadata"]["name"].startswith("j-")]
    assert told.bound()["next-w-0"] == 10.0
    assert not any(one["apiVersion"] == BATCH and one["metadata"]["name"] == "j" for one in told.objects)


def test_k13_a_bare_podgroup_goes_through_volcanos_phases() -> None:
    from queue_stories import pod

    told = play(
        node("n", 4),
        podgroup("g", 2),
        [pod(f"p{index}", "g", run=f"{10 * (index + 1)}s") for index in range(2)],
    )
    lines = [(line.t, line.to) for line in told.lines("phase", "g")]
    assert lines == [(0.0, "Pending"), (0.0, "Inqueue"), (0.0, "Running"), (20.0, "Completed")]
    status = told.obj("PodGroup", "g")["status"]
    assert (status["running"], status["succeeded"], status["failed"]) == (0, 2, 0)
