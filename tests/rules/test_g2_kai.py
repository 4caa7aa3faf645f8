"""G2, M4, G8, N1 for KAI's PodGroups: `scheduling.run.ai/v2alpha2`, and pods with the annotation `pod-group-name`."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import waits_because
from support.simulation import lint, simulate


def test_g2_all_or_nothing() -> None:
    answer = simulate(m.node("n", 2), m.node("late", 4, at="30s"), m.kai_podgroup("g", 3), *m.kai_pods("g", 3))
    assert answer.times("g-") == [30.0] * 3


def test_g2_without_a_minimum_one_member_starts() -> None:
    answer = simulate(m.node("n", 1), m.kai_podgroup("g", None), *m.kai_pods("g", 2))
    assert len(answer.bound("g-")) == 1


def test_m4_each_subgroup_has_its_minimum() -> None:
    """Room for four pods: four of one subgroup would not do."""
    group = m.kai_podgroup("g", None, {"prefill": 2, "decode": 2})
    pods = [*m.kai_pods("g", 4, subgroup="prefill"), *m.kai_pods("g", 1, subgroup="decode")]
    late = m.kai_pods("g", 2, subgroup="decode", at="20s")[1:]
    answer = simulate(m.node("n", 4), group, *pods, *late)
    assert answer.times("g-") == [20.0] * 4
    assert len(answer.bound("g-decode-")) == 2


def test_m4_a_subgroup_without_a_minimum_needs_one_member() -> None:
    group = m.kai_podgroup("g", None, subGroups=[{"name": "leader"}, {"name": "worker", "minMember": 2}])
    answer = simulate(m.node("n", 4), group, *m.kai_pods("g", 3, subgroup="worker"))
    assert not answer.bound("g-")
    assert "leader" in answer.why("default/g")


@pytest.mark.parametrize("where", ["group", "pod"])
def test_g8_the_queue_is_kais_label_or_field(where: str) -> None:
    queue = m.queue("team", capability={"cpu": "1"})
    labelled = m.pods(2, "g-", labels={"kai.scheduler/queue": "team"})
    grouped = [m.kai_podgroup("g", 2, queue="team"), *m.kai_pods("g", 2)]
    answer = simulate(m.node("n"), queue, *(grouped if where == "group" else labelled))
    assert len(answer.bound("g-")) == (0 if where == "group" else 1)


def test_g8_a_queue_that_does_not_exist_is_named() -> None:
    answer = simulate(m.node("n"), m.pod("p", labels={"kai.scheduler/queue": "absent"}))
    assert "queue absent does not exist" in answer.why("default/p")


def test_g8_the_priority_class_of_the_group_counts() -> None:
    older = m.pod("a", 2)
    late = [m.kai_podgroup("g", 2, priorityClassName="high"), *m.kai_pods("g", 2)]
    answer = simulate(m.node("n", 2, at="9s"), m.HIGH_LOW, older, *late, until="20s")
    assert answer.times("g-") == [9.0] * 2
    assert not answer.bound("a")


@pytest.mark.parametrize("preemptibility, evicted", [("preemptible", True), ("non-preemptible", False), (None, False)])
def test_p2_preemptibility(preemptibility: str | None, evicted: bool) -> None:
    """Without a word, priority 100 and above is not preemptible in KAI."""
    classes = [m.priority_class("build", 100), m.priority_class("boss", 1000)]
    fields = {"preemptibility": preemptibility} if preemptibility else {}
    group = m.kai_podgroup("g", 2, priorityClassName="build", **fields)
    boss = m.pod("boss", 2, priority="boss", at="5s")
    answer = simulate(m.node("n", 2), classes, group, *m.kai_pods("g", 2, priority="build"), boss, until="20s")
    assert bool(answer.evicted()) is evicted


def test_v5_pods_wait_for_their_group() -> None:
    answer = simulate(m.node("n"), *m.kai_pods("g", 1), m.kai_podgroup("g", 1, at="7s"))
    assert answer.times("g-") == [7.0]


def test_g10_the_group_says_why_and_what_became_of_it() -> None:
    answer = simulate(m.node("n", 1), m.kai_podgroup("g", 2), *m.kai_pods("g", 2))
    group = answer.obj("PodGroup", "g")
    assert "cpu" in waits_because(group)
    assert group["status"]["phase"] == "Pending"
    assert group["status"]["pending"] == 2
    answer = simulate(m.node("n", 2), m.kai_podgroup("g", 2), *m.kai_pods("g", 2, run_time="9s"), until="5s")
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Running"
    answer = simulate(m.node("n", 2), m.kai_podgroup("g", 2), *m.kai_pods("g", 2, run_time="9s"))
    status = answer.obj("PodGroup", "g")["status"]
    assert (status["phase"], status["succeeded"], status["running"]) == ("Succeeded", 2, 0)


def test_k3_a_bad_minimum_keeps_the_gang_waiting() -> None:
    answer = simulate(m.node("n"), m.kai_podgroup("g", -1), *m.kai_pods("g", 1))
    assert not answer.bound()
    assert "minMember -1" in answer.why("default/g")


def test_g7_the_gang_survives_a_restart_of_the_scheduler() -> None:
    objects: list[Obj] = [m.kai_podgroup("g", 3), *m.kai_pods("g", 3)]
    answer = simulate(m.node("n", 2), m.node("late", 4, at="30s"), objects, m.restart("10s"))
    assert answer.times("g-") == [30.0] * 3


def test_n2_a_field_that_is_not_known_is_named() -> None:
    found = [one.message for one in lint(m.kai_podgroup("g", 1, minMembers=2)).warnings]
    assert any("did you mean minMember" in text for text in found)
