"""G2, G1, N1 for Kubernetes' own APIs: Workloads of v1alpha1, PodGroups of each version, a Job's `spec.scheduling`."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support.simulation import simulate

GANG = {"gang": {"minCount": 3}}


def test_g2_a_pod_group_of_a_workload_is_a_gang() -> None:
    objects = [m.native_workload("w", {"a": GANG}), *m.workload_pods("w", "a", 3)]
    answer = simulate(m.node("n", 2), m.node("late", 1, at="30s"), *objects)
    assert answer.times() == [30.0] * 3


def test_g2_pod_groups_and_replicas_of_a_workload_are_gangs_of_their_own() -> None:
    workload = m.native_workload("w", {"a": GANG, "b": {"gang": {"minCount": 1}}})
    pods = [*m.workload_pods("w", "a", 3, "0"), *m.workload_pods("w", "a", 2, "1"), *m.workload_pods("w", "b", 1)]
    answer = simulate(m.node("n", 8), workload, *pods)
    assert len(answer.bound("a0")) == 3
    assert len(answer.bound("b")) == 1
    assert not answer.bound("a1")
    assert "2 of 3 pods exist" in answer.why("default/w-a-1")


def test_g3_basic_pods_start_one_by_one() -> None:
    answer = simulate(m.node("n", 1), m.native_workload("w", {"a": {"basic": {}}}), *m.workload_pods("w", "a", 3))
    assert len(answer.bound()) == 1


def test_v5_pods_wait_for_their_workload() -> None:
    pods = m.workload_pods("w", "a", 3)
    assert simulate(m.node("n"), *pods, m.native_workload("w", {"a": GANG}, at="7s")).times() == [7.0] * 3
    assert "Workload default/w does not exist" in simulate(m.node("n"), *pods).why("default/w-a")


@pytest.mark.parametrize(
    "groups, said",
    [
        ({"other": GANG}, "has no pod group a"),
        ({"a": {"gang": {"minCount": 0}}}, "minCount of a is not from 1"),
        ({"a": {"gang": {"minCount": "x"}}}, "minCount of a is not from 1"),
    ],
)
def test_k3_a_bad_workload_keeps_its_pods_waiting(groups: dict[str, Obj], said: str) -> None:
    answer = simulate(m.node("n"), m.native_workload("w", groups), *m.workload_pods("w", "a", 1))
    assert not answer.bound()
    assert said in answer.why("default/w-a")


def test_g7_a_workload_survives_a_restart_of_the_scheduler() -> None:
    objects = [m.native_workload("w", {"a": GANG}), *m.workload_pods("w", "a", 3)]
    answer = simulate(m.node("n", 2), m.node("late", 1, at="30s"), *objects, m.restart("10s"))
    assert answer.times() == [30.0] * 3


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
def test_g1_default_scheduler_where_the_config_names_it(version: str) -> None:
    group = m.native_podgroup("g", GANG, version)
    objects = [m.node("n", 2), m.node("late", 1, at="9s"), group, *m.native_pods("g", 3, scheduler="default-scheduler")]
    ours = {"schedulerNames": ["enbloc", "default-scheduler"]}
    assert simulate(*objects, config=ours).times() == [9.0] * 3
    assert not simulate(*objects, config={"schedulerNames": ["mine"]}).bound()


def job(scheduling: Obj, parallelism: int = 3, **spec: Any) -> Obj:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    template = {
        "metadata": {"annotations": {"sim.enbloc.dev/run-time": "1h"}},
        "spec": {"schedulerName": "enbloc", "restartPolicy": "Never", "containers": [container]},
    }
    fields = {"parallelism": parallelism, "completions": parallelism, "template": template, "scheduling": scheduling}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": m.metadata("j"), "spec": {**fields, **spec}}


@pytest.mark.parametrize("gang, first", [({}, 0), ({"minCount": 3}, 0), ({"minCount": 2}, 2)])
def test_g2_a_job_with_scheduling_is_a_gang(gang: Obj, first: int) -> None:
    """Without a number its parallelism is the minimum."""
    made = job({"schedulingPolicy": {"gang": gang}})
    answer = simulate(m.node("n", 2), m.node("late", 1, at="30s"), made, until="60s")
    assert answer.times("j-") == [0.0] * first + [30.0] * (3 - first)
    [group] = answer.all("PodGroup")
    assert group["apiVersion"] == "scheduling.k8s.io/v1beta1"
    assert group["metadata"]["ownerReferences"][0]["name"] == "j"
    assert all(pod["spec"]["schedulingGroup"] == {"podGroupName": "j"} for pod in answer.all("Pod"))


def test_g2_the_minimum_of_a_jobs_podgroup_follows_the_job() -> None:
    lower = m.patch("9s", "Job", "j", spec={"scheduling": {"schedulingPolicy": {"gang": {"minCount": 1}}}})
    lower["target"]["apiVersion"] = "batch/v1"
    answer = simulate(m.node("n", 1), job({"schedulingPolicy": {"gang": {"minCount": 3}}}), lower, until="20s")
    assert answer.times("j-") == [9.0]


def test_n1_what_a_jobs_scheduling_asks_for_and_is_not_honoured_holds_it() -> None:
    claims = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "absent"}]}
    answer = simulate(m.node("n"), job({"schedulingPolicy": {"gang": {}}, **claims}), until="5s")
    assert not answer.bound()
    assert "spec.resourceClaims" in answer.why("default/j")


def test_g2_the_podgroup_of_a_job_goes_with_it() -> None:
    gone = m.step("9s", "delete", "Job", "j")
    gone["target"]["apiVersion"] = "batch/v1"
    answer = simulate(m.node("n"), job({"schedulingPolicy": {"gang": {}}}), gone, until="60s")
    assert not answer.all("PodGroup")
