"""K13, V2, N5: what Volcano's users see: Unknown PodGroups, terminating pods, the default scheduler, Events."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.config import default_scheduler_name, parse
from support import manifests as m
from support.answers import Answer, waits_because
from support.controller_cluster import World
from support.simulation import lint, simulate

VOLCANO = {"compat": ["volcano"]}
TAINT = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}


def lost_before_it_ran(*more: m.Obj, **job: Any) -> Answer:
    """Of two pods one runs at once; the other, whose image takes a minute, is deleted and has no node any more."""
    roles = [m.role("a", 1), m.role("b", 1, start_delay="60s")]
    taint = m.step("5s", "patch", "Node", "n", patch=TAINT)
    gone = m.step("10s", "delete", "Pod", "j-b-0")
    return simulate(m.node("n", 2), m.job("j", *roles, **job), taint, gone, *more, until="30s")


@pytest.mark.parametrize("restarts", [[], ["10s"], ["20s"]])
def test_k13_a_group_is_unknown_though_it_never_was_running(restarts: list[str]) -> None:
    answer = lost_before_it_ran(*map(m.restart, restarts))
    assert answer.group_of("j")["status"]["phase"] == "Unknown"


@pytest.mark.parametrize("action, final", [("AbortJob", "Aborted"), ("TerminateJob", "Terminated")])
def test_k13_policies_on_unknown_act_then(action: str, final: str) -> None:
    answer = lost_before_it_ran(policies=[m.policy(action, "Unknown")])
    assert answer.phases("j")[-1] == (10.0, final)


def test_k13_a_member_that_is_replaced_at_once_makes_no_group_unknown() -> None:
    policies = [m.policy("AbortJob", "Unknown")]
    job = m.job("j", m.role("a", 2), policies=policies)
    answer = simulate(m.node("n", 2), m.node("spare", 2), job, m.step("5s", "delete", "Pod", "j-a-0"), until="30s")
    assert answer.phase("j") == "Running"
    assert answer.group_of("j")["status"]["phase"] == "Running"


def test_k13_a_group_none_of_whose_members_runs_is_not_unknown() -> None:
    answer = simulate(m.node("n", 1), m.job("j", m.role("a", 2)), m.node("m", 4, at="20s"), until="10s")
    assert answer.group_of("j")["status"]["phase"] in ("Pending", "Inqueue")


def test_k13_an_unknown_group_runs_again() -> None:
    answer = lost_before_it_ran(m.node("fresh", 2, at="20s"))
    assert answer.bound("j-b-0")["j-b-0"] == (20.0, "fresh")
    assert answer.group_of("j")["status"]["phase"] != "Inqueue"


def phase_of_group(answer: Answer) -> str:
    """Of the only PodGroup that there is."""
    (group,) = answer.all("PodGroup")
    phase: str = group["status"]["phase"]
    return phase


MEMBERS = {
    "job": [m.job("g", m.role("a", 3, 1), m.role("b", 1))],
    "pods": [
        m.podgroup("g", 2, roles={"a": 1, "b": 1}),
        *(m.pod(f"g-a-{n}", group="g", role="a") for n in range(3)),
        m.pod("g-b-0", group="g", role="b", delete_at="10s"),
        m.pod("g-b-1", group="g", role="b", at="11s"),
    ],
}


@pytest.mark.parametrize("gang", MEMBERS)
def test_k13_a_group_is_unknown_that_lacks_a_role_though_its_total_is_met(gang: str) -> None:
    """Three pods of role a run, the minimum is one of each role, and the lost one of role b does not fit."""
    taint = m.step("5s", "patch", "Node", "n", patch=TAINT)
    gone = [m.step("10s", "delete", "Pod", "g-b-0")] if gang == "job" else []
    answer = simulate(m.node("n", 4), MEMBERS[gang], taint, gone, until="30s")
    assert phase_of_group(answer) == "Unknown"
    back = simulate(m.node("n", 4), MEMBERS[gang], taint, gone, m.node("fresh", at="20s"), until="30s")
    assert phase_of_group(back) == "Running"


def sub_groups(least: int, **counts: int) -> list[m.Obj]:
    """A sub-group of two for each value of a label, of which `least` are needed, and a minimum of two pods."""
    policy = {"name": "w", "subGroupSize": 2, "minSubGroups": least, "matchLabelKeys": ["of"]}
    group = m.podgroup("g", 2, subGroupPolicy=[policy])
    return [group, *(m.pod(f"{of}-{n}", group="g", labels={"of": of}) for of in counts for n in range(counts[of]))]


def partitions(least: int) -> m.Obj:
    """Three partitions of two pods."""
    policy = {"totalPartitions": 3, "partitionSize": 2, "minPartitions": least}
    return m.job("g", m.role("w", 6, 2) | {"partitionPolicy": policy}, minAvailable=2)


TREES: dict[str, tuple[list[m.Obj], list[str], str]] = {
    "a sub-group of two that are needed": (sub_groups(2, a=2, b=2), ["b-1"], "Unknown"),
    "one of three of which two are needed": (sub_groups(2, a=2, b=2, c=2), ["b-1"], "Running"),
    "two of three of which two are needed": (sub_groups(2, a=2, b=2, c=2), ["b-1", "c-1"], "Unknown"),
    "one of three partitions of which one is needed": ([partitions(1)], ["g-w-1"], "Running"),
    "all partitions of which one is needed": ([partitions(1)], ["g-w-1", "g-w-3", "g-w-5"], "Unknown"),
}


@pytest.mark.parametrize("case", TREES)
def test_k13_a_group_is_unknown_that_lacks_a_sub_group_though_its_total_is_met(case: str) -> None:
    gang, lost, phase = TREES[case]
    taint = m.step("5s", "patch", "Node", "n", patch=TAINT)
    gone = [m.step("10s", "delete", "Pod", name) for name in lost]
    more = [m.pod(f"{name}x", group="g", labels={"of": name[0]}, at="11s") for name in lost if gang[0]["kind"] != "Job"]
    answer = simulate(m.node("n", 6), gang, taint, gone, more, until="30s")
    assert phase_of_group(answer) == phase
    back = simulate(m.node("n", 6), gang, taint, gone, more, m.node("fresh", 6, at="20s"), until="30s")
    assert phase_of_group(back) == "Running"


NOT_ATTEMPTED: dict[str, list[m.Obj]] = {
    "its queue is gone": [m.step("5s", "delete", "Queue", "q"), m.pod("g-2", group="g", at="11s")],
    "a gate": [m.pod("g-2", group="g", at="11s", schedulingGates=[{"name": "example.com/g"}])],
    "another scheduler": [m.pod("g-2", group="g", at="11s", scheduler="another")],
}


@pytest.mark.parametrize("why", NOT_ATTEMPTED)
def test_k13_a_group_is_not_unknown_before_an_attempt_failed(why: str) -> None:
    gang = m.gang("g", 2, queue="q")
    gone = m.step("10s", "delete", "Pod", "g-1")
    answer = simulate(m.node("n", 4), m.queue("q"), gang, gone, NOT_ATTEMPTED[why], until="30s")
    assert answer.at("g-2") is None
    assert phase_of_group(answer) == "Running"


# ---- W2


@pytest.mark.parametrize("action, going", [("RestartPod", 1), ("RestartTask", 2), ("RestartJob", 3)])
def test_v2_restarting_shows_the_pods_that_go_as_terminating(action: str, going: int) -> None:
    seen: list[tuple[str, int, int]] = []
    policies = [m.policy(action, "PodFailed")]
    job = m.job("j", m.role("a", 2, stop_delay="5s"), m.role("b", 1, stop_delay="5s"), policies=policies)
    fail = m.step("5s", "fail-pod", "Pod", "j-a-0", exitCode=1)
    for until in ("4s", "5s", "7s", "20s"):
        answer = simulate(m.node("n", 3), job, fail, until=until)
        status = answer.obj("Job", "j")["status"]
        seen.append((status["state"]["phase"], status["terminating"], status["failed"]))
    assert seen[0] == ("Running", 0, 0)
    if action != "RestartPod":  # the failed pod is gone at once, the others stop for 5 s
        assert seen[1] == ("Restarting", going - 1, 0)
    assert seen[3] == ("Running", 0, 0)


@pytest.mark.parametrize("action, going", [("RestartPod", 1), ("RestartTask", 2), ("RestartJob", 3)])
def test_v2_the_status_that_says_restarting_counts_what_goes(action: str, going: int) -> None:
    world = World()
    policies = [m.policy(action, "PodFailed")]
    world.submit(m.job("train", m.role("a", 2), m.role("b", 1), policies=policies))
    world.enqueued()
    world.turn("Running", *world.pods())
    watch = world.store.watch(frozenset({"Job.batch.volcano.sh"}), world.store.version)
    world.turn("Failed", "train-a-0")
    said = [event.obj["status"] for event in watch.drain()]
    restarting = [status for status in said if status["state"]["phase"] == "Restarting"]
    assert restarting[0]["terminating"] == going
    assert restarting[0]["failed"] == 0
    assert restarting[0]["running"] == 3 - going


# ---- W5, W6


def test_n5_under_compat_volcano_the_default_scheduler_is_volcano() -> None:
    job = m.job("j", m.role("w", 1))
    del job["spec"]["schedulerName"]
    answer = simulate(m.node("n", 1), job, config=VOLCANO)
    assert answer.obj("Job", "j")["spec"]["schedulerName"] == "volcano"
    assert answer.obj("Pod", "j-w-0")["spec"]["schedulerName"] == "volcano"
    assert answer.bound("j-w-0")


@pytest.mark.parametrize(
    "config, name",
    [
        ({}, "enbloc"),
        ({"compat": ["koordinator"]}, "enbloc"),
        ({"compat": ["koordinator", "volcano"]}, "volcano"),
        ({"compat": ["volcano"], "schedulerNames": ["mine"]}, "mine"),
    ],
)
def test_n5_the_default_scheduler_of_a_job(config: dict[str, Any], name: str) -> None:
    assert default_scheduler_name(parse(config)) == name


@pytest.mark.parametrize("value", ["true", "false"])
def test_n2_lint_names_the_allocation_gate_as_without_effect(value: str) -> None:
    """W6: Volcano's alpha SchedulingGatesQueueAdmission, on a pod or on a role's pods."""
    gate = {"scheduling.volcano.sh/queue-allocation-gate": value}
    found = lint(m.pod("p", annotations=gate), m.job("j", m.role("w", 1, annotations=gate))).warnings
    said = [one.message for one in found if "has no effect" in one.message]
    assert len(said) == (2 if value == "true" else 0)


WAITING = {
    "NotEnoughResources": [m.job("j", m.role("w", 9))],
    "Unschedulable": m.gang("j", 2, cpu=3),
    "SchedulingGated": m.gang("j", 2, schedulingGates=[{"name": "example.com/g"}]),
    "NotEnoughPods": [m.podgroup("j", 3)],
}


@pytest.mark.parametrize("compat", [True, False])
@pytest.mark.parametrize("reason", WAITING)
def test_n5_under_compat_volcano_a_group_that_waits_has_an_event_unschedulable(reason: str, compat: bool) -> None:
    answer = simulate(m.node("n", 4), *WAITING[reason], config=VOLCANO if compat else {}, until="5s")
    events = [one for one in answer.all("Event") if one["involvedObject"]["kind"] == "PodGroup"]
    said = {(one["reason"], one["message"].startswith(f"{reason}: ")) for one in events if one["type"] == "Warning"}
    assert said == {("Unschedulable", compat and reason != "Unschedulable") if compat else (reason, False)}
    group = next(one for one in answer.all("PodGroup"))
    (waits,) = [one for one in group["status"]["conditions"] if one["type"] == "Unschedulable"]
    assert waits["reason"] == reason


def test_k13_a_group_is_unknown_when_its_surplus_becomes_its_minimum() -> None:
    """`g-2` fits nowhere, and says so from the start. When `g-0` fails the minimum needs it: its group says it too."""
    pods = [m.pod("g-0", group="g", run_time="10s", exit_code="1"), m.pod("g-1", group="g"), m.pod("g-2", 9, group="g")]
    answer = simulate(m.node("n", 2), m.podgroup("g", 2), pods, until="20s")
    group = answer.obj("PodGroup", "g")
    assert group["status"]["phase"] == "Unknown"
    assert "1 of 1 pod does not fit" in waits_because(group)


def test_k13_surplus_that_does_not_fit_makes_no_group_unknown_that_lost_a_member() -> None:
    """The pod of role b failed, and no other one exists. A pod of role a waits that the minimum does not need."""
    pods = [m.pod(f"g-a-{n}", group="g", role="a") for n in range(3)]
    lost = m.pod("g-b-0", group="g", role="b", run_time="5s", exit_code="1")
    docs = [
        m.node("n", 4),
        m.podgroup("g", 3, roles={"a": 1, "b": 1}),
        pods,
        lost,
        m.pod("g-a-3", 9, group="g", role="a"),
    ]
    answer = simulate(*docs, until="20s")
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Running"
    back = simulate(*docs, m.pod("g-b-1", 9, group="g", role="b", at="10s"), until="20s")
    assert back.obj("PodGroup", "g")["status"]["phase"] == "Unknown"
