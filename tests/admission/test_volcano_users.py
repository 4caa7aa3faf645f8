"""What Volcano's users expect of a Job at admission (V1, V2, M1, M2, N2)."""

from __future__ import annotations

from typing import Any

import pytest

from admission.test_job import DEFAULT, TEMPLATE, create, faults_of, job, role
from enbloc.admission.review import Settings, admit, warnings
from enbloc.api.meta import Obj


def test_v1_a_missing_scheduler_name_is_the_first_that_is_ours() -> None:
    for settings, expected in ((Settings(), "enbloc"), (Settings(scheduler_name="volcano"), "volcano")):
        assert admit("CREATE", job(role()), None, DEFAULT, settings)[0]["spec"]["schedulerName"] == expected


def test_v1_missing_replicas_are_0_on_create_and_update() -> None:
    stored, faults = create(job(role("a", 2), {"name": "b", "template": TEMPLATE}))
    assert faults == []
    assert [task["replicas"] for task in stored["spec"]["tasks"]] == [2, 0]
    scaled = stored | {
        "spec": stored["spec"] | {"tasks": [{"name": "a", "template": TEMPLATE}, stored["spec"]["tasks"][1]]}
    }
    updated, faults = admit("UPDATE", scaled, stored, DEFAULT)
    assert faults == []
    assert [(task["replicas"], task["minAvailable"]) for task in updated["spec"]["tasks"]] == [(0, 0), (0, 0)]


def test_v1_a_role_without_replicas_is_warned_of() -> None:
    [warning] = warnings(job({"name": "b", "template": TEMPLATE}))
    assert warning.field == "spec.tasks[0].replicas"
    assert "counts as 0" in warning.message
    assert warnings(job(role("a", 1))) == []


def test_m2_a_minimum_above_missing_replicas_says_that_they_are_missing() -> None:
    found = faults_of(job({"name": "b", "template": TEMPLATE, "minAvailable": 2}))
    assert "replicas is missing" in found["spec.tasks[0].minAvailable"]
    found = faults_of(job({"name": "b", "template": TEMPLATE}, minAvailable=2))
    assert "spec.tasks[0].replicas: missing" in found["spec.minAvailable"]


def test_m2_a_refusal_of_the_strict_table_names_both_ways_out() -> None:
    for obj in (job(role("a", 2), role("b", 3), minAvailable=4), job(role("a", 3, 2), role("b", 3, 2), minAvailable=3)):
        message = faults_of(obj)["spec.minAvailable"]
        assert "minAvailable" in message
        assert "admission.minAvailable: relaxed" in message
        assert "--compat volcano" in message
        assert faults_of(obj, relaxed=True) == {}


def test_v2_a_policy_may_name_an_event_twice_but_two_policies_may_not() -> None:
    twice = {"events": ["PodEvicted", "PodFailed", "PodEvicted"], "action": "TerminateJob"}
    assert faults_of(job(role(), policies=[twice])) == {}
    again = {"event": "PodFailed", "action": "AbortJob"}
    assert list(faults_of(job(role(), policies=[twice, again]))) == ["spec.policies[1].event"]


def test_v2_pod_pending_without_a_timeout_is_warned_of() -> None:
    silent = {"event": "PodPending", "action": "AbortJob"}
    on_both = job(role(policies=[silent]), policies=[silent])
    assert [warning.field for warning in warnings(on_both)] == [
        "spec.policies[0].timeout",
        "spec.tasks[0].policies[0].timeout",
    ]
    assert warnings(job(role(), policies=[silent | {"timeout": "5m"}])) == []


def test_d2_a_dependency_with_an_explicit_minimum_of_0_is_accepted() -> None:
    assert faults_of(job(role("a", 2, 0), role("b", 1, 1, dependsOn={"name": ["a"]}))) == {}


CONTAINER = {"name": "c", "image": "busybox"}


def template(*containers: dict[str, Any], **spec: Any) -> Obj:
    return {"spec": {"containers": list(containers), **spec}}


def resources(**amounts: dict[str, str]) -> Obj:
    return template(CONTAINER | {"resources": amounts})


@pytest.mark.parametrize(
    "broken, field",
    [
        (resources(requests={"cpu": "-1"}), "containers[0].resources.requests.cpu"),
        (template({"name": "c"}), "containers[0].image"),
        (template(CONTAINER | {"name": "C_1"}), "containers[0].name"),
        (template(CONTAINER, CONTAINER), "containers[1].name"),
        (resources(requests={"cpu": "2"}, limits={"cpu": "1"}), "containers[0].resources.requests.cpu"),
        (template(CONTAINER, restartPolicy="Sometimes"), "restartPolicy"),
        (
            template(CONTAINER | {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}),
            "containers[0].volumeMounts[0].name",
        ),
        (
            resources(requests={"nvidia.com/gpu": "500m"}, limits={"nvidia.com/gpu": "500m"}),
            "containers[0].resources.requests.nvidia.com/gpu",
        ),
        (template(CONTAINER, tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]), "tolerations[0].value"),
        (template(CONTAINER, tolerations=[{"key": "a", "operator": "Like"}]), "tolerations[0].operator"),
        (template(CONTAINER, tolerations=[{"key": "a", "effect": "NoRun"}]), "tolerations[0].effect"),
        (resources(requests={"nvidia.com/gpu": "1"}), "containers[0].resources.limits.nvidia.com/gpu"),
        (template(), "containers"),
    ],
)
def test_n2_a_template_that_no_api_server_would_accept_is_refused(broken: Obj, field: str) -> None:
    task = {"name": "a", "replicas": 1, "template": broken}
    faults = admit("CREATE", job(task), None, DEFAULT, Settings(strict_templates=True))[1]
    assert f"spec.tasks[0].template.spec.{field}" in [fault.field for fault in faults]


def test_n2_volumes_of_the_job_and_of_its_plugins_may_be_mounted() -> None:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("job-volume-0", "train-svc", "own")]
    task = {
        "name": "a",
        "replicas": 1,
        "template": template(CONTAINER | {"volumeMounts": mounts}, volumes=[{"name": "own"}]),
    }
    assert faults_of(job(task, plugins={"svc": []}, volumes=[{"mountPath": "/x", "volumeClaimName": "x"}])) == {}


@pytest.mark.parametrize(
    "policy", [{"gang": {"minCount": 0}}, {"gang": {"minCount": -1}}, {"gang": {"minCount": 1}, "basic": {}}]
)
def test_g4_a_bad_minimum_of_kubernetes_own_podgroup_is_refused(policy: Obj) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": policy},
    }
    [fault] = admit("CREATE", group, None, DEFAULT)[1]
    assert fault.field.startswith("spec.schedulingPolicy")
    good = group | {"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    assert admit("CREATE", good, None, DEFAULT) == (good, [])


def test_n2_in_files_a_missing_image_is_only_warned_of() -> None:
    task = {"name": "a", "replicas": 1, "template": template({"name": "c"})}
    assert faults_of(job(task)) == {}
    assert [warning.field for warning in warnings(job(task))] == ["spec.tasks[0].template.spec.containers[0].image"]
