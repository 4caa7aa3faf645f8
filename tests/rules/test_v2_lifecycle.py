"""V2 through whole simulations: events, exit codes, actions, timeouts, retries, Commands, phases."""

from __future__ import annotations

from pathlib import Path

import pytest

from enbloc.controllers.states.table import STATES, leads, markdown
from job_stories import command, made, on, phase, phases, warnings
from stories import job, node, restart, role, simulate, step

DOCS = Path(__file__).parent.parent.parent / "docs" / "job-states.md"


# ---- without a policy


def test_v2_without_a_policy_a_failed_pod_stays_failed() -> None:
    told = simulate(node("n"), job("j", role("a", 2, run="10s", code="1"), role("b", 1, run="20s")))
    assert made(told, "j-a-0") == [0.0]
    assert phase(told) == "Failed"


def test_v2_without_a_policy_a_deleted_pod_is_recreated() -> None:
    told = simulate(node("n"), job("j", role("a", 2, run="30s")), step("5s", "delete", "Pod", "j-a-1"))
    assert made(told, "j-a-1") == [0.0, 5.0]
    assert made(told, "j-a-0") == [0.0]
    assert phase(told) == "Completed"


def test_v2_without_a_policy_an_evicted_pod_is_recreated() -> None:
    told = simulate(
        node("n1", 1), node("n2", 1), job("j", role("a", 1, run="30s")), step("5s", "fail-node", "Node", "n1")
    )
    assert told.bound("j-a-0") == {"j-a-0": (5.0, "n2")}
    assert phase(told) == "Completed"


# ---- events and actions


@pytest.mark.parametrize(
    "action, on_the_way, final",
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_v2_actions_that_end_a_job_wait_for_its_pods(action: str, on_the_way: str, final: str) -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 1, run="10s", code="1"), role("b", 2, stop="5s"), policies=[on(action, "PodFailed")]),
    )
    assert phases(told)[-2:] == [(10.0, on_the_way), (15.0, final)]
    assert [pod["metadata"]["name"] for pod in told.all("Pod")] == ["j-a-0"], "who ended stays to be looked at"


def test_v2_restart_job_begins_anew_with_all_pods() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="30s"), role("b", 1, run="5s", code="1,0"), policies=[on("RestartJob", "PodFailed")]),
    )
    assert told.times("j-").count(5.0) == 3
    assert phases(told) == [
        (0.0, "Pending"),
        (0.0, "Running"),
        (5.0, "Restarting"),
        (5.0, "Pending"),
        (5.0, "Running"),
        (35.0, "Completed"),
    ]
    status = told.obj("Job", "j")["status"]
    assert (status["version"], status["retryCount"]) == (1, 1)


def test_v2_restart_task_restarts_its_role_alone() -> None:
    told = simulate(
        node("n"),
        job(
            "j",
            role("a", 2, run="30s"),
            role("b", 1, run="40s"),
            policies=[on("RestartTask", "PodFailed")],
        ),
        step("5s", "fail-pod", "Pod", "j-a-1", exitCode=3),
    )
    assert (made(told, "j-a-0"), made(told, "j-a-1"), made(told, "j-b-0")) == ([0.0, 5.0], [0.0, 5.0], [0.0])
    assert phase(told) == "Completed"


def test_v2_restart_pod_restarts_that_pod_alone() -> None:
    told = simulate(node("n"), job("j", role("a", 3, run="30s")), step("5s", "fail-pod", "Pod", "j-a-1"))
    assert phase(told) == "Failed"
    told = simulate(
        node("n"),
        job("j", role("a", 3, run="30s"), policies=[on("RestartPod", "PodFailed")]),
        step("5s", "fail-pod", "Pod", "j-a-1"),
    )
    assert [made(told, f"j-a-{index}") for index in range(3)] == [[0.0], [0.0, 5.0], [0.0]]
    assert phase(told) == "Completed"


def test_v2_pod_evicted_is_what_somebody_else_deletes() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="30s"), policies=[on("RestartJob", "PodEvicted")]),
        step("5s", "delete", "Pod", "j-a-1"),
    )
    assert (made(told, "j-a-0"), made(told, "j-a-1")) == ([0.0, 5.0], [0.0, 5.0])


def test_v2_what_the_controller_deletes_is_no_eviction() -> None:
    policies = [on("AbortJob", "PodEvicted"), on("RestartTask", "PodFailed")]
    scaled = [{"name": "a", "replicas": 2, "template": role("a", 1, run="60s", stop="3s")["template"]}]
    told = simulate(
        node("n"),
        job("j", role("a", 4, run="60s", stop="3s"), policies=policies),
        step("5s", "patch", "Job", "j", patch={"spec": {"tasks": scaled}}),
        step("20s", "fail-pod", "Pod", "j-a-0"),
    )
    assert phase(told) == "Completed"
    assert made(told, "j-a-1") == [0.0, 23.0]


