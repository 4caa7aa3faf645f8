"""V2 through whole simulations: events, exit codes, actions, timeouts, retries, Commands, phases."""

from __future__ import annotations

import pytest

from enbloc.controllers.job_states import STATES, leads
from support import manifests as m
from support.simulation import simulate

# ---- without a policy


def test_v2_without_a_policy_a_failed_pod_stays_failed() -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("a", 2, run_time="10s", exit_code="1"), m.role("b", 1, run_time="20s"))
    )
    assert answer.created("j-a-0") == [0.0]
    assert answer.phase("j") == "Failed"


def test_v2_without_a_policy_a_deleted_pod_is_recreated() -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("a", 2, run_time="30s")), m.step("5s", "delete", "Pod", "j-a-1"))
    assert answer.created("j-a-1") == [0.0, 5.0]
    assert answer.created("j-a-0") == [0.0]
    assert answer.phase("j") == "Completed"


def test_v2_without_a_policy_an_evicted_pod_is_recreated() -> None:
    answer = simulate(
        m.node("n1", 1),
        m.node("n2", 1),
        m.job("j", m.role("a", 1, run_time="30s")),
        m.step("5s", "fail-node", "Node", "n1"),
    )
    assert answer.bound("j-a-0") == {"j-a-0": (5.0, "n2")}
    assert answer.phase("j") == "Completed"


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
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 1, run_time="10s", exit_code="1"),
            m.role("b", 2, stop_delay="5s"),
            policies=[m.policy(action, "PodFailed")],
        ),
    )
    assert answer.phases("j")[-2:] == [(10.0, on_the_way), (15.0, final)]
    assert [pod["metadata"]["name"] for pod in answer.all("Pod")] == ["j-a-0"], "who ended stays to be looked at"


def test_v2_restart_job_begins_anew_with_all_pods() -> None:
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 2, run_time="30s"),
            m.role("b", 1, run_time="5s", exit_code="1,0"),
            policies=[m.policy("RestartJob", "PodFailed")],
        ),
    )
    assert answer.times("j-").count(5.0) == 3
    assert answer.phases("j") == [
        (0.0, "Pending"),
        (0.0, "Running"),
        (5.0, "Restarting"),
        (5.0, "Pending"),
        (5.0, "Running"),
        (35.0, "Completed"),
    ]
    status = answer.obj("Job", "j")["status"]
    assert (status["version"], status["retryCount"]) == (1, 1)


def test_v2_restart_task_restarts_its_role_alone() -> None:
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 2, run_time="30s"),
            m.role("b", 1, run_time="40s"),
            policies=[m.policy("RestartTask", "PodFailed")],
        ),
        m.step("5s", "fail-pod", "Pod", "j-a-1", exitCode=3),
    )
    assert (answer.created("j-a-0"), answer.created("j-a-1"), answer.created("j-b-0")) == (
        [0.0, 5.0],
        [0.0, 5.0],
        [0.0],
    )
    assert answer.phase("j") == "Completed"


def test_v2_restart_pod_restarts_that_pod_alone() -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("a", 3, run_time="30s")), m.step("5s", "fail-pod", "Pod", "j-a-1"))
    assert answer.phase("j") == "Failed"
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 3, run_time="30s"), policies=[m.policy("RestartPod", "PodFailed")]),
        m.step("5s", "fail-pod", "Pod", "j-a-1"),
    )
    assert [answer.created(f"j-a-{index}") for index in range(3)] == [[0.0], [0.0, 5.0], [0.0]]
    assert answer.phase("j") == "Completed"


def test_v2_pod_evicted_is_what_others_delete() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="30s"), policies=[m.policy("RestartJob", "PodEvicted")]),
        m.step("5s", "delete", "Pod", "j-a-1"),
    )
    assert (answer.created("j-a-0"), answer.created("j-a-1")) == ([0.0, 5.0], [0.0, 5.0])


def test_v2_what_the_controller_deletes_is_no_eviction() -> None:
    policies = [m.policy("AbortJob", "PodEvicted"), m.policy("RestartTask", "PodFailed")]
    scaled = [{"name": "a", "replicas": 2, "template": m.role("a", 1, run_time="60s", stop_delay="3s")["template"]}]
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 4, run_time="60s", stop_delay="3s"), policies=policies),
        m.step("5s", "patch", "Job", "j", patch={"spec": {"tasks": scaled}}),
        m.step("20s", "fail-pod", "Pod", "j-a-0"),
    )
    assert answer.phase("j") == "Completed"
    assert answer.created("j-a-1") == [0.0, 23.0]


