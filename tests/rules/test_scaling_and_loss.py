"""Scaling a job that runs (M2), and losing what it runs on (M5, V2), through whole simulations."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate


def scale(at: str, minimum: int | None = None, **replicas: int | tuple[int, int]) -> m.Obj:
    """`scale("5s", a=3)`; `a=(3, 2)` sets the role's minimum too, `minimum` the job's."""
    tasks = []
    for name, wanted in replicas.items():
        count, least = wanted if isinstance(wanted, tuple) else (wanted, None)
        tasks.append(m.role(name, count, least, run_time="60s"))
    patch: dict[str, Any] = {"tasks": tasks}
    if minimum is not None:
        patch["minAvailable"] = minimum
    return m.step(at, "patch", "Job", "j", patch={"spec": patch})


def names(answer: Answer) -> set[str]:
    return {pod["metadata"]["name"] for pod in answer.all("Pod")}


def made(answer: Answer, prefix: str = "j-") -> list[tuple[float, str]]:
    lines = answer.lines("created", kind="Pod")
    return [(line["t"], line["name"]) for line in lines if line["name"].startswith(prefix)]


def deleted(answer: Answer) -> list[tuple[float, str]]:
    return [(line["t"], line["name"]) for line in answer.lines("deleted", kind="Pod")]


def phases(answer: Answer) -> list[tuple[float, str]]:
    return [(line["t"], line["to"]) for line in answer.lines("phase", "j", "Job")]


def below(answer: Answer) -> list[tuple[float, str]]:
    lines = answer.lines("warning", "j", "Job")
    return [(line["t"], line["message"]) for line in lines if "BelowMinimum" in line["message"]]


# ---- scaling


def test_m2_scaling_up_adds_the_next_indexes_and_disturbs_no_pod() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 2, run_time="60s")), scale("10s", a=4))
    assert made(answer)[2:] == [(10.0, "j-a-2"), (10.0, "j-a-3")]
    assert deleted(answer) == []
    assert answer.at("j-a-0", "succeeded") == 60.0
    assert phases(answer)[-1] == (70.0, "Completed")


def test_m2_scaling_down_takes_the_highest_indexes_first() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 5, run_time="60s")), scale("10s", a=2))
    assert deleted(answer) == [(10.0, "j-a-4"), (10.0, "j-a-3"), (10.0, "j-a-2")]
    assert phases(answer) == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Completed")]
    assert below(answer) == []


def test_m2_scaling_one_role_leaves_the_others_alone() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 2, run_time="60s"), m.role("b", 2, run_time="60s")),
        scale("10s", a=1, b=3),
    )
    assert deleted(answer) == [(10.0, "j-a-1")]
    assert made(answer)[4:] == [(10.0, "j-b-2")]


def test_m2_down_and_up_again() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 3, run_time="60s", stop_delay="5s")),
        *(
            m.step(
                at,
                "patch",
                "Job",
                "j",
                patch={"spec": {"tasks": [m.role("a", count, run_time="60s", stop_delay="5s")]}},
            )
            for at, count in (("10s", 1), ("12s", 3))
        ),
    )
    assert deleted(answer) == [(15.0, "j-a-2"), (15.0, "j-a-1")]
    assert sorted(made(answer)[3:]) == [(15.0, "j-a-1"), (15.0, "j-a-2")]
    assert phases(answer)[-1] == (75.0, "Completed")


def test_m2_a_raised_minimum_is_met_or_said() -> None:
    answer = simulate(m.node("n", 4), m.job("j", m.role("a", 4, 2, run_time="60s")), scale("10s", 4, a=(4, 4)))
    assert answer.group_of("j")["spec"]["minMember"] == 4
    assert phases(answer) == [(0.0, "Pending"), (0.0, "Running"), (60.0, "Completed")]
    answer = simulate(
        m.node("n", 2),
        m.job("j", m.role("a", 4, 2)),
        m.step("10s", "patch", "Job", "j", patch={"spec": {"minAvailable": 4, "tasks": [m.role("a", 4, 4)]}}),
    )
    assert phases(answer)[-1] == (10.0, "Pending")
    assert below(answer) == [(10.0, "BelowMinimum: 2 of 4 pods run or succeeded, minAvailable 4: 2 wait")]
    assert names(answer) == {f"j-a-{index}" for index in range(4)}, "what runs runs on"


def test_m2_a_lowered_minimum_lets_the_job_run() -> None:
    answer = simulate(
        m.node("n", 2),
        m.job("j", m.role("a", 2, 2), m.role("b", 1, 1)),
        m.step(
            "10s",
            "patch",
            "Job",
            "j",
            patch={"spec": {"minAvailable": 2, "tasks": [m.role("a", 2, 2), m.role("b", 1, 0)]}},
        ),
    )
    assert phases(answer)[-1] == (10.0, "Running")


def test_m2_scaling_is_no_eviction_even_if_the_controllers_are_restarted() -> None:
    policies = [{"event": "PodEvicted", "action": "AbortJob"}]
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 3, run_time="60s", stop_delay="10s"), policies=policies),
        m.step(
            "10s", "patch", "Job", "j", patch={"spec": {"tasks": [m.role("a", 1, run_time="60s", stop_delay="10s")]}}
        ),
        m.restart("15s"),
    )
    assert phases(answer)[-1] == (60.0, "Completed")


def test_m2_scaling_a_job_that_ended_does_nothing() -> None:
    answer = simulate(m.node("n", 8), m.job("j", m.role("a", 2, run_time="5s")), scale("10s", a=4))
    assert len(made(answer)) == 2
    assert phases(answer)[-1] == (5.0, "Completed")


# ---- loss


def lost(*more: m.Obj, policies: list[m.Obj] | None = None, until: str | None = None) -> Answer:
    """A job of four on two nodes of two; one of them fails after 10 seconds."""
    spec = {"policies": policies} if policies else {}
    return simulate(
        m.node("n1", 2),
        m.node("n2", 2),
        m.job("j", m.role("a", 4, run_time="60s"), **spec),
        m.step("10s", "fail-node", "Node", "n2"),
        *more,
        until=until,
    )


def test_m5_a_node_fails_and_there_is_no_policy() -> None:
    answer = lost(until="30s")
    assert phases(answer)[-1] == (10.0, "Pending")
    assert below(answer) == [(10.0, "BelowMinimum: 2 of 4 pods run or succeeded, minAvailable 4: 2 wait")]
    state = answer.obj("Job", "j")["status"]["state"]
    assert (state["phase"], state["reason"]) == ("Pending", "BelowMinimum")
    assert len(names(answer)) == 4
    assert answer.obj("Job", "j")["status"]["pending"] == 2


def test_m5_it_runs_again_when_there_is_room_again() -> None:
    answer = lost(m.step("30s", "recover-node", "Node", "n2"))
    assert phases(answer)[2:] == [(10.0, "Pending"), (30.0, "Running"), (90.0, "Completed")]
    assert len(made(answer)) == 6, "only what was lost was made again"


@pytest.mark.parametrize("action, final", [("AbortJob", "Aborted"), ("TerminateJob", "Terminated")])
def test_v2_a_node_dies_and_the_policy_ends_the_job(action: str, final: str) -> None:
    answer = lost(policies=[{"event": "PodEvicted", "action": action}])
    assert phases(answer)[-1] == (10.0, final)
    assert names(answer) == set()


def test_v2_a_node_dies_and_the_policy_restarts_the_job() -> None:
    answer = lost(m.node("n3", 2, at="20s"), policies=[{"event": "PodEvicted", "action": "RestartJob"}])
    assert phases(answer)[2:4] == [(10.0, "Restarting"), (10.0, "Pending")]
    assert {at for at, _ in answer.bound("j-").values()} == {20.0}, "all of them, together"
    assert phases(answer)[-1] == (80.0, "Completed")
    assert answer.obj("Job", "j")["status"]["retryCount"] == 1


def test_v2_a_restart_task_policy_when_a_node_dies() -> None:
    answer = simulate(
        m.node("n1", 2),
        m.node("n2", 2),
        m.node("n3", 2),
        m.job(
            "j",
            m.role("a", 2, run_time="60s"),
            m.role("b", 4, run_time="60s", policies=[{"event": "PodEvicted", "action": "RestartTask"}]),
        ),
        m.step("10s", "fail-node", "Node", "n3"),
        m.step("20s", "recover-node", "Node", "n3"),
    )
    again = {name for at, name in made(answer) if at >= 10.0}
    assert {name for name in again if name.startswith("j-b-")} == {f"j-b-{index}" for index in range(4)}
    assert phases(answer)[-1][1] == "Completed"


def test_m5_a_job_whose_surplus_was_lost_runs_on() -> None:
    answer = simulate(
        m.node("n1", 2),
        m.node("n2", 2),
        m.job("j", m.role("a", 4, 2, run_time="60s")),
        m.step("10s", "fail-node", "Node", "n2"),
    )
    assert below(answer) == []
    assert (10.0, "Pending") not in phases(answer)


def test_m5_a_job_whose_pods_failed_for_good_says_that_it_is_below_its_minimum() -> None:
    answer = simulate(m.node("n", 4), m.job("j", m.role("a", 3)), m.step("10s", "fail-pod", "Pod", "j-a-1"))
    assert phases(answer)[-1] == (0.0, "Running")
    assert below(answer) == [(10.0, "BelowMinimum: 2 of 3 pods run or succeeded, minAvailable 3: 1 failed")]
    assert answer.obj("Job", "j")["status"]["state"]["reason"] == "BelowMinimum"


def test_g7_surplus_is_served_while_what_was_lost_has_no_replacement_yet() -> None:
    """The scheduler went round for ever: a minimum was not met, and nothing that waited could meet it."""
    answer = simulate(
        m.node("n", 3),
        m.job("j", m.role("a", 2, stop_delay="20s"), m.role("b", 3, 1)),
        m.step("5s", "delete", "Pod", "j-a-1"),
        m.node("late", 1, at="10s"),
    )
    assert answer.bound("j-b-1") == {"j-b-1": (10.0, "late")}
    assert answer.at("j-a-1", "deleted") == 25.0
    assert answer.bound("j-a-1") == {"j-a-1": (25.0, "n")}


def test_m5_a_job_that_can_never_start_since_pods_failed_says_so() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 1, run_time="5s", exit_code="1"), m.role("b", 1, run_time="60s")),
        m.step(
            "10s",
            "patch",
            "Job",
            "j",
            patch={"spec": {"tasks": [m.role("a", 3, run_time="5s", exit_code="1"), m.role("b", 1, run_time="60s")]}},
        ),
    )
    assert phases(answer)[-1] == (10.0, "Pending")
    assert answer.obj("Job", "j")["status"]["state"]["reason"] == "BelowMinimum"
    assert "1 failed" in below(answer)[-1][1]
    assert "1 of role a is needed" in answer.why("default/j")


def test_m5_what_a_quota_keeps_from_coming_back_is_missing_all_the_same() -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default", "annotations": {"sim.enbloc.dev/at": "5s"}},
        "spec": {"hard": {"pods": "1"}},
    }
    answer = simulate(
        m.node("n", 4), quota, m.job("j", m.role("a", 2)), m.step("10s", "delete", "Pod", "j-a-1"), until="20s"
    )
    assert phases(answer)[-1] == (10.0, "Pending")
    assert "1 wait" in below(answer)[0][1]


def test_m5_active_deadlines_end_a_whole_job() -> None:
    answer = simulate(m.node("n", 4), m.job("j", m.role("a", 2, activeDeadlineSeconds=30)))
    assert phases(answer)[-1] == (30.0, "Failed")
    answer = simulate(
        m.node("n", 4),
        m.job(
            "j", m.role("a", 2, activeDeadlineSeconds=30), policies=[{"event": "PodFailed", "action": "CompleteJob"}]
        ),
    )
    assert phases(answer)[-1] == (30.0, "Completed")