def test_v2_a_restart_of_the_controller_within_restart_task_is_no_eviction() -> None:
    """Terminating pods of an earlier run are told from evicted ones by what the status says."""
    documents = (
        node("n"),
        job(
            "j",
            role("a", 3, run="60s", stop="10s"),
            policies=[on("AbortJob", "PodEvicted"), on("RestartTask", "PodFailed")],
        ),
        step("5s", "fail-pod", "Pod", "j-a-0"),
    )
    plain, restarted = simulate(*documents), simulate(*documents, restart("8s"))
    assert phase(plain) == phase(restarted) == "Completed"
    assert made(plain, "j-a-2") == made(restarted, "j-a-2") == [0.0, 15.0]


def test_v2_an_eviction_is_known_though_the_controller_was_restarted_meanwhile() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="60s", stop="10s"), policies=[on("AbortJob", "PodEvicted")]),
        step("5s", "delete", "Pod", "j-a-0"),
        restart("8s"),
    )
    assert phases(told)[-2:] == [(15.0, "Aborting"), (25.0, "Aborted")]


def test_v2_task_completed_when_all_pods_of_a_role_succeeded() -> None:
    told = simulate(
        node("n"),
        job(
            "j",
            role("driver", 2, run="10s", policies=[on("CompleteJob", "TaskCompleted")]),
            role("worker", 2),
        ),
    )
    assert phases(told)[-1] == (10.0, "Completed")
    told = simulate(
        node("n"),
        job("j", role("driver", 2, run="10s", policies=[on("CompleteJob", "TaskCompleted")]), role("worker", 2)),
        step("5s", "fail-pod", "Pod", "j-driver-0"),
    )
    assert phase(told) == "Running"


def test_v2_task_failed_when_container_restarts_reach_the_roles_max_retry() -> None:
    flaky = role("a", 1, run="5s", code="1", restartPolicy="OnFailure", policies=[on("AbortJob", "TaskFailed")])
    told = simulate(node("n"), job("j", flaky | {"maxRetry": 3}, role("b", 1)))
    # Restarts at 5 s, at 10 s (and a rest of 10 s), at 25 s (20 s): the third one is it.
    assert phases(told)[-1] == (25.0, "Aborted")
    told = simulate(node("n"), job("j", flaky | {"maxRetry": 2}, role("b", 1)))
    assert phases(told)[-1] == (10.0, "Aborted")


@pytest.mark.parametrize("what", ["fail", "evict"])
def test_v2_any_event_answers_what_goes_wrong(what: str) -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="30s"), policies=[on("TerminateJob", "*")]),
        step("5s", "fail-pod" if what == "fail" else "delete", "Pod", "j-a-0"),
    )
    assert phases(told)[-1] == (5.0, "Terminated")


def test_v2_any_event_leaves_success_alone() -> None:
    told = simulate(node("n"), job("j", role("a", 2, run="30s"), policies=[on("RestartJob", "*")]))
    assert phases(told)[-1] == (30.0, "Completed")


def test_v2_several_events_in_one_policy() -> None:
    for verb in ("fail-pod", "delete"):
        told = simulate(
            node("n"),
            job("j", role("a", 2, run="30s"), policies=[on("AbortJob", "PodFailed", "PodEvicted")]),
            step("5s", verb, "Pod", "j-a-0"),
        )
        assert phases(told)[-1] == (5.0, "Aborted")


def test_v2_unknown_is_about_the_podgroup() -> None:
    told = simulate(
        node("n1", 2),
        node("n2", 2),
        job("j", role("a", 4), policies=[on("AbortJob", "Unknown")]),
        step("5s", "fail-node", "Node", "n2"),
    )
    assert phases(told)[-1] == (5.0, "Aborted")


@pytest.mark.parametrize("code, final", [(3, "Aborted"), (4, "Terminated"), (6, "Terminated"), (5, "Completed")])
def test_v2_exit_codes_before_a_failure_as_such(code: int, final: str) -> None:
    policies = [on("AbortJob", exitCode=3), on("TerminateJob", exitCodes=[4, 6]), on("CompleteJob", "PodFailed")]
    told = simulate(
        node("n"), job("j", role("a", 2), policies=policies), step("5s", "fail-pod", "Pod", "j-a-0", exitCode=code)
    )
    assert phase(told) == final


