"""S3: priority is granted, not taken. The class of a Job, PodGroup or SchedulingSpec counts only where it is granted; a
pod's own priority is what the API server granted."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.simulation import simulate

SYSTEM = ("system-node-critical", "system-cluster-critical")
VICTIM = m.job("victim", m.role("w", 8), namespace="b")
SMALL = m.node("n", 8)


def class_quota(namespace: str, *, operator: str = "In", values: tuple[str, ...] = ("high",), pods: int = 100) -> Obj:
    """A ResourceQuota that limits pods of some priority classes."""
    expression: Obj = {"scopeName": "PriorityClass", "operator": operator}
    if values:
        expression["values"] = list(values)
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "classes", "namespace": namespace},
        "spec": {"hard": {"pods": str(pods)}, "scopeSelector": {"matchExpressions": [expression]}},
    }


def high_group(**fields: Any) -> list[Obj]:
    """A PodGroup of class high in namespace a, and pods without a class."""
    return m.gang("g", 8, namespace="a", at="1s", group_priority="high", **fields)


# ---- system classes


@pytest.mark.parametrize("name", SYSTEM)
def test_s3_attack_t6_a_job_with_a_system_class_evicts_no_other_tenant(name: str) -> None:
    answer = simulate(SMALL, VICTIM, m.job("evil", m.role("w", 8), namespace="a", at="1s", priority=name))
    assert answer.evicted() == []
    assert sorted(answer.nodes()) == [f"victim-w-{index}" for index in range(8)]
    assert all("priorityClassName" not in pod["spec"] for pod in answer.all("Pod", "evil-"))
    assert any(f"priority class {name} does not count in namespace a" in text for text in answer.warnings())


@pytest.mark.parametrize("name", SYSTEM)
def test_s3_attack_t6_a_podgroup_with_a_system_class_evicts_no_other_tenant(name: str) -> None:
    answer = simulate(SMALL, VICTIM, m.gang("evil", 8, namespace="a", at="1s", group_priority=name))
    assert answer.evicted() == []


def test_s3_a_system_class_counts_in_kube_system_and_where_the_config_says() -> None:
    for namespace, config in (("kube-system", {}), ("storage", {"systemPriorityNamespaces": ["storage"]})):
        job = m.job("driver", m.role("w", 8), namespace=namespace, at="1s", priority=SYSTEM[0])
        answer = simulate(SMALL, VICTIM, job, config=config, until="60s")
        assert len(answer.evicted("victim")) == 8, namespace
        assert {pod["spec"]["priorityClassName"] for pod in answer.all("Pod", "driver-")} == {SYSTEM[0]}


def test_s3_a_pods_own_priority_is_what_the_api_server_granted() -> None:
    pods = m.gang("critical", 8, namespace="a", at="1s", priority=SYSTEM[1])
    assert len(simulate(SMALL, VICTIM, pods, until="60s").evicted("victim")) == 8


def test_s3_a_native_podgroup_and_a_scheduling_spec_with_a_system_class_count_with_their_pods() -> None:
    group = m.native_podgroup("evil", {"gang": {"minCount": 8}}, priorityClassName=SYSTEM[0])
    answer = simulate(SMALL, VICTIM, group, m.native_pods("evil", 8, at="1s"))
    assert answer.evicted() == []
    queue_job = m.queue_job("evil", m.role("w", 8), minimum=8, at="1s", priorityClassName=SYSTEM[0])
    answer = simulate(SMALL, VICTIM, queue_job)
    assert answer.evicted() == []


# ---- quotas of classes


@pytest.mark.parametrize(
    ("operator", "values"), [("In", ("high",)), ("Exists", ()), ("NotIn", ("low",))], ids=["in", "exists", "not-in"]
)
def test_s3_where_a_quota_limits_the_class_the_pods_count(operator: str, values: tuple[str, ...]) -> None:
    quota = class_quota("a", operator=operator, values=values)
    assert simulate(SMALL, m.HIGH_LOW, quota, VICTIM, high_group()).evicted() == []
    assert len(simulate(SMALL, m.HIGH_LOW, VICTIM, high_group(), until="60s").evicted()) == 8, "without the quota"


def test_s3_pods_that_carry_the_limited_class_have_its_priority() -> None:
    """The quota counts them: that is how the class is granted."""
    answer = simulate(SMALL, m.HIGH_LOW, class_quota("a"), VICTIM, high_group(priority="high"), until="60s")
    assert len(answer.evicted()) == 8
    refused = simulate(SMALL, m.HIGH_LOW, class_quota("a", pods=7), VICTIM, high_group(priority="high"))
    assert refused.evicted() == []


def test_s3_a_job_whose_pods_get_the_limited_class_has_its_priority_from_the_start() -> None:
    job = m.job("j", m.role("w", 8), namespace="a", at="1s", priority="high")
    assert len(simulate(SMALL, m.HIGH_LOW, class_quota("a"), VICTIM, job, until="60s").evicted()) == 8


def test_s3_a_quota_on_other_classes_or_in_another_namespace_changes_nothing() -> None:
    for quota in (class_quota("b"), class_quota("a", values=("low",)), class_quota("a", operator="NotIn")):
        assert len(simulate(SMALL, m.HIGH_LOW, quota, VICTIM, high_group(), until="60s").evicted()) == 8


def test_s3_a_quota_that_comes_later_lowers_the_priority() -> None:
    """The gang waits behind a node that is too small; when room for it comes, the quota limits its class."""
    quota = class_quota("a")
    quota["metadata"]["annotations"] = {"sim.enbloc.dev/at": "5s"}
    other = m.gang("other", 8, at="2s", group_priority="low", namespace="b")
    answer = simulate(m.node("n", 8, at="10s"), m.HIGH_LOW, quota, high_group(run_time="5s"), other)
    assert answer.at("other-0") == 10.0


# ---- tenancy: isolated


def test_s3_isolated_the_lower_of_the_gangs_and_its_pods_priority_counts() -> None:
    isolated = {"tenancy": "isolated"}
    assert simulate(SMALL, m.HIGH_LOW, VICTIM, high_group(), config=isolated).evicted() == []
    high_pods = high_group(priority="high")
    assert len(simulate(SMALL, m.HIGH_LOW, VICTIM, high_pods, config=isolated, until="60s").evicted()) == 8
    low_group = m.gang("g", 8, namespace="a", at="1s", priority="high")
    low_group[0]["spec"]["priorityClassName"] = "low"
    victim = m.job("victim", m.role("w", 8), namespace="b", priority="low")
    assert simulate(SMALL, m.HIGH_LOW, victim, low_group, config=isolated).evicted() == []


@pytest.mark.parametrize(
    ("name", "more", "config"),
    [
        ("system-cluster-critical", [], {}),
        ("high", [], {"tenancy": "isolated"}),
        ("high", [class_quota("default")], {}),
    ],
)
def test_s3_a4_a_class_that_does_not_count_gives_a_queue_job_no_turn(name: str, more: list[Obj], config: Obj) -> None:
    """Its pods do not carry the class: their priority counts, and the other job comes first by its name."""
    jobs = [m.queue_job("a", m.role("w", 2)), m.queue_job("z", m.role("w", 2), priorityClassName=name)]
    room = [m.priority_class("high", 1000), m.node("n", 20), m.resource_quota(2), *jobs]
    assert len(simulate(room, more, config=config, until="60s").bound("a-")) == 2
    assert len(simulate(room, config={"systemPriorityNamespaces": ["default"]}, until="60s").bound("z-")) == 2
