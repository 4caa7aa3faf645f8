"""G10: every pending gang says why, with the numbers, for as long as it is so."""

from __future__ import annotations

import pytest

from support import manifests as m
from support.answers import condition, waits_because
from support.simulation import NO_ENQUEUE, NO_EVICTIONS, simulate


def test_g10_says_what_is_missing_on_how_many_nodes_for_which_reason() -> None:
    tainted = m.node("n2", 8, taints=[{"key": "k", "effect": "NoSchedule"}])
    answer = simulate(m.node("n0", 1), m.node("n1", 1), tainted, m.gang("a", 2, cpu=2))
    found = answer.pending("default/a")
    assert found["dialect"] == "volcano"
    assert {(one["reason"], one["nodes"]) for one in found["reasons"]} == {
        ("Insufficient cpu", 2),
        ("node(s) had untolerated taint {k: }", 1),
    }
    group = answer.obj("PodGroup", "a")
    for one in (group, answer.obj("Pod", "a-0"), answer.obj("Pod", "a-1")):
        reported = waits_because(one)
        assert "2 of 2 pods" in reported
        assert "0/3 nodes are available" in reported
        assert "2 Insufficient cpu" in reported
        assert "1 node(s) had untolerated taint" in reported


def test_g10_counts_those_that_do_not_fit_among_all_that_are_needed() -> None:
    answer = simulate(m.node("n", 1), m.gang("a", 11, cpu="100m"))
    assert "1 of 11 pods" in answer.why("default/a")
    answer = simulate(m.node("n", 3), m.job("j", m.role("big", 2, cpu=2), m.role("small", 1)), config=NO_ENQUEUE)
    assert "1 of 2 pods of role big" in answer.why("default/j")


def test_g10_a_bare_pod_says_so_itself() -> None:
    answer = simulate(m.node("n", 1), m.pod("p", 2))
    assert "0/1 nodes are available: 1 Insufficient cpu" in waits_because(answer.obj("Pod", "p"))
    assert answer.pending("default/p")["dialect"] == "pod"
    assert [line["name"] for line in answer.lines("warning")] == ["p"]


def test_g10_is_withdrawn_when_it_no_longer_holds() -> None:
    answer = simulate(m.node("n", 1), m.gang("a", 2), m.node("late", 1, at="9s"))
    reported = condition(answer.obj("PodGroup", "a"), "Unschedulable")
    assert reported is not None
    assert reported["status"] == "False"
    for one in answer.all("Pod"):
        scheduled = condition(one, "PodScheduled")
        assert scheduled is not None
        assert scheduled["status"] == "True"
        assert not scheduled.get("message")
    assert not answer.data["pending"]


def test_g10_a_gang_that_starts_at_once_never_said_anything() -> None:
    answer = simulate(m.node("n"), m.gang("a", 2), m.job("j", m.role("w", 2)))
    assert not answer.lines("warning")
    assert condition(answer.obj("PodGroup", "a"), "Unschedulable") is None
    assert condition(answer.group_of("j"), "Unschedulable") is None


def test_g10_the_reason_follows_the_facts() -> None:
    story = [
        m.node("n", 1),
        m.podgroup("a", 2),
        m.pod("a0", 2, group="a"),
        m.pod("a1", 2, group="a", at="10s"),
        m.node("m", 9, unschedulable=True, at="20s"),
    ]
    for until, words in (("5s", "1 of 2 pods exist"), ("15s", "0/1 nodes"), ("25s", "1 node(s) were unschedulable")):
        answer = simulate(story, until=until)
        assert words in waits_because(answer.obj("PodGroup", "a"))
        assert words in waits_because(answer.obj("Pod", "a0"))
        assert words in answer.why("default/a")


def test_g10_without_nodes() -> None:
    answer = simulate(m.gang("a", 2))
    assert "0/0 nodes" in answer.why("default/a")


def test_g10_every_one_of_many_alike_says_why() -> None:
    answer = simulate(m.node("n", 1), [doc for i in range(40) for doc in m.gang(f"a{i}", 2)])
    assert len(answer.data["pending"]) == 40
    assert all(waits_because(one) for kind in ("Pod", "PodGroup") for one in answer.all(kind))


def test_g10_a_member_that_comes_later_says_why_too() -> None:
    answer = simulate(m.node("n", 1), m.gang("a", 2), m.pod("a-9", group="a", at="10s"))
    assert "Insufficient cpu" in waits_because(answer.obj("Pod", "a-9"))


def test_g10_a_group_that_has_completed_takes_new_members() -> None:
    answer = simulate(m.node("n", 2), m.gang("a", 2, run_time="5s"), m.pod("late", group="a", at="10s"))
    assert answer.at("late") == 10.0