def test_v2_role_policy_comes_before_the_jobs() -> None:
    jobs_own = [on("AbortJob", "PodFailed")]
    told = simulate(
        node("n"),
        job("j", role("a", 1, run="5s", code="1,0", policies=[on("RestartPod", "PodFailed")]), policies=jobs_own),
    )
    assert phase(told) == "Completed"
    told = simulate(
        node("n"),
        job(
            "j",
            role("a", 1, run="50s", policies=[on("RestartPod", "PodFailed")]),
            role("b", 1, run="5s", code="1"),
            policies=jobs_own,
        ),
    )
    assert phase(told) == "Aborted"


# ---- timeouts


def test_v2_pod_pending_for_too_long() -> None:
    told = simulate(node("n", 2), job("j", role("a", 3, 2), policies=[on("AbortJob", "PodPending", timeout="30s")]))
    assert phases(told)[-1] == (30.0, "Aborted")


def test_v2_pod_pending_that_is_over_in_time_answers_nothing() -> None:
    told = simulate(
        node("n", 2),
        job("j", role("a", 3, 2, run="60s"), policies=[on("AbortJob", "PodPending", timeout="30s")]),
        node("late", 2, at="29s"),
    )
    assert phase(told) == "Completed"


@pytest.mark.parametrize("restarted", [False, True])
def test_v2_a_failure_is_answered_after_the_timeout(restarted: bool) -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="60s"), policies=[on("AbortJob", "PodFailed", timeout="20s")]),
        step("5s", "fail-pod", "Pod", "j-a-0"),
        [restart("15s")] if restarted else [],
    )
    assert phases(told)[-1] == (25.0, "Aborted")


def test_v2_a_failed_pod_that_went_is_no_cause_any_more() -> None:
    told = simulate(
        node("n"),
        job("j", role("a", 2, run="60s"), policies=[on("AbortJob", "PodFailed", timeout="20s")]),
        step("5s", "fail-pod", "Pod", "j-a-0"),
        step("15s", "delete", "Pod", "j-a-0"),
    )
    assert phase(told) == "Completed"


def test_v2_a_job_all_of_whose_pods_failed_waits_for_its_policys_time() -> None:
    told = simulate(
        node("n"), job("j", role("a", 1, run="5s", code="1,0"), policies=[on("RestartJob", "PodFailed", timeout="10s")])
    )
    assert made(told, "j-a-0") == [0.0, 15.0]
    assert phases(told)[-1] == (20.0, "Completed")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("comes_back", [False, True])
def test_v2_an_eviction_is_answered_after_the_timeout_unless_the_pod_runs_again(
    comes_back: bool, restarted: bool
) -> None:
    told = simulate(
        node("n1", 1),
        node("n2", 1),
        job("j", role("a", 2, run="100s"), policies=[on("AbortJob", "PodEvicted", timeout="20s")]),
        step("5s", "fail-node", "Node", "n2"),
        [step("24s", "recover-node", "Node", "n2")] if comes_back else [],
        [restart("15s")] if restarted else [],
    )
    assert (phases(told)[-1] == (25.0, "Aborted")) == (not comes_back)
    assert (phase(told) == "Completed") == comes_back


# ---- how often


@pytest.mark.parametrize("most", [1, 2, 3])
def test_v2_max_retry_is_the_number_of_runs(most: int) -> None:
    told = simulate(
        node("n"), job("j", role("a", 2, run="5s", code="1"), policies=[on("RestartJob", "PodFailed")], maxRetry=most)
    )
    assert len(made(told, "j-a-0")) == most
    assert phase(told) == "Failed"
    assert any("MaxRetryReached" in text for text in warnings(told, "Job"))


def test_v2_max_retry_is_three_by_default() -> None:
    told = simulate(node("n"), job("j", role("a", 1, run="5s", code="1"), policies=[on("RestartJob", "PodFailed")]))
    assert made(told, "j-a-0") == [0.0, 5.0, 10.0]
    told = simulate(node("n"), job("j", role("a", 1, run="5s", code="1,1,0"), policies=[on("RestartJob", "PodFailed")]))
    assert phase(told) == "Completed"


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask"])
def test_v2_a_pod_and_a_role_run_at_most_max_retry_times_too(action: str) -> None:
    told = simulate(node("n"), job("j", role("a", 1, run="5s", code="1"), policies=[on(action, "PodFailed")]))
    assert made(told, "j-a-0") == [0.0, 5.0, 10.0]
    assert phase(told) == "Failed"


def test_v2_each_pod_has_runs_of_its_own() -> None:
    told = simulate(
        node("n", 8), job("j", role("a", 4, run="5s", code="1,1,0"), policies=[on("RestartPod", "PodFailed")])
    )
    assert phase(told) == "Completed"
    assert "retryCount" not in told.obj("Job", "j")["status"]


# ---- the end