def test_v2_a_restart_of_the_controller_within_restart_task_is_no_eviction() -> None:
    """Terminating pods of an earlier run are distinguished from evicted ones by the status."""
    documents = (
        m.node("n"),
        m.job(
            "j",
            m.role("a", 3, run_time="60s", stop_delay="10s"),
            policies=[m.policy("AbortJob", "PodEvicted"), m.policy("RestartTask", "PodFailed")],
        ),
        m.step("5s", "fail-pod", "Pod", "j-a-0"),
    )
    plain, restarted = simulate(*documents), simulate(*documents, m.restart("8s"))
    assert plain.phase("j") == restarted.phase("j") == "Completed"
    assert plain.created("j-a-2") == restarted.created("j-a-2") == [0.0, 15.0]


def test_v2_an_eviction_is_known_though_the_controller_was_restarted_meanwhile() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="60s", stop_delay="10s"), policies=[m.policy("AbortJob", "PodEvicted")]),
        m.step("5s", "delete", "Pod", "j-a-0"),
        m.restart("8s"),
    )
    assert answer.phases("j")[-2:] == [(15.0, "Aborting"), (25.0, "Aborted")]


def test_v2_task_completed_when_all_pods_of_a_role_succeeded() -> None:
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("driver", 2, run_time="10s", policies=[m.policy("CompleteJob", "TaskCompleted")]),
            m.role("worker", 2),
        ),
    )
    assert answer.phases("j")[-1] == (10.0, "Completed")
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("driver", 2, run_time="10s", policies=[m.policy("CompleteJob", "TaskCompleted")]),
            m.role("worker", 2),
        ),
        m.step("5s", "fail-pod", "Pod", "j-driver-0"),
    )
    assert answer.phase("j") == "Running"


def test_v2_task_failed_when_container_restarts_reach_the_roles_max_retry() -> None:
    flaky = m.role(
        "a", 1, run_time="5s", exit_code="1", restartPolicy="OnFailure", policies=[m.policy("AbortJob", "TaskFailed")]
    )
    answer = simulate(m.node("n"), m.job("j", flaky | {"maxRetry": 3}, m.role("b", 1)))
    # Restarts at 5 s, at 10 s (and a rest of 10 s), at 25 s (20 s): the third one is it.
    assert answer.phases("j")[-1] == (25.0, "Aborted")
    answer = simulate(m.node("n"), m.job("j", flaky | {"maxRetry": 2}, m.role("b", 1)))
    assert answer.phases("j")[-1] == (10.0, "Aborted")


@pytest.mark.parametrize("what", ["fail", "evict"])
def test_v2_any_event_answers_what_goes_wrong(what: str) -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="30s"), policies=[m.policy("TerminateJob", "*")]),
        m.step("5s", "fail-pod" if what == "fail" else "delete", "Pod", "j-a-0"),
    )
    assert answer.phases("j")[-1] == (5.0, "Terminated")


def test_v2_any_event_leaves_success_alone() -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("a", 2, run_time="30s"), policies=[m.policy("RestartJob", "*")]))
    assert answer.phases("j")[-1] == (30.0, "Completed")


def test_v2_several_events_in_one_policy() -> None:
    for verb in ("fail-pod", "delete"):
        answer = simulate(
            m.node("n"),
            m.job("j", m.role("a", 2, run_time="30s"), policies=[m.policy("AbortJob", "PodFailed", "PodEvicted")]),
            m.step("5s", verb, "Pod", "j-a-0"),
        )
        assert answer.phases("j")[-1] == (5.0, "Aborted")


def test_v2_unknown_is_about_the_podgroup() -> None:
    answer = simulate(
        m.node("n1", 2),
        m.node("n2", 2),
        m.job("j", m.role("a", 4), policies=[m.policy("AbortJob", "Unknown")]),
        m.step("5s", "fail-node", "Node", "n2"),
    )
    assert answer.phases("j")[-1] == (5.0, "Aborted")


@pytest.mark.parametrize("code, final", [(3, "Aborted"), (4, "Terminated"), (6, "Terminated"), (5, "Completed")])
def test_v2_exit_codes_before_a_failure_as_such(code: int, final: str) -> None:
    policies = [
        m.policy("AbortJob", exitCode=3),
        m.policy("TerminateJob", exitCodes=[4, 6]),
        m.policy("CompleteJob", "PodFailed"),
    ]
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2), policies=policies),
        m.step("5s", "fail-pod", "Pod", "j-a-0", exitCode=code),
    )
    assert answer.phase("j") == final


