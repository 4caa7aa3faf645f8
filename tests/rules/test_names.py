"""Names and values that count as something else are warned of or refused (A3, K3, N2); native PodGroups (G10)."""

from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.kinds import decode_faults
from enbloc.api.meta import Obj
from support import manifests as m
from support.answers import condition
from support.simulation import simulate

ARBITRATOR = "arbitrator.incubator.k8s.io/v1alpha1"
KOORDINATOR = "gang.scheduling.koordinator.sh/"
TEMPLATE: Obj = {"spec": {"schedulerName": "enbloc", **m.pod_spec()}}


@pytest.mark.parametrize(
    "fields",
    [
        {"spec": {"SchedSpec": {"MinAvailable": 2}, "TaskSpecs": [{"Replicas": 3, "Template": TEMPLATE}]}},
        {"Spec": {"schedspec": {"minavailable": 2}, "taskspecs": [{"replicas": 3, "template": TEMPLATE}]}},
        {"Specs": {"SchedulingSpec": {"minAvailable": 2}, "taskSpecs": [{"replicas": 3, "template": TEMPLATE}]}},
    ],
)
def test_a3_field_names_are_read_without_regard_to_case(fields: Obj) -> None:
    queue_job = {"apiVersion": ARBITRATOR, "kind": "QueueJob", "metadata": {"name": "q"}, **fields}
    answer = simulate(m.node("n", 2), queue_job)
    assert answer.obj("QueueJob", "q")["status"]["minAvailable"] == 2
    assert answer.times("q-") == [0.0, 0.0]


def test_a3_a_schedulingspec_too() -> None:
    spec = {"apiVersion": ARBITRATOR, "kind": "SchedulingSpec", "metadata": {"name": "s"}, "Specs": {"MinAvailable": 4}}
    assert simulate(m.node("n"), spec).obj("SchedulingSpec", "s")["spec"]["minAvailable"] == 4


@pytest.mark.parametrize("version", ["v1alpha1", "v1"])
def test_n2_a_podgroup_without_an_api_group_is_refused(version: str) -> None:
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": {"minMember": 1}}
    [fault] = decode_faults(group)
    assert fault.field == "apiVersion"
    assert "scheduling.sigs.k8s.io/v1alpha1" in fault.message


def test_n2_core_kinds_that_are_not_registered_are_accepted() -> None:
    assert decode_faults({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "e"}}) == []


def bad_values(answer: Any) -> list[str]:
    return [text for text in answer.warnings() if "BadValue" in text or "counts" in text or "by itself" in text]


def test_k1_min_available_without_a_name_is_said() -> None:
    answer = simulate(m.node("n"), m.pod("p", annotations={KOORDINATOR + "min-available": "2"}))
    [text] = bad_values(answer)
    assert "min-available" in text
    assert KOORDINATOR + "name" in text
    assert answer.bound("p")


def koordinator_group(annotations: dict[str, str] | None = None, minimum: int = 2) -> Obj:
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "annotations": annotations or {}},
        "spec": {"minMember": minimum},
    }


LABEL = {"pod-group.scheduling.sigs.k8s.io": "g"}
TOTAL = {KOORDINATOR + "total-number": "1"}


@pytest.mark.parametrize(
    "group, pods",
    [
        (koordinator_group(TOTAL), [m.pod(f"p-{index}", labels=LABEL) for index in range(2)]),
        (koordinator_group(), [m.pod(f"p-{index}", labels=LABEL, annotations=TOTAL) for index in range(2)]),
    ],
)
def test_k3_a_total_number_below_the_minimum_is_warned_of(group: Obj, pods: list[Obj]) -> None:
    answer = simulate(m.node("n"), group, *pods)
    [text] = bad_values(answer)
    assert "total-number 1 is below minMember 2" in text
    assert len(answer.bound("p-")) == 2


def test_k13_a_podgroup_of_scheduler_plugins_is_pending_again_when_its_pods_are_gone() -> None:
    group = koordinator_group() | {"apiVersion": "scheduling.x-k8s.io/v1alpha1"}
    pods = [m.pod(f"p-{index}", labels={"scheduling.x-k8s.io/pod-group": "g"}, delete_at="10s") for index in range(2)]
    answer = simulate(m.node("n"), group, *pods, until="5s")
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Running"
    answer = simulate(m.node("n"), group, *pods, until="60s")
    assert answer.obj("PodGroup", "g")["status"]["phase"] == "Pending"


def test_g10_the_condition_of_a_native_podgroup_carries_the_true_reason() -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    pods = [m.pod(f"p-{index}", 3, schedulingGroup={"podGroupName": "g"}) for index in range(2)]
    found = simulate(m.node("n", 4), group, *pods).obj("PodGroup", "g")
    waits, scheduled = condition(found, "Unschedulable"), condition(found, "PodGroupScheduled")
    assert waits is not None
    assert scheduled is not None
    assert (scheduled["reason"], scheduled["message"]) == (waits["reason"], waits["message"])
    found = simulate(m.node("n", 8), group, *pods).obj("PodGroup", "g")
    scheduled = condition(found, "PodGroupScheduled")
    assert scheduled is not None
    assert scheduled["message"] == "2 pods are scheduled, the minimum is 2"