def test_g10_a_finished_job_waits_for_nothing() -> None:
    answer = simulate(m.node("n", 2), m.job("j", m.role("w", 2, run_time="5s")))
    assert not answer.data["pending"]
    assert not waits_because(answer.group_of("j"))


def test_g10_a_job_that_was_aborted_waits_for_nothing() -> None:
    """While its pods went, too few of them were left."""
    answer = simulate(m.node("n", 2), m.job("j", m.role("w", 2, stop_delay="5s")), m.command("c", "AbortJob", "1s"))
    group = answer.group_of("j")
    assert condition(group, "Unschedulable") is not None
    assert not waits_because(group)


def test_g10_a_gang_whose_minimum_was_lowered_to_what_is_met_waits_no_more() -> None:
    """Only its surplus does: its pods say so, and it does not."""
    lowered = m.step("5s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 1}})
    answer = simulate(m.node("n", 1), m.gang("a", 2), lowered)
    assert not waits_because(answer.obj("PodGroup", "a"))
    assert "Insufficient cpu" in waits_because(answer.obj("Pod", "a-1"))


@pytest.mark.parametrize("lowered_at", [None, "5s"])
def test_g10_a_gang_with_minimum_0_that_waits_is_pending_too(lowered_at: str | None) -> None:
    """Of it nothing has started: its object says so, as its pods do, until one of them has."""
    gang = m.gang("a", 2, minimum=2 if lowered_at else 0, cpu=2)
    steps = [m.step("5s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 0}})] if lowered_at else []
    answer = simulate(m.node("n", 1), gang, steps)
    for reported in (answer.obj("PodGroup", "a"), answer.obj("Pod", "a-0")):
        assert "Insufficient cpu" in waits_because(reported)
    assert [one["gang"] for one in answer.data["pending"]] == ["default/a"]
    started = simulate(m.node("n", 1), gang, steps, m.node("large", 2, at="10s"))
    assert not waits_because(started.obj("PodGroup", "a")), "only surplus waits by now"


def test_g10_capacity_of_a_queue_is_a_reason() -> None:
    answer = simulate(m.node("n"), m.queue("q", capability={"cpu": "1"}), m.gang("a", 2, queue="q"), config=NO_ENQUEUE)
    for reported in (answer.why("default/a"), waits_because(answer.obj("Pod", "a-0"))):
        assert "its capability is 1" in reported


def test_g10_a_node_that_goes_is_counted_no_more() -> None:
    answer = simulate(m.node("n", 1), m.node("m", 1, delete_at="10s"), m.gang("a", 1, cpu=2))
    assert "0/1 nodes" in answer.why("default/a")
    assert "0/1 nodes" in waits_because(answer.obj("PodGroup", "a"))


def test_g10_a_gang_that_lost_a_member_reports_its_own_diagnosis_only() -> None:
    """`b` has started, and one of its pods was replaced; `a` starts with `b` and is not complete."""
    again = m.pod("b-0", 1, annotations=m.koordinator_annotations("b", 2), at="11s", nodeSelector={"no": "such"})
    a = m.koordinator_gang("a", 1, minimum=2, groups=["default/a", "default/b"], at="5s")
    answer = simulate(
        m.node("n"), m.koordinator_gang("b", 2), a, m.step("10s", "delete", "Pod", "b-0"), again, until="20s"
    )
    assert "didn't match" in answer.why("default/b")
    assert answer.why("default/a") == "1 of 2 pods exist, 1 more is needed"


def test_g10_what_a_scheduler_said_before_it_died_is_withdrawn_by_the_next() -> None:
    """It had bound the gang, and nothing of that was written yet on the group."""
    stale = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "no room"}
    said = m.step("5s", "patch", "PodGroup", "a", patch={"status": {"conditions": [stale]}})
    for more in ([], [m.pod("a-9", 9, group="a")]):
        answer = simulate(m.node("n"), m.gang("a", 2), more, said, m.restart("6s"), until="9s")
        assert len(answer.bound("a-")) == 2
        assert condition(answer.obj("PodGroup", "a"), "Unschedulable")["status"] == "False"


TOGETHER = ["default/a", "default/b"]


def test_g10_a_gang_of_minimum_0_whose_group_waits_says_for_which_gang() -> None:
    """Also after the gang that it waits for was read again, with other pods."""
    answer = simulate(
        m.koordinator_gang("a", 1, 0, groups=TOGETHER),
        m.koordinator_gang("b", 2, 1, groups=TOGETHER),
        m.step("33s", "delete", "Pod", "b-0"),
        m.koordinator_gang("b", 1, 1, groups=TOGETHER, first=5, at="40s"),
    )
    assert answer.pending("default/a")["reason"] == "GroupNotReady"
    assert answer.pending("default/a")["message"].startswith("default/b of its group waits: 1 of 1 pod does not fit")
    assert answer.pending("default/a")["missing"] == {}


def test_g10_a_gang_of_minimum_0_whose_pods_timed_out_says_so() -> None:
    """And has not the numbers of the gang that it starts with."""
    answer = simulate(
        m.koordinator_gang("a", 1, 0, groups=TOGETHER, wait="12s"),
        m.koordinator_gang("b", 1, 2, groups=TOGETHER, wait="12s"),
        m.koordinator_gang("b", 1, 2, groups=TOGETHER, first=1, at="35s", wait="12s"),
        m.step("35s", "patch", "Pod", "b-0", patch={"metadata": {"annotations": {m.KOORDINATOR + "timeout": None}}}),
    )
    assert [line["name"] for line in answer.lines("timeout")][:1] == ["a-0"]
    assert answer.pending("default/a")["reason"] == "TimedOut"
    assert answer.pending("default/a")["missing"] == {}
    assert "1 pod is annotated" in answer.pending("default/a")["message"]


def test_g10_a_gang_of_minimum_0_alone_whose_pods_timed_out_says_so() -> None:
    """It waited for the gang that it names, then for room."""
    answer = simulate(
        m.node("n", 2), m.koordinator_gang("a", 1, 0, groups=TOGETHER, wait="12s"), m.koordinator_gang("b", 2)
    )
    assert [line["name"] for line in answer.lines("timeout")] == ["a-0"]
    assert answer.pending("default/a")["reason"] == "TimedOut"


def test_g10_behind_a_fifo_gang_each_gang_of_a_group_has_its_own_numbers() -> None:
    """The second one is in another queue, with another minimum: it waits behind that gang too."""
    answer = simulate(
        m.queue("q", dequeueStrategy="fifo"),
        m.gang("first", 1, queue="q"),
        m.koordinator_gang("a", 3, 3, groups=TOGETHER, labels={"volcano.sh/queue-name": "q"}, at="1s"),
        m.koordinator_gang("b", 2, 1, groups=TOGETHER, at="1s"),
    )
    for name, missing in (("a", 3), ("b", 1)):
        found = answer.pending(f"default/{name}")
        assert found["message"] == "waits behind default/first in the FIFO queue q"
        assert found["missing"] == {"": missing}


def test_g10_of_a_group_only_the_gang_that_the_cluster_could_never_hold_says_so() -> None:
    answer = simulate(
        m.node("n", 3),
        m.sigs_podgroup("a", 1, groups=TOGETHER, minResources={"cpu": "4"}),
        m.labelled_pods("a", 1),
        m.koordinator_gang("b", 2, groups=TOGETHER),
    )
    assert answer.pending("default/a")["reason"] == "NotEnoughResources"
    assert answer.pending("default/a")["missing"] == {"": 1}
    assert answer.pending("default/b")["reason"] == "GroupNotReady"
    assert answer.pending("default/b")["missing"] == {"": 2}


@pytest.mark.parametrize("restarts", [[], [m.restart("10s")]], ids=["running", "restarted"])
def test_g10_i5_a_gang_behind_which_a_fifo_queue_has_another_by_now_says_so(restarts: list[m.Obj]) -> None:
    """It failed for room when nothing was before it. The answer is for the state that it shows, whichever scheduler
    runs: the first one waits for room, and it waits for the first one."""
    answer = simulate(
        m.priority_class("high", 9),
        m.node("n", 1),
        m.queue("q", dequeueStrategy="fifo"),
        m.gang("later", 1, cpu=2, queue="q"),
        m.gang("first", 1, cpu=3, queue="q", at="5s", group_priority="high"),
        restarts,
    )
    assert "Insufficient cpu" in answer.why("default/first")
    assert answer.why("default/later") == "waits behind default/first in the FIFO queue q"


def test_g10_behind_a_fifo_gang_each_gang_of_a_group_says_so_whatever_it_said_before() -> None:
    """Until 60 s the node is full. Then it is not, and the group waits for the first gang of its queue alone."""
    answer = simulate(
        m.node("n", 4),
        m.queue("q", dequeueStrategy="fifo"),
        m.pod("full", 4, nodeName="n", run_time="60s"),
        m.koordinator_gang("a", 1, groups=TOGETHER, labels={"volcano.sh/queue-name": "q"}, at="1s"),
        m.koordinator_gang("b", 1, groups=TOGETHER, labels={"volcano.sh/queue-name": "q"}, at="1s"),
        m.priority_class("high", 100),
        m.gang("first", 1, cpu=8, queue="q", at="20s", group_priority="high"),
        config=NO_EVICTIONS,
    )
    for name in ("a", "b"):
        assert answer.pending(f"default/{name}")["reason"] == "BlockedByFIFO"
        assert waits_because(answer.obj("Pod", f"{name}-0")) == "waits behind default/first in the FIFO queue q"
