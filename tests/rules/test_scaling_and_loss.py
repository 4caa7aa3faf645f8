"""Scaling a job that runs (M2), and losing what it runs on (M5, V2), through whole simulations."""

from __future__ import annotations

from typing import Any

import pytest

from stories import Answer, Obj, job, node, restart, role, simulate, step


def scale(at: str, minimum: int | None = None, **replicas: int | tuple[int, int]) -> Obj:
    """`scale("5s", a=3)`; `a=(3, 2)` sets the role's minimum too, `minimum` the job's."""
    tasks = []
    for name, wanted in replicas.items():
        count, least = wanted if isinstance(wanted, tuple) else (wanted, None)
        tasks.append(role(name, count, least, run="60s"))
    patch: dict[str, Any] = {"tasks": tasks}
    if minimum is not None:
        patch["minAvailable"] = minimum
    return step(at, "patch", "Job", "j", patch={"spec": patch})


def names(told: Answer) -> set[str]:
    return {pod["metadata"]["name"] for pod in told.all("Pod")}


def made(told: Answer, prefix: str = "j-") -> list[tuple[float, str]]:
    lines = told.lines("created", kind="Pod")
    return [(line["t"], line["name"]) for line in lines if line["name"].startswith(prefix)]


def deleted(told: Answer) -> list[tuple[float, str]]:
    return [(line["t"], line["name"]) for line in told.lines("deleted", kind="Pod")]


def phases(told: Answer) -> list[tuple[float, str]]:
    return [(line["t"], line["to"]) for line in told.lines("phase", "j", "Job")]


def below(told: Answer) -> list[tuple[float, str]]:
    lines = told.lines("warning", "j", "Job")
    return [(line["t"], line["message"]) for line in lines if "BelowMinimum" in line["message"]]


# ---- scaling


def test_m2_scaling_up_adds_the_next_indexes_and_disturbs_nobody() -> None:
    told = simulate(node("n", 8), job("j", role("a", 2, run="60s")), scale("10s", a=4))
    assert made(told)[2:] == [(10.0, "j-a-2"), (10.0, "j-a-3")]
    assert deleted(told) == []
    assert told.at("j-a-0", "succeeded") == 60.0
    assert phases(told)[-1] == (70.0, "Completed")


def test_m2_scaling_down_takes_the_highest_indexes_first() -> None:
    told = simulate(node("n", 8), job("j", role("a", 5, run="60s")), scale("10s", a=2))
    assert deleted(told) == [(10.0, "j-a-4"), (10.0, "j-a-3"), (10.0, "j-a-2")]
    assert phases(told) == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Completed")]
    assert below(told) == []


def test_m2_scaling_one_role_leaves_the_others_alone() -> None:
    told = simulate(node("n", 8), job("j", role("a", 2, run="60s"), role("b", 2, run="60s")), scale("10s", a=1, b=3))
    assert deleted(told) == [(10.0, "j-a-1")]
    assert made(told)[4:] == [(10.0, "j-b-2")]


def test_m2_down_and_up_again() -> None:
    told = simulate(
        node("n", 8),
        job("j", role("a", 3, run="60s", stop="5s")),
        *(
            step(at, "patch", "Job", "j", patch={"spec": {"tasks": [role("a", count, run="60s", stop="5s")]}})
            for at, count in (("10s", 1), ("12s", 3))
        ),
    )
    assert deleted(told) == [(15.0, "j-a-2"), (15.0, "j-a-1")]
    assert sorted(made(told)[3:]) == [(15.0, "j-a-1"), (15.0, "j-a-2")]
    assert phases(told)[-1] == (75.0, "Completed")


