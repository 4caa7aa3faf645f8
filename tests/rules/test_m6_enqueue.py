"""M6: a gang is enqueued when what it needs at least could be met; its pods are created only then."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import Answer, condition, waits_because
from support.simulation import NO_ENQUEUE, NO_EVICTIONS, simulate


def phases(answer: Answer, name: str) -> list[str]:
    """The phases of a job's PodGroup, in order."""
    group = answer.group_of(name)["metadata"]["name"]
    return [line["to"] for line in answer.lines("phase", group, "PodGroup")]


def full(cpu: int, until: str = "50s") -> dict[str, object]:
    return m.pod("full", cpu, nodeName="n", run_time=until)


def test_m6_without_room_it_stays_pending_says_why_and_has_no_pods() -> None:
    answer = simulate(m.node("n"), full(4), m.job("j", m.role("w", 2)), until="20s")
    group = answer.group_of("j")
    assert group["status"]["phase"] == "Pending"
    assert not answer.all("Pod", "j-")
    reported = waits_because(group)
    assert "2" in reported
    assert "cpu" in reported
    found = answer.pending("default/j")
    assert found["message"] == reported
    assert found["missing"] == {"w": 2}
    assert found["reasons"] == [{"role": "", "reason": "Insufficient cpu", "nodes": 1}]


def test_m6_it_is_enqueued_when_there_is_room() -> None:
    answer = simulate(m.node("n"), full(4), m.job("j", m.role("w", 2)))
    assert answer.at("j-w-0", "created") == 50.0
    assert answer.times("j-") == [50.0, 50.0]
    assert phases(answer, "j") == ["Pending", "Inqueue", "Running"] or phases(answer, "j") == ["Inqueue", "Running"]
    assert not waits_because(answer.group_of("j"))


def test_m6_pods_are_created_from_inqueue_on() -> None:
    answer = simulate(m.node("n"), m.job("j", m.role("w", 2)))
    what = [
        (line["what"], line["kind"], line.get("to")) for line in answer.timeline if line["kind"] in ("Pod", "PodGroup")
    ]
    assert what.index(("phase", "PodGroup", "Inqueue")) < what.index(("created", "Pod", None))


@pytest.mark.parametrize("replicas, enqueued", [(4, True), (5, False)])
def test_m6_room_is_overcommitted_by_a_fifth(replicas: int, enqueued: bool) -> None:
    """10 cpu, 8 used: 12 less 8 is 4."""
    answer = simulate(m.node("n", 10), full(8), m.job("j", m.role("w", replicas)), until="20s")
    assert bool(answer.all("Pod", "j-")) == enqueued
    assert not answer.bound("j-")


def test_m6_what_other_enqueued_gangs_will_take_counts_until_they_were_tried() -> None:
    gated = {"schedulingGates": [{"name": "example.com/wait"}]}
    first = m.job("a", m.role("w", 4))
    answer = simulate(m.node("n", 4), first, m.job("b", m.role("w", 4)), until="1h")
    assert not answer.all("Pod", "b-")  # `a` took its room for good
    answer = simulate(m.node("n", 4), m.job("a", m.role("w", 4, **gated)), m.job("b", m.role("w", 4)))
    assert answer.times("b-") == [0.0] * 4  # gated pods hold no place


def test_m6_one_that_was_tried_and_failed_counts_no_more() -> None:
    """`a` is enqueued, fits nowhere for its selector, and does not keep `b` out."""
    picky = m.job("a", m.role("w", 4, nodeSelector={"no": "such"}))
    answer = simulate(m.node("n", 4), picky, m.job("b", m.role("w", 4), at="1s"))
    assert answer.times("b-") == [1.0] * 4
    answer = simulate(m.node("n", 4), picky, m.job("b", m.role("w", 4)))
    assert answer.times("b-") == [0.0] * 4
    answer = simulate(m.node("n", 4), picky, m.restart("5s"), m.job("b", m.role("w", 4), at="5s"))
    assert answer.times("b-") == [5.0] * 4