def test_v2_role_policy_comes_before_the_jobs() -> None:
    jobs_own = [m.policy("AbortJob", "PodFailed")]
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 1, run_time="5s", exit_code="1,0", policies=[m.policy("RestartPod", "PodFailed")]),
            policies=jobs_own,
        ),
    )
    assert answer.phase("j") == "Completed"
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 1, run_time="50s", policies=[m.policy("RestartPod", "PodFailed")]),
            m.role("b", 1, run_time="5s", exit_code="1"),
            policies=jobs_own,
        ),
    )
    assert answer.phase("j") == "Aborted"


# ---- timeouts


def test_v2_pod_pending_for_too_long() -> None:
    answer = simulate(
        m.node("n", 2), m.job("j", m.role("a", 3, 2), policies=[m.policy("AbortJob", "PodPending", timeout="30s")])
    )
    assert answer.phases("j")[-1] == (30.0, "Aborted")


def test_v2_pod_pending_that_is_over_in_time_answers_nothing() -> None:
    answer = simulate(
        m.node("n", 2),
        m.job("j", m.role("a", 3, 2, run_time="60s"), policies=[m.policy("AbortJob", "PodPending", timeout="30s")]),
        m.node("late", 2, at="29s"),
    )
    assert answer.phase("j") == "Completed"


@pytest.mark.parametrize("restarted", [False, True])
def test_v2_a_failure_is_answered_after_the_timeout(restarted: bool) -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="60s"), policies=[m.policy("AbortJob", "PodFailed", timeout="20s")]),
        m.step("5s", "fail-pod", "Pod", "j-a-0"),
        [m.restart("15s")] if restarted else [],
    )
    assert answer.phases("j")[-1] == (25.0, "Aborted")


def test_v2_a_failed_pod_that_went_is_no_cause_any_more() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 2, run_time="60s"), policies=[m.policy("AbortJob", "PodFailed", timeout="20s")]),
        m.step("5s", "fail-pod", "Pod", "j-a-0"),
        m.step("15s", "delete", "Pod", "j-a-0"),
    )
    assert answer.phase("j") == "Completed"


def test_v2_a_job_all_of_whose_pods_failed_waits_for_its_policys_time() -> None:
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 1, run_time="5s", exit_code="1,0"),
            policies=[m.policy("RestartJob", "PodFailed", timeout="10s")],
        ),
    )
    assert answer.created("j-a-0") == [0.0, 15.0]
    assert answer.phases("j")[-1] == (20.0, "Completed")


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("comes_back", [False, True])
def test_v2_an_eviction_is_answered_after_the_timeout_unless_the_pod_runs_again(
    comes_back: bool, restarted: bool
) -> None:
    answer = simulate(
        m.node("n1", 1),
        m.node("n2", 1),
        m.job("j", m.role("a", 2, run_time="100s"), policies=[m.policy("AbortJob", "PodEvicted", timeout="20s")]),
        m.step("5s", "fail-node", "Node", "n2"),
        [m.step("24s", "recover-node", "Node", "n2")] if comes_back else [],
        [m.restart("15s")] if restarted else [],
    )
    assert (answer.phases("j")[-1] == (25.0, "Aborted")) == (not comes_back)
    assert (answer.phase("j") == "Completed") == comes_back


# ---- how often


@pytest.mark.parametrize("most", [1, 2, 3])
def test_v2_max_retry_is_the_number_of_runs(most: int) -> None:
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 2, run_time="5s", exit_code="1"),
            policies=[m.policy("RestartJob", "PodFailed")],
            maxRetry=most,
        ),
    )
    assert len(answer.created("j-a-0")) == most
    assert answer.phase("j") == "Failed"
    assert any("MaxRetryReached" in text for text in answer.warnings("Job"))


def test_v2_max_retry_is_three_by_default() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1, run_time="5s", exit_code="1"), policies=[m.policy("RestartJob", "PodFailed")]),
    )
    assert answer.created("j-a-0") == [0.0, 5.0, 10.0]
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1, run_time="5s", exit_code="1,1,0"), policies=[m.policy("RestartJob", "PodFailed")]),
    )
    assert answer.phase("j") == "Completed"


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask"])
def test_v2_a_pod_and_a_role_run_at_most_max_retry_times_too(action: str) -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("a", 1, run_time="5s", exit_code="1"), policies=[m.policy(action, "PodFailed")])
    )
    assert answer.created("j-a-0") == [0.0, 5.0, 10.0]
    assert answer.phase("j") == "Failed"


