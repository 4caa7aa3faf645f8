"""What Volcano's users expect of a running Job (V2, V3, D2, D3, K13), through whole simulations."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.manifests import Obj
from support.simulation import simulate

RELAXED = {"admission": {"minAvailable": "relaxed"}}


def test_v2_unknown_restarts_the_job_once_and_then_it_waits() -> None:
    """A node is lost below the minimum: one restart, then the job waits and runs when a node is there again."""
    answer = simulate(
        m.node("n1", 2),
        m.node("n2", 1),
        m.node("later", 1, at="60s"),
        m.job("j", m.role("a", 3, run_time="100s"), policies=[m.policy("RestartJob", "Unknown")]),
        m.step("10s", "fail-node", "Node", "n2"),
    )
    assert answer.created("j-a-0") == [0.0, 10.0]
    assert [name for _, name in answer.phases("j")].count("Restarting") == 1
    assert {at for at, _ in answer.bound("j-a").values()} == {60.0}
    assert answer.phase("j") == "Completed"


def test_v2_pod_pending_without_a_timeout_never_fires() -> None:
    answer = simulate(
        m.node("n", 1),
        m.job("j", m.role("a", 2, 1, run_time="10s"), policies=[m.policy("AbortJob", "PodPending")]),
        until="60s",
    )
    assert answer.phase("j") == "Completed"


@pytest.mark.parametrize("action", ["RestartJob", "RestartPod", "RestartTask"])
def test_v2_retry_count_counts_every_restart_and_the_last_that_is_refused(action: str) -> None:
    answer = simulate(
        m.node("n"),
        m.job("j", m.role("a", 1, run_time="5s", exit_code="1"), maxRetry=2, policies=[m.policy(action, "PodFailed")]),
    )
    assert answer.created("j-a-0") == [0.0, 5.0]
    status = answer.obj("Job", "j")["status"]
    assert (answer.phase("j"), status["retryCount"]) == ("Failed", 2)


def test_v2_the_pods_of_the_last_failed_run_are_kept_and_counted() -> None:
    answer = simulate(
        m.node("n"),
        m.job(
            "j",
            m.role("a", 2, run_time="5s", exit_code="1"),
            maxRetry=2,
            policies=[m.policy("RestartJob", "PodFailed")],
        ),
    )
    status = answer.obj("Job", "j")["status"]
    assert status["failed"] == 2
    assert status["taskStatusCount"] == {"a": {"phase": {"Failed": 2}}}
    assert len(answer.all("Pod", "j-")) == 2


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask"])
def test_v2_restart_pod_goes_through_restarting_while_the_others_run(action: str) -> None:
    answer = simulate(
        m.node("n", 8),
        m.job(
            "j",
            m.role("a", 1, run_time="5s", exit_code="1,0", policies=[m.policy(action, "PodFailed")]),
            m.role("b", 1, run_time="20s"),
        ),
    )
    assert "Restarting" in [name for _, name in answer.phases("j")]
    assert answer.created("j-a-0") == [0.0, 5.0]
    assert answer.created("j-b-0") == [0.0]
    assert answer.phase("j") == "Completed"


def test_v3_host_network_resolves_the_names_of_the_cluster() -> None:
    def of(**spec: object) -> Obj:
        made_role = m.role("a", 1)
        made_role["template"]["spec"] |= spec
        return simulate(m.node("n"), m.job("j", made_role)).obj("Pod", "j-a-0")["spec"]

    assert of(hostNetwork=True)["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert of(hostNetwork=True, dnsPolicy="Default")["dnsPolicy"] == "Default"
    assert "dnsPolicy" not in of()


def after(made_role: Obj, *names: str) -> Obj:
    return {**made_role, "dependsOn": {"name": list(names)}}


def test_d2_a_role_without_a_minimum_is_awaited_with_its_replicas() -> None:
    roles = (m.role("a", 2, start_delay="10s", run_time="50s"), after(m.role("b", 1, run_time="5s"), "a"))
    answer = simulate(m.node("n", 3), m.job("j", *roles, minimum=1), config=RELAXED)
    assert answer.created("j-b-0") == [10.0]
    answer = simulate(m.node("n", 1), m.job("j", *roles, minimum=1), config=RELAXED, until="30s")
    assert answer.created("j-b-0") == [], "one of two runs: the role has no minimum, so all its replicas are awaited"


def test_d3_the_total_shrinks_by_the_replicas_of_a_later_role_without_a_minimum() -> None:
    """A minimum of 4 of a (3) and b (3, after a): the first wave needs no pod of b."""
    roles = (m.role("a", 3, run_time="50s"), after(m.role("b", 3, run_time="5s"), "a"))
    answer = simulate(m.node("n", 6), m.job("j", *roles, minimum=4), config=RELAXED)
    assert set(answer.times("j-a")) == {0.0}
    assert answer.phase("j") == "Completed"


def test_k13_a_podgroup_is_completed_when_all_members_ended() -> None:
    answer = simulate(m.node("n", 8), m.gang("g", 2, run_time="10s", exit_code="1"))
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Completed"
    answer = simulate(
        m.node("n", 8),
        m.podgroup("g", 2),
        m.pod("a", group="g", run_time="10s"),
        m.pod("b", group="g", run_time="10s", exit_code="1"),
    )
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Completed"


def test_k13_a_completed_podgroup_starts_over_with_new_members() -> None:
    again = [m.pod(f"again-{index}", group="g", at="60s", run_time="10s") for index in range(2)]
    answer = simulate(m.node("n", 8), m.gang("g", 2, run_time="10s", exit_code="1"), again)
    assert answer.times("again-") == [60.0, 60.0]
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Completed"


def test_k13_a_podgroup_is_unknown_while_members_are_lost_below_the_minimum() -> None:
    """A pod in place of the lost one finds no room: until it was tried the group is Running."""
    members = [m.pod(f"g-{index}", group="g", run_time="60s") for index in range(3)]
    lost, taint = m.step("10s", "delete", "Pod", "g-1"), {"taints": [{"key": "k", "effect": "NoSchedule"}]}
    more = [m.patch("5s", "Node", "n", spec=taint), m.pod("g-3", group="g", at="20s")]
    for until, phase in (("15s", "Running"), ("30s", "Unknown")):
        answer = simulate(m.node("n", 8), m.podgroup("g", 3), members, lost, *more, until=until)
        assert answer.obj("PodGroup", "g")["status"]["phase"] == phase