def test_m6_one_that_was_tried_before_a_restart_keeps_no_gang_out_after_it() -> None:
    """What `b` reports does not change, so nothing is written that would wake it: it must be looked at all the same."""
    answer = simulate(
        m.node("n", 4),
        m.job("a", m.role("w", 4, nodeSelector={"no": "such"})),
        m.pod("z", 4, nodeName="n", at="1s", run_time="4s"),
        m.job("b", m.role("w", 4), at="2s"),
        m.restart("5s"),
    )
    assert answer.times("b-") == [5.0] * 4


def test_m6_a_gang_that_left_counts_no_more() -> None:
    """Its pods cannot be created for a quota, so that it is never tried; then it is deleted."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none", "namespace": "aaa"},
        "spec": {"hard": {"pods": "0"}},
    }
    answer = simulate(
        m.node("n", 4), quota, m.job("a", m.role("w", 4), namespace="aaa", delete_at="30s"), m.job("b", m.role("w", 4))
    )
    assert answer.times("b-") == [30.0] * 4


def test_m6_never_enqueued_if_the_cluster_could_not_hold_it() -> None:
    """11 of 10 cpu would be within the overcommitted room, and yet could never run."""
    answer = simulate(m.node("n", 10), m.job("j", m.role("w", 11)))
    assert not answer.all("Pod", "j-")
    reported = waits_because(answer.group_of("j"))
    assert "11" in reported
    assert "10" in reported
    answer = simulate(m.node("n", 10), m.job("j", m.role("w", 11)), m.node("late", 1, at="30s"))
    assert answer.times("j-") == [30.0] * 11


def test_m6_admit_oversized_lets_it_in_all_the_same() -> None:
    oversized = {"enqueue": {"admitOversized": True}}
    answer = simulate(m.node("n", 4), m.job("j", m.role("w", 9)), config=oversized)
    assert len(answer.all("Pod", "j-")) == 9
    assert not answer.bound()
    assert "Insufficient cpu" in waits_because(answer.group_of("j"))
    gpus = m.job("j", m.role("w", 2, extra={"nvidia.com/gpu": 1}))
    assert len(simulate(m.node("n", 4), gpus, config=oversized).all("Pod", "j-")) == 2
    assert not simulate(m.node("n", 4), gpus).all("Pod", "j-")


def test_m6_equivalent_gangs_each_report_their_own_roles() -> None:
    answer = simulate(m.node("n", 1), m.job("a", m.role("w", 2)), m.job("b", m.role("x", 1), m.role("y", 1)))
    assert answer.pending("default/a")["missing"] == {"w": 2}
    assert answer.pending("default/b")["missing"] == {"x": 1, "y": 1}


def test_m6_its_queue_must_allow_it() -> None:
    capped = m.queue("q", capability={"cpu": "3"})
    answer = simulate(
        m.node("n", 8), capped, m.job("a", m.role("w", 2), queue="q"), m.job("b", m.role("w", 2), queue="q", at="1s")
    )
    assert len(answer.bound("a-")) == 2
    assert not answer.all("Pod", "b-")
    assert "queue q" in waits_because(answer.group_of("b"))
    other = simulate(m.node("n", 8), capped, m.job("b", m.role("w", 2, memory="1Gi"), queue="q"))
    assert len(other.bound("b-")) == 2  # memory is not named in the capability


def test_m6_two_of_one_instant_do_not_pass_a_capability_together() -> None:
    capped = m.queue("q", capability={"cpu": "3"})
    answer = simulate(
        m.node("n", 8), capped, m.job("a", m.role("w", 2), queue="q"), m.job("b", m.role("w", 2), queue="q")
    )
    assert not answer.all("Pod", "b-")


def test_m6_only_the_minimum_is_asked_for() -> None:
    answer = simulate(m.node("n", 4), m.job("j", m.role("w", 50, 2)))
    assert len(answer.bound("j-")) == 4
    assert answer.group_of("j")["spec"]["minResources"]["cpu"] == "2"


def test_m6_a_config_without_enqueue_enqueues_every_gang() -> None:
    answer = simulate(m.node("n", 1), m.job("j", m.role("w", 9)), config=NO_ENQUEUE)
    assert answer.group_of("j")["status"]["phase"] == "Inqueue"
    assert len(answer.all("Pod", "j-")) == 9


def test_m6_bare_pods_and_groups_without_resources_are_enqueued_at_once() -> None:
    answer = simulate(m.node("n", 1), m.podgroup("a", 5), m.pods(5, "a", group="a"), m.pod("p", 9))
    assert answer.obj("PodGroup", "a")["status"]["phase"] == "Inqueue"
    assert "Insufficient cpu" in waits_because(answer.obj("Pod", "p"))
    assert "Insufficient cpu" in waits_because(answer.obj("Pod", "a0"))


def test_m6_a_group_with_resources_keeps_its_pods_waiting() -> None:
    docs = [m.node("n", 4), *m.gang("a", 2, resources={"cpu": "5"})]
    answer = simulate(docs)
    assert not answer.bound()
    assert answer.obj("PodGroup", "a")["status"]["phase"] == "Pending"
    assert "5" in waits_because(answer.obj("Pod", "a-0"))
    assert simulate(docs, m.node("late", 1, at="9s")).times() == [9.0, 9.0]


def test_m6_extended_resources_and_memory_count() -> None:
    answer = simulate(
        m.node("n", 9, memory="4Gi"),
        m.pod("m", None, memory="4Gi", nodeName="n", run_time="9s"),
        m.job("j", m.role("w", 2, memory="1Gi")),
    )
    assert answer.at("j-w-0", "created") == 9.0
    assert "memory" in answer.lines("warning")[0]["message"]


def test_m6_room_on_cordoned_nodes_is_none() -> None:
    cordoned = m.node("m", 8, unschedulable=True)
    uncordon = m.step("9s", "patch", "Node", "m", patch={"spec": {"unschedulable": False}})
    answer = simulate(m.node("n", 2), cordoned, m.job("j", m.role("w", 4)), uncordon)
    assert answer.at("j-w-0", "created") == 9.0


def test_m6_higher_priority_is_enqueued_first_and_a_refused_one_does_not_block() -> None:
    classes = [m.priority_class("high", 1000)]
    answer = simulate(
        classes,
        m.node("n", 4),
        full(2),
        m.job("a", m.role("w", 4)),
        m.job("b", m.role("w", 2)),
        m.job("c", m.role("w", 4), priority="high"),
        until="20s",
        config=NO_EVICTIONS,
    )
    assert answer.times("b-") == [0.0, 0.0]
    answer = simulate(
        classes,
        m.node("n", 4),
        full(4),
        m.job("a", m.role("w", 4)),
        m.job("c", m.role("w", 4), priority="high", at="1s"),
        config=NO_EVICTIONS,
    )
    assert answer.times("c-") == [50.0] * 4
    assert not answer.all("Pod", "a-")


def test_m6_stays_enqueued_over_a_restart_of_the_scheduler() -> None:
    answer = simulate(m.node("n", 4), full(3), m.job("j", m.role("w", 1)), m.job("k", m.role("w", 4)), m.restart("5s"))
    assert answer.at("j-w-0") == 0.0
    assert answer.at("k-w-0") is None
    assert waits_because(answer.group_of("k"))


def test_m6_a_later_reason_replaces_the_first() -> None:
    """Refused at enqueue first; then enqueued by the overcommit, and short of real room."""
    answer = simulate(
        m.node("n", 10),
        full(8),
        m.pod("more", 2, nodeName="n", run_time="10s"),
        m.job("j", m.role("w", 3)),
        until="20s",
    )
    group = answer.group_of("j")
    reported = condition(group, "Unschedulable")
    assert reported is not None
    assert reported["status"] == "True"
    assert "0/1 nodes are available" in reported["message"]
    assert group["status"]["phase"] == "Inqueue"


def test_m6_a_group_that_was_enqueued_says_since_when() -> None:
    answer = simulate(
        m.node("n", 2), m.job("first", m.role("w", 2, run_time="30s")), m.job("second", m.role("w", 2), at="5s")
    )
    reported = condition(answer.group_of("second"), "Enqueued")
    assert reported is not None
    assert reported["lastTransitionTime"].endswith("00:00:30Z")


def test_m6_enqueued_and_unschedulable_are_two_conditions() -> None:
    group = m.podgroup("a", 2, resources={"cpu": "1"})
    answer = simulate(m.node("n", 1), group, m.pod("a-0", group="a"), m.pod("a-1", group="a"))
    found = answer.obj("PodGroup", "a")
    assert waits_because(found)
    assert condition(found, "Enqueued")


@pytest.mark.parametrize("restarts", [[], [m.restart("10s")]], ids=["plain", "restarted"])
def test_m6_a_gang_that_was_tried_counts_no_more_though_the_scheduler_restarted(restarts: list[m.Obj]) -> None:
    """`a` has run in part and waits for members that are never created: it takes nothing from those behind it."""
    roles = [m.role("r", 2, 1, cpu=2, run_time="60s"), m.role("s", 1, run_time="1s", exit_code="1")]
    more = [m.role("r", 3, 3, cpu=2, run_time="60s"), m.role("s", 1, 1, run_time="1s", exit_code="1")]
    raised = m.step("500ms", "patch", "Job", "a", patch={"spec": {"minAvailable": 4, "tasks": more}})
    answer = simulate(
        m.node("n", 4), m.job("a", *roles), raised, restarts, m.job("b", m.role("w", 1), at="13s"), until="1h"
    )
    assert answer.at("b-w-0") == 13.0


@pytest.mark.parametrize("restarts", [[], [m.restart("12s")]], ids=["running", "restarted"])
@pytest.mark.parametrize(
    "lost",
    [m.patch("10s", "PodGroup", "g", spec={"minMember": 4}), m.step("12s", "delete", "Pod", "g-0")],
    ids=["minimum raised", "pods gone"],
)
def test_m6_i5_a_gang_that_was_attempted_does_not_count_again(lost: m.Obj, restarts: list[m.Obj]) -> None:
    """Whatever becomes of its pods, and whichever scheduler runs. Its 3 of 4 CPUs would leave too few for j."""
    cpu = 5 if lost["do"] == "patch" else 1  # it does not fit, or it runs until its pod is deleted
    answer = simulate(
        m.node("n", 4),
        m.podgroup("g", 1, minResources={"cpu": "3"}),
        m.pod("g-0", cpu, annotations={"scheduling.k8s.io/group-name": "g"}),
        lost,
        *restarts,
        m.one_pod_job("j", 2, at="20s"),
        until="60s",
    )
    assert answer.times("j-") == [20.0]


@pytest.mark.parametrize("restarts", [[], [m.restart("10s")]], ids=["running", "restarted"])
def test_m6_i5_a_gang_with_minimum_0_that_was_attempted_does_not_count_again(restarts: list[m.Obj]) -> None:
    """That it was attempted is on its object, though only pods beyond its minimum wait. If it counted again, b would be
    refused at first, and the pod would have its room."""
    attempted = m.gang("a", 1, minimum=0, cpu=5, resources={"cpu": "2"})
    later = m.gang("b", 1, cpu=4, resources={"cpu": "4"}, at="10s")
    answer = simulate(m.node("n", 4), attempted, later, m.pod("pod", 3, at="10s"), *restarts)
    assert answer.at("b-0") == 10.0