def test_v2_each_pod_has_runs_of_its_own() -> None:
    answer = simulate(
        m.node("n", 8),
        m.job("j", m.role("a", 4, run_time="5s", exit_code="1,1,0"), policies=[m.policy("RestartPod", "PodFailed")]),
    )
    assert answer.phase("j") == "Completed"
    assert answer.obj("Job", "j")["status"]["retryCount"] == 2  # all four restart together, twice


# ---- the end


def test_v2_min_success_ends_the_job() -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("a", 1, run_time="10s"), m.role("b", 2, run_time="100s"), minSuccess=1)
    )
    assert answer.phases("j")[-1] == (10.0, "Completed")
    answer = simulate(m.node("n"), m.job("j", m.role("a", 3, run_time="10s", exit_code="1"), minSuccess=1))
    assert answer.phase("j") == "Failed"


@pytest.mark.parametrize("code, ttl", [("0", 30), ("1", 30), ("0", 0)])
def test_v2_ttl_after_completed_and_failed(code: str, ttl: int) -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("a", 1, run_time="10s", exit_code=code), ttlSecondsAfterFinished=ttl)
    )
    assert [line["t"] for line in answer.lines("deleted", "j", "Job")] == [10.0 + ttl]
    assert not answer.all("Pod")
    assert not answer.all("PodGroup")


def test_v2_no_ttl_for_an_aborted_job() -> None:
    answer = simulate(
        m.node("n"), m.job("j", m.role("a", 1), ttlSecondsAfterFinished=30), m.command("stop", "AbortJob", "10s")
    )
    assert answer.phase("j") == "Aborted"
    assert answer.data["end"] == 10.0


def test_v2_active_deadline_fails_a_pod_and_the_policy_decides() -> None:
    slow = m.role("a", 1, activeDeadlineSeconds=20)
    answer = simulate(
        m.node("n"), m.job("j", slow, m.role("b", 1), policies=[m.policy("RestartJob", "PodFailed")], maxRetry=2)
    )
    assert answer.created("j-a-0") == [0.0, 20.0]
    assert answer.phases("j")[-1] == (40.0, "Failed")
    answer = simulate(m.node("n"), m.job("j", slow, m.role("b", 1, run_time="50s")))
    assert answer.phase("j") == "Failed"
    assert answer.obj("Pod", "j-a-0")["status"]["reason"] == "DeadlineExceeded"


# ---- fences


def test_v2_a_late_event_of_an_earlier_attempt_changes_nothing() -> None:
    """Two pods fail one after the other while the job restarts: the second failure is of the earlier version."""
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 1, run_time="5s", exit_code="1,0"),
            m.role("b", 2, run_time="30s", stop_delay="10s"),
            policies=[m.policy("RestartJob", "PodFailed", "PodEvicted")],
        ),
        m.step("7s", "fail-pod", "Pod", "j-b-0"),
        m.step("8s", "delete", "Pod", "j-b-1"),
        m.restart("9s"),
    )
    assert answer.obj("Job", "j")["status"]["retryCount"] == 1
    assert answer.phases("j")[-1] == (45.0, "Completed")


def test_v2_a_namesake_does_not_take_the_resources_of_its_predecessor() -> None:
    first = m.job("j", m.role("a", 1), plugins={"svc": [], "ssh": []})
    answer = simulate(m.node("n"), first, m.step("10s", "delete", "Job", "j"), m.step("10s", "create", object=first))
    uid = answer.obj("Job", "j")["metadata"]["uid"]
    for kind, name in (("Service", "j"), ("ConfigMap", "j-svc"), ("Secret", "j-ssh")):
        assert answer.obj(kind, name)["metadata"]["ownerReferences"][0]["uid"] == uid
    assert answer.phase("j") == "Running"


def test_v2_a_pod_or_service_of_another_owner_in_the_way_is_reported_and_waited_for() -> None:
    stranger = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "j", "namespace": "default"}, "spec": {}}
    answer = simulate(
        m.node("n"),
        stranger,
        m.job("j", m.role("a", 1, run_time="10s"), plugins={"svc": []}, at="1s"),
        m.step("5s", "delete", "Service", "j"),
    )
    assert any("FailedCreate" in text and "already exists" in text for text in answer.warnings("Job"))
    assert answer.phase("j") == "Completed"


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


def test_v2_a_command_at_the_instant_of_a_timer_does_not_swallow_it() -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1, run_time="10s"), ttlSecondsAfterFinished=5),
        m.command("late", "AbortJob", "15s"),
    )
    assert [line["t"] for line in answer.lines("deleted", "j", "Job")] == [15.0]