def test_m2_a_raised_minimum_is_met_or_said() -> None:
    told = simulate(node("n", 4), job("j", role("a", 4, 2, run="60s")), scale("10s", 4, a=(4, 4)))
    assert told.group_of("j")["spec"]["minMember"] == 4
    assert phases(told) == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Completed")]
    told = simulate(
        node("n", 2),
        job("j", role("a", 4, 2)),
        step("10s", "patch", "Job", "j", patch={"spec": {"minAvailable": 4, "tasks": [role("a", 4, 4)]}}),
    )
    assert phases(told)[-1] == (10.0, "Pending")
    assert below(told) == [(10.0, "BelowMinimum: 2 of 4 pods run or succeeded, minAvailable 4: 2 wait")]
    assert names(told) == {f"j-a-{index}" for index in range(4)}, "what runs runs on"


def test_m2_a_lowered_minimum_lets_the_job_run() -> None:
    told = simulate(
        node("n", 2),
        job("j", role("a", 2, 2), role("b", 1, 1)),
        step(
            "10s",
            "patch",
            "Job",
            "j",
            patch={"spec": {"minAvailable": 2, "tasks": [role("a", 2, 2), role("b", 1, 0)]}},
        ),
    )
    assert phases(told)[-1] == (10.0, "Running")


def test_m2_scaling_is_no_eviction_even_if_the_controllers_are_restarted() -> None:
    policies = [{"event": "PodEvicted", "action": "AbortJob"}]
    told = simulate(
        node("n", 8),
        job("j", role("a", 3, run="60s", stop="10s"), policies=policies),
        step("10s", "patch", "Job", "j", patch={"spec": {"tasks": [role("a", 1, run="60s", stop="10s")]}}),
        restart("15s"),
    )
    assert phases(told)[-1] == (60.0, "Completed")


def test_m2_scaling_a_job_that_ended_does_nothing() -> None:
    told = simulate(node("n", 8), job("j", role("a", 2, run="5s")), scale("10s", a=4))
    assert len(made(told)) == 2
    assert phases(told)[-1] == (5.0, "Completed")


# ---- loss


def lost(*more: Obj, policies: list[Obj] | None = None, until: str | None = None) -> Answer:
    """A job of four on two nodes of two; one of them fails after 10 seconds."""
    spec = {"policies": policies} if policies else {}
    return simulate(
        node("n1", 2),
        node("n2", 2),
        job("j", role("a", 4, run="60s"), **spec),
        step("10s", "fail-node", "Node", "n2"),
        *more,
        until=until,
    )


