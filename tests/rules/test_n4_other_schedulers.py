"""N4: pods that exist and are no members are named: those of other schedulers, gated ones, refused ones."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import condition, waits_because
from support.simulation import simulate

GATE = [{"name": "example.com/hold"}]


def test_n4_a_member_of_another_scheduler_is_said_to_exist() -> None:
    members = [m.pod("a0", group="a"), m.pod("a1", group="a"), m.pod("a2", group="a", scheduler="enblock")]
    answer = simulate(m.node("n"), m.podgroup("a", 3), members)
    found = answer.pending("default/a")
    assert found["reason"] == "OtherScheduler"
    assert found["missing"] == {"": 1}
    assert found["message"] == "3 of 3 pods exist; 1 names another scheduler: enblock (ours: enbloc)"
    for one in (answer.obj("PodGroup", "a"), answer.obj("Pod", "a0")):
        assert waits_because(one) == found["message"]
    assert not waits_because(answer.obj("Pod", "a2"))


def test_n4_all_members_are_of_another_scheduler() -> None:
    answer = simulate(m.node("n"), m.podgroup("a", 2), [m.pod(f"a{n}", group="a", scheduler="x") for n in range(2)])
    assert answer.pending("default/a")["message"] == "2 of 2 pods exist; 2 name another scheduler: x (ours: enbloc)"


def test_n4_pods_that_do_not_exist_are_counted_apart() -> None:
    answer = simulate(m.node("n"), m.podgroup("a", 3), m.pod("a0", group="a"), m.pod("a1", group="a", scheduler="x"))
    assert (
        answer.why("default/a") == "2 of 3 pods exist, 2 more are needed; 1 names another scheduler: x (ours: enbloc)"
    )


def test_n4_the_sentence_follows_when_the_foreign_pod_is_replaced() -> None:
    story = [
        m.node("n"),
        m.podgroup("a", 2),
        m.pod("a0", group="a"),
        m.pod("a1", group="a", scheduler="x", delete_at="10s"),
    ]
    assert simulate(story, until="20s").why("default/a") == "1 of 2 pods exist, 1 more is needed"
    answer = simulate(story, m.pod("a2", group="a", at="20s"))
    assert answer.times("a") == [20.0, 20.0]


def test_n4_a_gate_is_named() -> None:
    answer = simulate(m.node("n"), m.podgroup("g", 1), m.pod("g0", group="g", schedulingGates=GATE))
    found = answer.pending("default/g")
    assert found["reason"] == "SchedulingGated"
    assert found["message"] == "1 of 1 pod exists; 1 is held by scheduling gate example.com/hold"


def test_n4_a_pod_alone_names_its_gate() -> None:
    answer = simulate(m.node("n"), m.pod("alone", schedulingGates=GATE))
    assert "held by scheduling gate example.com/hold" in answer.why("default/alone")


def test_n4_the_gang_starts_when_the_gate_is_removed() -> None:
    lifted = m.patch("9s", "Pod", "g0", spec={"schedulingGates": None})
    answer = simulate(m.node("n"), m.podgroup("g", 1), m.pod("g0", group="g", schedulingGates=GATE), lifted)
    assert answer.times("g") == [9.0]


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        (m.job("j", m.role("w", 4)), "PodGroup"),
        (m.queue_job("j", m.role("w", 4), minimum=4), "SchedulingSpec"),
    ],
)
def test_n4_a_quota_that_refused_a_pod_is_named(job: dict[str, Any], kind: str) -> None:
    answer = simulate(m.node("n"), m.resource_quota(4), m.pods(2, "other"), job, until="60s")
    found = answer.pending("default/j")
    assert found["reason"] == "FailedCreate"
    assert found["message"].startswith("2 of 4 pods exist, 2 ")
    assert "exceeded quota: q" in found["message"]
    assert "exceeded quota: q" in waits_because(answer.all(kind)[0])


def test_n4_a_raised_quota_ends_it() -> None:
    raised = m.patch("30s", "ResourceQuota", "q", spec={"hard": {"pods": "4"}})
    answer = simulate(m.node("n"), m.resource_quota(2), m.job("j", m.role("w", 4)), raised)
    assert answer.times("j") == [30.0] * 4
    assert "failed-create" not in str(answer.group_of("j")["metadata"])


def test_n4_a_restart_changes_no_word() -> None:
    story = [
        m.node("n"),
        m.resource_quota(2),
        m.job("j", m.role("w", 4)),
        m.podgroup("a", 1),
        m.pod("a0", group="a", scheduler="x"),
    ]
    restart = m.restart("10s")
    plain, restarted = simulate(story, until="60s"), simulate(story, restart, until="60s")
    assert [one["message"] for one in plain.data["pending"]] == [one["message"] for one in restarted.data["pending"]]


def test_n4_a_gated_pod_carries_the_condition_that_an_api_server_writes() -> None:
    """kubectl and dashboards read it."""
    answer = simulate(m.node("n"), m.pod("gated", 1, schedulingGates=[{"name": "x"}]), m.pod("open", 1))
    scheduled = condition(answer.obj("Pod", "gated"), "PodScheduled")
    assert scheduled is not None
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingGated")
    assert (condition(answer.obj("Pod", "open"), "PodScheduled") or {}).get("reason") != "SchedulingGated"