def test_v2_min_success_ends_the_job() -> None:
    told = simulate(node("n"), job("j", role("a", 1, run="10s"), role("b", 2, run="100s"), minSuccess=1))
    assert phases(told)[-1] == (10.0, "Completed")
    told = simulate(node("n"), job("j", role("a", 3, run="10s", code="1"), minSuccess=1))
    assert phase(told) == "Failed"


@pytest.mark.parametrize("code, ttl", [("0", 30), ("1", 30), ("0", 0)])
def test_v2_ttl_after_completed_and_failed(code: str, ttl: int) -> None:
    told = simulate(node("n"), job("j", role("a", 1, run="10s", code=code), ttlSecondsAfterFinished=ttl))
    assert [line["t"] for line in told.lines("deleted", "j", "Job")] == [10.0 + ttl]
    assert not told.all("Pod")
    assert not told.all("PodGroup")


def test_v2_no_ttl_for_an_aborted_job() -> None:
    told = simulate(node("n"), job("j", role("a", 1), ttlSecondsAfterFinished=30), command("stop", "AbortJob", "10s"))
    assert phase(told) == "Aborted"
    assert told.data["end"] == 10.0


def test_v2_active_deadline_fails_a_pod_and_the_policy_decides() -> None:
    slow = role("a", 1, activeDeadlineSeconds=20)
    told = simulate(node("n"), job("j", slow, role("b", 1), policies=[on("RestartJob", "PodFailed")], maxRetry=2))
    assert made(told, "j-a-0") == [0.0, 20.0]
    assert phases(told)[-1] == (40.0, "Failed")
    told = simulate(node("n"), job("j", slow, role("b", 1, run="50s")))
    assert phase(told) == "Failed"
    assert told.obj("Pod", "j-a-0")["status"]["reason"] == "DeadlineExceeded"


# ---- fences


def test_v2_a_late_event_of_an_earlier_attempt_changes_nothing() -> None:
    """Two pods fail one after the other while the job restarts: the second failure is of the earlier version."""
    told = simulate(
        node("n"),
        job(
            "j",
            role("a", 1, run="5s", code="1,0"),
            role("b", 2, run="30s", stop="10s"),
            policies=[on("RestartJob", "PodFailed", "PodEvicted")],
        ),
        step("7s", "fail-pod", "Pod", "j-b-0"),
        step("8s", "delete", "Pod", "j-b-1"),
        restart("9s"),
    )
    assert told.obj("Job", "j")["status"]["retryCount"] == 1
    assert phases(told)[-1] == (45.0, "Completed")


def test_v2_a_namesake_does_not_take_the_resources_of_its_predecessor() -> None:
    first = job("j", role("a", 1), plugins={"svc": [], "ssh": []})
    told = simulate(node("n"), first, step("10s", "delete", "Job", "j"), step("10s", "create", object=first))
    uid = told.obj("Job", "j")["metadata"]["uid"]
    for kind, name in (("Service", "j"), ("ConfigMap", "j-svc"), ("Secret", "j-ssh")):
        assert told.obj(kind, name)["metadata"]["ownerReferences"][0]["uid"] == uid
    assert phase(told) == "Running"


def test_v2_a_strangers_pod_or_service_in_the_way_is_told_and_waited_for() -> None:
    stranger = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "j", "namespace": "default"}, "spec": {}}
    told = simulate(
        node("n"),
        stranger,
        job("j", role("a", 1, run="10s"), plugins={"svc": []}, at="1s"),
        step("5s", "delete", "Service", "j"),
    )
    assert any("FailedCreate" in text and "already exists" in text for text in warnings(told, "Job"))
    assert phase(told) == "Completed"


# ---- the table


def test_v2_every_phase_change_that_happens_is_in_the_table() -> None:
    assert set(STATES) == {
        "Pending",
        "Running",
        "Restarting",
        "Completing",
        "Completed",
        "Aborting",
        "Aborted",
        "Terminating",
        "Terminated",
        "Failed",
    }
    for state in STATES.values():
        for to in (*state.by_itself, *state.by_action.values()):
            assert to in STATES
            assert leads(state.phase, to)
    assert not leads("Completed", "Running")


def test_v2_the_document_shows_the_table() -> None:
    """If this fails, paste what `enbloc.controllers.states.table.markdown()` returns into docs/job-states.md."""
    assert markdown() in DOCS.read_text()


def test_v2_a_command_at_the_instant_of_a_timer_does_not_swallow_it() -> None:
    told = simulate(
        node("n"), job("j", role("a", 1, run="10s"), ttlSecondsAfterFinished=5), command("late", "AbortJob", "15s")
    )
    assert [line["t"] for line in told.lines("deleted", "j", "Job")] == [15.0]