def test_m5_a_node_dies_and_nobody_has_a_policy() -> None:
    told = lost(until="30s")
    assert phases(told)[-1] == (10.0, "Pending")
    assert below(told) == [(10.0, "BelowMinimum: 2 of 4 pods run or succeeded, minAvailable 4: 2 wait")]
    state = told.obj("Job", "j")["status"]["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "BelowMinimum")
    assert len(names(told)) == 4
    assert told.obj("Job", "j")["status"]["pending"] == 2


def test_m5_it_runs_again_when_there_is_room_again() -> None:
    told = lost(step("30s", "recover-node", "Node", "n2"))
    assert phases(told)[2:] == [(10.0, "Pending"), (30.0, "Running"), (90.0, "Completed")]
    assert len(made(told)) == 6, "only what was lost was made again"


@pytest.mark.parametrize("action, final", [("AbortJob", "Aborted"), ("TerminateJob", "Terminated")])
def test_v2_a_node_dies_and_the_policy_ends_the_job(action: str, final: str) -> None:
    told = lost(policies=[{"event": "PodEvicted", "action": action}])
    assert phases(told)[-1] == (10.0, final)
    assert names(told) == set()


def test_v2_a_node_dies_and_the_policy_restarts_the_job() -> None:
    told = lost(node("n3", 2, at="20s"), policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    assert phases(told)[2:4] == [(10.0, "Restarting"), (10.0, "Pending")]
    assert {at for at, _ in told.bound("j-").values()} == {20.0}, "all of them, together"
    assert phases(told)[-1] == (80.0, "Completed")
    assert told.obj("Job", "j")["status"]["retryCount"] == 1


def test_v2_a_restart_task_policy_when_a_node_dies() -> None:
    told = simulate(
        node("n1", 2),
        node("n2", 2),
        node("n3", 2),
        job(
            "j",
            role("a", 2, run="60s"),
            role("b", 4, run="60s", policies=[{"event": "PodEvicted", "action": "RestartTask"}]),
        ),
        step("10s", "fail-node", "Node", "n3"),
        step("20s", "recover-node", "Node", "n3"),
    )
    again = {name for at, name in made(told) if at >= 10.0}
    assert {name for name in again if name.startswith("j-b-")} == {f"j-b-{index}" for index in range(4)}
    assert phases(told)[-1][1] == "Completed"


def test_m5_a_job_whose_surplus_was_lost_runs_on() -> None:
    told = simulate(
        node("n1", 2), node("n2", 2), job("j", role("a", 4, 2, run="60s")), step("10s", "fail-node", "Node", "n2")
    )
    assert below(told) == []
    assert (10.0, "Pending") not in phases(told)


def test_m5_a_job_whose_pods_failed_for_good_says_that_it_is_below_its_minimum() -> None:
    told = simulate(node("n", 4), job("j", role("a", 3)), step("10s", "fail-pod", "Pod", "j-a-1"))
    assert phases(told)[-1] == (0.0, "Running")
    assert below(told) == [(10.0, "BelowMinimum: 2 of 3 pods run or succeeded, minAvailable 3: 1 failed")]
    assert told.obj("Job", "j")["status"]["state"]["reason"] == "BelowMinimum"


def test_g7_surplus_is_served_while_what_was_lost_has_no_replacement_yet() -> None:
    """The scheduler went round for ever: a minimum was not met, and nothing that waited could meet it."""
    told = simulate(
        node("n", 3),
        job("j", role("a", 2, stop="20s"), role("b", 3, 1)),
        step("5s", "delete", "Pod", "j-a-1"),
        node("late", 1, at="10s"),
    )
    assert told.bound("j-b-1") == {"j-b-1": (10.0, "late")}
    assert told.at("j-a-1", "deleted") == 25.0
    assert told.bound("j-a-1") == {"j-a-1": (25.0, "n")}


def test_m5_a_job_that_can_never_start_since_pods_failed_says_so() -> None:
    told = simulate(
        node("n", 8),
        job("j", role("a", 1, run="5s", code="1"), role("b", 1, run="60s")),
        step(
            "10s",
            "patch",
            "Job",
            "j",
            patch={"spec": {"tasks": [role("a", 3, run="5s", code="1"), role("b", 1, run="60s")]}},
        ),
    )
    assert phases(told)[-1] == (10.0, "Pending")
    assert told.obj("Job", "j")["status"]["state"]["reason"] == "BelowMinimum"
    assert "1 failed" in below(told)[-1][1]
    assert "1 of role a is needed" in told.why("default/j")


def test_m5_what_a_quota_keeps_from_coming_back_is_missing_all_the_same() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default", "annotations": {"sim.enbloc.dev/at": "5s"}},
        "spec": {"hard": {"pods": "1"}},
    }
    told = simulate(node("n", 4), quota, job("j", role("a", 2)), step("10s", "delete", "Pod", "j-a-1"), until="20s")
    assert phases(told)[-1] == (10.0, "Pending")
    assert "1 wait" in below(told)[0][1]


def test_m5_active_deadlines_end_a_whole_job() -> None:
    told = simulate(node("n", 4), job("j", role("a", 2, activeDeadlineSeconds=30)))
    assert phases(told)[-1] == (30.0, "Failed")
    told = simulate(
        node("n", 4),
        job("j", role("a", 2, activeDeadlineSeconds=30), policies=[{"event": "PodFailed", "action": "CompleteJob"}]),
    )
    assert phases(told)[-1] == (30.0, "Completed")
