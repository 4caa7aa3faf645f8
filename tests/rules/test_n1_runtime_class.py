"""N1, G6: what a pod has from its RuntimeClass counts, as the API server's admission gives it to the pod."""

from __future__ import annotations

from typing import Any

import pytest

from support import manifests as m
from support.simulation import simulate

HEAVY = m.runtime_class("heavy", {"cpu": "1"})


def boxed(name: str = "p", **spec: Any) -> m.Obj:
    return m.pod(name, cpu=1, runtimeClassName="heavy", **spec)


def test_n1_the_overhead_of_a_runtime_class_counts() -> None:
    answer = simulate(m.node("n", cpu=3), HEAVY, boxed("p-0"), boxed("p-1"))
    assert list(answer.bound()) == ["p-0"]
    assert next(pod for pod in answer.all("Pod") if pod["metadata"]["name"] == "p-0")["spec"]["overhead"] == {
        "cpu": "1"
    }


def test_n1_pods_of_a_job_have_the_overhead() -> None:
    job = m.job("j", m.role("w", 2))
    job["spec"]["tasks"][0]["template"]["spec"]["runtimeClassName"] = "heavy"
    assert simulate(m.node("n", cpu=4), HEAVY, job).times("j") == [0.0, 0.0]
    assert not simulate(m.node("n", cpu=3), HEAVY, job).bound()


def test_n1_selector_and_tolerations_of_a_runtime_class_count() -> None:
    taint = {"key": "boxes", "effect": "NoSchedule"}
    chosen = m.runtime_class("heavy", {}, nodeSelector={"boxes": "yes"}, tolerations=[{"key": "boxes"}])
    nodes = [m.node("plain"), m.node("boxes", labels={"boxes": "yes"}, taints=[taint])]
    assert simulate(*nodes, chosen, boxed()).bound() == {"p": (0.0, "boxes")}


@pytest.mark.parametrize(
    ("classes", "spec", "message"),
    [
        ([], {}, 'RuntimeClass "heavy" not found'),
        ([HEAVY], {"overhead": {"cpu": "2"}}, "Overhead doesn't match"),
        ([m.runtime_class("heavy", {}, nodeSelector={"a": "b"})], {"nodeSelector": {"a": "c"}}, "conflict"),
    ],
)
def test_n1_a_pod_that_does_not_agree_with_its_class_is_refused(
    classes: list[m.Obj], spec: m.Obj, message: str
) -> None:
    assert message in simulate(m.node("n"), *classes, boxed(**spec)).rejected("p")


@pytest.mark.parametrize("overhead", [{"cpu": "1"}, {"cpu": "1000m"}])
def test_n1_a_pod_of_a_live_cluster_keeps_the_overhead_that_it_has(overhead: m.Obj) -> None:
    for classes in ([], [HEAVY]):
        assert simulate(m.node("n"), *classes, boxed(overhead=overhead)).times() == [0.0]
