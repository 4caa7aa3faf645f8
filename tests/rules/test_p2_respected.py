"""P2: pods that are never evicted."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.answers import Answer
from support.simulation import simulate

NONPREEMPTING = m.priority_class("nonpreempting", 1000) | {"preemptionPolicy": "Never"}
CLASSES = [m.priority_class("high", 1000), m.priority_class("mid", 500), m.priority_class("low", 10), NONPREEMPTING]
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN = "volcano.sh/cooldown-time"


def evicted(answer: Answer) -> list[tuple[float, str]]:
    return sorted((line["t"], line["name"]) for line in answer.lines("evicted"))


def vip(cpu: int = 4, priority: str = "high", at: str = "10s", **more: Any) -> m.Obj:
    return m.pod("vip", cpu, priority=priority, at=at, **more)


def marked(obj: m.Obj, key: str, value: str, where: str = "annotations") -> m.Obj:
    metadata = obj["metadata"]
    return obj | {"metadata": metadata | {where: {**(metadata.get(where) or {}), key: value}}}


def budget(name: str = "b", app: str = "a", **fields: Any) -> m.Obj:
    return m.budget({"app": app}, name, **fields)


# ---- PodDisruptionBudgets


@pytest.mark.parametrize(
    "spec, may_go",
    [
        ({"minAvailable": 4}, 0),
        ({"minAvailable": 3}, 1),
        ({"minAvailable": 2}, 2),
        ({"minAvailable": 0}, 4),
        ({"minAvailable": "50%"}, 2),
        ({"minAvailable": "51%"}, 1),
        ({"minAvailable": "100%"}, 0),
        ({"maxUnavailable": 0}, 0),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": 4}, 4),
        ({"maxUnavailable": "50%"}, 2),
        ({"maxUnavailable": "30%"}, 2),
        ({"maxUnavailable": "0%"}, 0),
    ],
    ids=str,
)
def test_p2_a_budget_is_kept(spec: m.Obj, may_go: int) -> None:
    running = m.pods(4, "a", priority="low", labels={"app": "a"})
    answer = simulate(CLASSES, m.node("n"), budget(**spec), running, vip(1), until="20s")
    assert len(evicted(answer)) == min(1, may_go)
    whole = m.gang("a", 4, priority="low", labels={"app": "a"})
    answer = simulate(CLASSES, m.node("n"), budget(**spec), whole, vip(1), until="20s")
    assert len(evicted(answer)) == (4 if may_go == 4 else 0)


def test_p2_others_go_instead() -> None:
    running = [*m.pods(2, "a", priority="low", labels={"app": "a"}), *m.pods(2, "b", priority="mid")]
    answer = simulate(CLASSES, m.node("n"), budget(minAvailable=2), running, vip(2), until="20s")
    assert {name for _, name in evicted(answer)} == {"b0", "b1"}


def test_p2_a_budget_is_spent_on_pods_that_make_room() -> None:
    """One pod may leave: not the BestEffort pod of low priority, which frees nothing, nor one that frees too little."""
    for cpu, others in ((None, 2), (1, 1)):
        running = [m.pod("a", cpu, priority="low"), m.pod("b", 2, priority="mid")]
        protected = [marked(pod, "app", "a", "labels") for pod in running]
        full = m.pod("full", others, priority="high")
        answer = simulate(CLASSES, m.node("n"), budget(maxUnavailable=1), protected, full, vip(2), until="20s")
        assert [name for _, name in evicted(answer)] == ["b"]


def test_p2_a_whole_gang_must_be_allowed_by_its_budget() -> None:
    running = m.gang("g", 2, cpu=2, priority="low", labels={"app": "a"})
    assert not evicted(simulate(CLASSES, m.node("n"), budget(maxUnavailable=1), running, vip(2), until="20s"))
    assert len(evicted(simulate(CLASSES, m.node("n"), budget(maxUnavailable=2), running, vip(2), until="20s"))) == 2


def test_p2_every_budget_of_a_pod_counts() -> None:
    running = m.pods(2, "a", 2, priority="low", labels={"app": "a"})
    both = [budget("x", minAvailable=0), budget("y", minAvailable=2)]
    assert not evicted(simulate(CLASSES, m.node("n"), both, running, vip(2), until="20s"))


def test_p2_a_budget_of_other_pods_or_of_another_namespace_does_not_count() -> None:
    running = m.pods(2, "a", 2, priority="low", labels={"app": "a"})
    elsewhere = budget(minAvailable=2)
    elsewhere["metadata"]["namespace"] = "other"
    answer = simulate(CLASSES, m.node("n"), elsewhere, budget("x", "z", minAvailable=2), running, vip(2), until="20s")
    assert len(evicted(answer)) == 1


def test_p2_a_budget_that_goes_lets_it_preempt_at_that_instant() -> None:
    running = m.pods(2, "a", 2, priority="low", labels={"app": "a"})
    answer = simulate(CLASSES, m.node("n"), budget(minAvailable=2, delete_at="30s"), running, vip(2))
    assert answer.at("vip") == 30.0


def test_p2_a_budget_that_is_changed_too() -> None:
    running = m.pods(2, "a", 2, priority="low", labels={"app": "a"})
    change = m.step("30s", "patch", patch={"spec": {"minAvailable": 1}})
    change["target"] = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "namespace": "default", "name": "b"}
    assert simulate(CLASSES, m.node("n"), budget(minAvailable=2), running, change, vip(2)).at("vip") == 30.0


def test_p2_pods_that_are_not_healthy_use_the_budget_up() -> None:
    """Of four expected one has not started: one may be away, and is."""
    running = [
        *m.pods(3, "a", priority="low", labels={"app": "a"}),
        m.pod("a3", 1, priority="low", labels={"app": "a"}, start_delay="1h"),
    ]
    assert not evicted(simulate(CLASSES, m.node("n"), budget(maxUnavailable=1), running, vip(1), until="20s"))


def test_p2_several_plans_at_one_instant_share_a_budget() -> None:
    running = m.pods(4, "a", priority="low", labels={"app": "a"})
    wanting = [m.pod(f"vip{i}", 1, priority="high", at="10s") for i in range(4)]
    answer = simulate(CLASSES, m.node("n"), budget(minAvailable=2), running, wanting, until="20s")
    assert len(evicted(answer)) == 2


# ---- preemptionPolicy


def test_p2_a_gang_that_never_preempts_evicts_no_pod() -> None:
    running = m.pod("a", 4, priority="low")
    nonpreempting_class = vip(priority="nonpreempting")
    nonpreempting_pod = vip(preemptionPolicy="Never")
    for one in (nonpreempting_class, nonpreempting_pod):
        answer = simulate(CLASSES, m.node("n"), running, one, until="20s")
        assert not evicted(answer)
        assert answer.at("vip") is None


NONPREEMPTING_GANGS = {
    "volcano-job": [m.job("g", m.role("w", 2, cpu=2), priority="nonpreempting", at="10s")],
    "volcano-job-of-nonpreempting-pods": [m.job("g", m.role("w", 2, cpu=2, priority="nonpreempting"), at="10s")],
    "volcano-podgroup": m.gang("g", 2, cpu=2, group_priority="nonpreempting", at="10s"),
    "volcano-podgroup-of-nonpreempting-pods": m.gang("g", 2, cpu=2, priority="nonpreempting", at="10s"),
    "annotations": m.koordinator_gang("g", 2, cpu=2, priority="nonpreempting", at="10s"),
    "kubernetes": [
        m.native_podgroup("g", {"gang": {"minCount": 2}}, priorityClassName="nonpreempting"),
        *m.native_pods("g", 2, cpu=2, priority="nonpreempting", at="10s"),
    ],
    "scheduling-spec": [
        m.CRDJOB_DEFINITION,
        m.crdjob("c"),
        m.scheduling_spec("c", 2, priorityClassName="nonpreempting", at="10s"),
        *m.owned(*m.pods(2, "g-", 2, at="10s")),
    ],
}


@pytest.mark.parametrize("dialect", NONPREEMPTING_GANGS)
def test_p2_a_nonpreempting_gang_of_any_dialect_waits(dialect: str) -> None:
    answer = simulate(
        CLASSES, m.node("n"), m.pod("a", 4, priority="low", run_time="100s"), NONPREEMPTING_GANGS[dialect]
    )
    assert not evicted(answer)
    assert {at for at, _ in answer.bound("g-").values()} == {100.0}


def test_p2_a_gang_that_never_preempts_can_be_evicted_itself() -> None:
    answer = simulate(
        CLASSES,
        m.priority_class("top", 9999),
        m.node("n"),
        m.pod("a", 4, priority="nonpreempting"),
        vip(priority="top"),
    )
    assert evicted(answer) == [(10.0, "a")]


# ---- preemptable


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_p2_a_pod_that_is_not_preemptable(where: str) -> None:
    kept = marked(m.pod("a", 4, priority="low"), PREEMPTABLE, "false", where)
    assert not evicted(simulate(CLASSES, m.node("n"), kept, vip(), until="20s"))
    for other in ("true", "False", "no", ""):
        said = marked(m.pod("a", 4, priority="low"), PREEMPTABLE, other, where)
        assert evicted(simulate(CLASSES, m.node("n"), said, vip(), until="20s")), other


@pytest.mark.parametrize(
    ("key", "value", "other"),
    [
        ("kai.scheduler/preemptibility", "non-preemptible", "preemptible"),
        ("quota.scheduling.koordinator.sh/preemptible", "false", "true"),
        ("scheduling.koordinator.sh/disable-preemptible", "true", "false"),
    ],
)
def test_p2_labels_of_kai_and_koordinator_protect_a_pod(key: str, value: str, other: str) -> None:
    """As their own schedulers choose victims. An annotation of that name says nothing there."""
    for text, where, is_kept in ((value, "labels", True), (other, "labels", False), (value, "annotations", False)):
        pod = marked(m.pod("a", 4, priority="low"), key, text, where)
        assert bool(evicted(simulate(CLASSES, m.node("n"), pod, vip(), until="20s"))) is not is_kept, (text, where)


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_p2_a_job_a_group_or_a_template_that_is_not_preemptable(where: str) -> None:
    of_job = [marked(m.job("g", m.role("w", 2, cpu=2), priority="low"), PREEMPTABLE, "false", where)]
    template = m.job("g", m.role("w", 2, cpu=2), priority="low")
    inside = template["spec"]["tasks"][0]["template"]
    template["spec"]["tasks"][0]["template"] = marked(inside, PREEMPTABLE, "false", where)
    group, *members = m.gang("g", 2, cpu=2, group_priority="low")
    of_group = [marked(group, PREEMPTABLE, "false", where), *members]
    sigs = [
        marked(m.sigs_podgroup("g", 2), PREEMPTABLE, "false", where),
        *m.labelled_pods("g", 2, cpu=2, priority="low"),
    ]
    own = m.native_podgroup("g", {"gang": {"minCount": 2}}, priorityClassName="low")
    kubernetes = [marked(own, PREEMPTABLE, "false", where), *m.native_pods("g", 2, cpu=2, priority="low")]
    for documents in (of_job, [template], of_group, sigs, kubernetes):
        answer = simulate(CLASSES, m.node("n"), documents, vip(2), until="20s")
        assert len(answer.bound("g-")) == 2
        assert not evicted(answer), documents[0]


def test_p2_a_gang_with_one_member_that_may_not_go_is_not_taken_as_a_whole() -> None:
    kept = [
        m.podgroup("g", 2, priority="low"),
        m.pod("g-0", 2, group="g"),
        m.pod("g-1", 2, group="g", annotations={PREEMPTABLE: "false"}),
    ]
    assert not evicted(simulate(CLASSES, m.node("n"), kept, vip(2), until="20s"))


def test_p2_surplus_that_may_not_go_is_passed_over() -> None:
    kept = [
        m.podgroup("g", 1, priority="low"),
        m.pod("g-0", group="g"),
        m.pod("g-1", group="g"),
        m.pod("g-2", group="g"),
        m.pod("g-3", group="g", annotations={PREEMPTABLE: "false"}),
    ]
    assert evicted(simulate(CLASSES, m.node("n"), kept, vip(1), until="20s")) == [(10.0, "g-2")]


# ---- cooldown


@pytest.mark.parametrize("where", ["annotations", "labels"])
def test_p2_no_pod_is_evicted_within_its_cooldown(where: str) -> None:
    warm = marked(m.pod("a", 4, priority="low", at="5s"), COOLDOWN, "60s", where)
    answer = simulate(CLASSES, m.node("n"), warm, vip())
    assert evicted(answer) == [(65.0, "a")], "at the very instant"
    assert answer.at("vip") == 65.0


def test_p2_the_cooldown_of_a_job_or_a_group() -> None:
    of_job = [marked(m.job("g", m.role("w", 2, cpu=2), priority="low"), COOLDOWN, "60s")]
    group, *members = m.gang("g", 2, cpu=2, group_priority="low")
    for documents in (of_job, [marked(group, COOLDOWN, "60s"), *members]):
        answer = simulate(CLASSES, m.node("n"), documents, vip(2), until="100s")
        assert answer.at("vip") == 60.0


def test_p2_others_that_have_cooled_down_go_instead() -> None:
    warm = marked(m.pod("a", 2, priority="low"), COOLDOWN, "60s")
    answer = simulate(CLASSES, m.node("n"), warm, m.pod("b", 2, priority="mid"), vip(2), until="100s")
    assert evicted(answer) == [(10.0, "b")]


def test_p2_a_cooldown_is_known_again_after_a_restart() -> None:
    warm = marked(m.pod("a", 4, priority="low", at="5s"), COOLDOWN, "60s")
    answer = simulate(CLASSES, m.node("n"), warm, vip(), m.restart("20s"), m.restart("64s"))
    assert answer.at("vip") == 65.0


# ---- the system's own


def test_p2_pods_of_the_system_stay() -> None:
    in_system = m.pod("a", 4, priority="low", namespace="kube-system")
    assert not evicted(simulate(CLASSES, m.node("n"), in_system, vip(), until="20s"))
    top = m.priority_class("top", 1_000_000_000)
    for name in ("system-cluster-critical", "system-node-critical"):
        critical = m.pod("a", 4, priority=name, namespace="kube-system")
        assert not evicted(simulate(CLASSES, top, m.node("n"), critical, vip(priority="top"), until="20s"))


def test_p2_a_critical_pod_in_a_lowly_group_stays() -> None:
    critical = [
        m.podgroup("g", 1, priority="low", namespace="default"),
        m.pod("g-0", 4, group="g", priority="system-node-critical"),
    ]
    answer = simulate(CLASSES, m.node("n"), critical, vip(), until="20s")
    assert not evicted(answer)


def test_p2_what_another_scheduler_placed_stays() -> None:
    foreign = m.pod("a", 4, priority="low", scheduler="another", nodeName="n")
    assert not evicted(simulate(CLASSES, m.node("n"), foreign, vip(), until="20s"))


# ---- within one plan, and when it changes


@pytest.mark.parametrize(
    "spec, may_go", [({"minAvailable": 3}, 1), ({"minAvailable": "50%"}, 2), ({"maxUnavailable": "30%"}, 2)]
)
def test_p2_a_budget_is_kept_within_one_plan(spec: m.Obj, may_go: int) -> None:
    running = m.pods(4, "a", priority="low", labels={"app": "a"})
    for cpu in (1, 2, 3, 4):
        answer = simulate(CLASSES, m.node("n"), budget(**spec), running, vip(cpu), until="20s")
        assert len(evicted(answer)) == (cpu if cpu <= may_go else 0), cpu


@pytest.mark.parametrize("kind", ["Pod", "PodGroup"])
def test_p2_a_mark_that_is_taken_off_lets_it_preempt(kind: str) -> None:
    off = m.step("30s", "patch", kind, "a", patch={"metadata": {"annotations": {PREEMPTABLE: None}}})
    group, *members = m.gang("a", 1, cpu=4, group_priority="low")
    kept = [group, *members] if kind == "PodGroup" else [m.pod("a", 4, priority="low")]
    kept[0] = marked(kept[0], PREEMPTABLE, "false")
    assert simulate(CLASSES, m.node("n"), kept, vip(), off).at("vip") == 30.0


@pytest.mark.parametrize("form", ["pods", "jobs"])
def test_p2_a_nonpreempting_one_does_not_keep_its_like_from_preempting(form: str) -> None:
    """They ask for the same and have the same priority. Jobs meet at enqueue already (M6)."""
    if form == "pods":
        both = [m.pod("a", 4, priority="nonpreempting", at="1s"), m.pod("b", 4, priority="high", at="2s")]
    else:
        roles = [m.role("w", 1, cpu=4)]
        both = [m.job("a", *roles, priority="nonpreempting", at="1s"), m.job("b", *roles, priority="high", at="2s")]
    answer = simulate(CLASSES, m.node("n"), m.pod("runs", 4, priority="low"), both)
    assert answer.times("b") == [2.0]
    assert not answer.bound("a")


def test_p2_a_budget_that_has_enough_healthy_pods_now_lets_others_preempt() -> None:
    """Nothing else happens at that instant but that a pod starts."""
    app: dict[str, Any] = {"priority": "low", "labels": {"app": "a"}}
    running = [m.pod("a", 2, **app), m.pod("b", 2, start_delay="10s", **app)]
    assert simulate(CLASSES, m.node("n"), budget(minAvailable=1), running, vip(2, at="2s")).at("vip") == 10.0


def test_p2_a_budget_that_expects_fewer_pods_now_lets_others_preempt() -> None:
    gated = m.pod("g", 2, labels={"app": "a"}, delete_at="10s", schedulingGates=[{"name": "g"}])
    running = m.pod("a", 4, priority="low", labels={"app": "a"})
    assert simulate(CLASSES, m.node("n"), budget(maxUnavailable=1), running, gated, vip(at="2s")).at("vip") == 10.0


def test_p1_a_gang_that_needs_fewer_pods_now_gives_what_it_does_not_need() -> None:
    """One of its pods is protected, so that it cannot go as a whole."""
    group, kept, other = m.gang("a", 2, group_priority="low")
    fewer = m.step("20s", "patch", "PodGroup", "a", patch={"spec": {"minMember": 1}})
    answer = simulate(CLASSES, m.node("n", 2), group, marked(kept, PREEMPTABLE, "false"), other, vip(1), fewer)
    assert evicted(answer) == [(20.0, "a-1")]
    assert answer.at("vip") == 20.0
