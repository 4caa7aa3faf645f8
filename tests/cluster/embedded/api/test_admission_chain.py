from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.admission import PRIORITY_CLASS, Operation, bootstrap
from enbloc.cluster.embedded.api.store import Store
from support.embedded_store import POD, config_map, make_store, node, pod


def priority_class(name: str, value: int, **more: Any) -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def refused(store: Store, obj: Obj) -> Refused:
    with pytest.raises(Refused) as caught:
        store.create(obj)
    return caught.value


def test_a_namespace_must_exist_unless_it_is_made_when_needed() -> None:
    strict, _ = make_store(auto_namespaces=False)
    why = refused(strict, config_map(namespace="team"))
    assert (why.code, why.reason, why.message) == (404, "NotFound", 'namespaces "team" not found')
    bootstrap(strict)
    strict.create(config_map())
    lenient, _ = make_store()
    lenient.create(config_map(namespace="team"))
    assert lenient.get("Namespace", "", "team") is not None


def test_a_namespace_that_was_made_when_needed_can_be_taken_over_once() -> None:
    store, _ = make_store()
    store.create(config_map(namespace="team"))
    made = store.get("Namespace", "", "team")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"a": "b"}}}
    taken = store.create(namespace)
    assert made is not None
    assert taken["metadata"]["uid"] == made["metadata"]["uid"]
    assert taken["metadata"]["labels"] == {"a": "b"}
    assert refused(store, namespace).reason == "AlreadyExists"


def test_bootstrap_objects_are_ordinary_ones_where_namespaces_must_exist() -> None:
    store, _ = make_store(auto_namespaces=False)
    bootstrap(store)
    before = store.version
    bootstrap(store)
    assert store.version == before
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    assert refused(store, namespace).reason == "AlreadyExists"
    assert [obj["value"] for obj in store.list(PRIORITY_CLASS)[0]] == [2_000_000_000, 2_000_001_000]


def test_faults_name_the_field() -> None:
    store, _ = make_store()
    bad = pod()
    bad["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "lots"}}
    why = refused(store, bad)
    assert why.code == 422
    assert why.faults[0].field == "spec.containers[0].resources.requests.cpu"
    assert "spec.containers[0].resources.requests.cpu" in why.message


def test_annotations_have_256_kib_together() -> None:
    """As in Kubernetes: keys and values of all of them, in bytes, on create and on update."""
    store, _ = make_store()
    message = "metadata.annotations: Too long: may not be more than 262144 bytes"
    for text in ("x" * (256 * 1024 - 2), "ä" * (128 * 1024 - 1)):
        made = store.create(config_map(annotations={"aa": text}))
        for larger in ({"aa": text + "x"}, {"b": ""}):
            with pytest.raises(Refused) as caught:
                store.patch(Ref("ConfigMap", "default", "cm"), {"metadata": {"annotations": larger}})
            assert caught.value.code == 422
            assert message in caught.value.message
        assert store.get("ConfigMap", "default", "cm") is made
        store.delete(Ref("ConfigMap", "default", "cm"))
    for text in ("x" * (256 * 1024 - 1), "ä" * (128 * 1024)):
        why = refused(store, pod("p", annotations={"aa": text}))
        assert message in why.message


def test_a_negative_request_is_refused() -> None:
    store, _ = make_store()
    why = refused(store, pod(cpu="-1"))
    assert why.faults[0].field == "spec.containers[0].resources.requests.cpu"


def test_pod_defaults() -> None:
    store, _ = make_store()
    made = store.create(pod())
    assert made["spec"]["schedulerName"] == "default-scheduler"
    assert made["spec"]["restartPolicy"] == "Always"
    assert made["spec"]["terminationGracePeriodSeconds"] == 30
    assert made["spec"]["priority"] == 0
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    kept = store.create({**pod("q", restartPolicy="Never"), "status": {"phase": "Running"}})
    assert kept["spec"]["restartPolicy"] == "Never"
    assert kept["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("resources", "requests", "qos"),
    [
        ({}, None, "BestEffort"),
        ({"requests": {"cpu": "1"}}, {"cpu": "1"}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        (
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            {"cpu": "500m", "memory": "1Gi"},
            "Burstable",
        ),
        ({"limits": {"cpu": "1"}}, {"cpu": "1"}, "Burstable"),
    ],
)
def test_limits_replace_missing_requests(resources: Any, requests: Any, qos: str) -> None:
    store, _ = make_store()
    asked = pod()
    asked["spec"]["containers"][0]["resources"] = resources
    made = store.create(asked)
    assert made["spec"]["containers"][0]["resources"].get("requests") == requests
    assert made["status"]["qosClass"] == qos


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, (0, "PreemptLowerPriority", None)),
        ({"priorityClassName": "high"}, (1000, "Never", "high")),
        ({"priorityClassName": "high", "priority": 1000}, (1000, "Never", "high")),
        (
            {"priorityClassName": "system-node-critical"},
            (2_000_001_000, "PreemptLowerPriority", "system-node-critical"),
        ),
        ({"priorityClassName": "nobody"}, None),
        ({"priority": 5}, None),
        ({"priorityClassName": "high", "priority": 5}, None),
        ({"priorityClassName": "high", "preemptionPolicy": "PreemptLowerPriority"}, None),
    ],
)
def test_priority_comes_from_the_class(spec: dict[str, Any], expected: Any) -> None:
    store, _ = make_store()
    store.create(priority_class("high", 1000, preemptionPolicy="Never"))
    if expected is None:
        why = refused(store, pod(**spec))
        assert (why.code, why.reason) == (403, "Forbidden")
        return
    made = store.create(pod(**spec))["spec"]
    assert (made["priority"], made["preemptionPolicy"], made.get("priorityClassName")) == expected


def test_a_global_default_class_counts_where_none_is_named() -> None:
    store, _ = make_store()
    store.create(priority_class("usual", 7, globalDefault=True))
    made = store.create(pod())["spec"]
    assert (made["priority"], made["priorityClassName"]) == (7, "usual")


def test_hooks_of_the_caller_run_after_ours_and_on_updates_but_not_for_the_status() -> None:
    seen: list[tuple[str, Any]] = []

    def hook(operation: Operation, obj: Obj, old: Obj | None) -> Obj:
        if obj["kind"] != "Pod":
            return obj
        seen.append((operation, obj["spec"].get("schedulerName")))
        if obj["metadata"]["name"] == "bad":
            raise Refused(400, "BadRequest", "no")
        return {**obj, "metadata": {**obj["metadata"], "labels": {"seen": "yes"}}}

    store, _ = make_store(admission=[hook])
    assert store.create(pod())["metadata"]["labels"] == {"seen": "yes"}
    store.patch(POD, {"metadata": {"annotations": {"a": "b"}}})
    store.patch(POD, {"status": {"phase": "Running"}}, "status")
    store.bind("default", "p", "", "n1")
    assert seen == [("CREATE", "default-scheduler"), ("UPDATE", "default-scheduler")]
    assert refused(store, pod("bad")).code == 400
    assert store.get("Pod", "default", "bad") is None


def test_an_update_is_read_again_only_where_it_changed() -> None:
    store, _ = make_store()
    store.create(node())
    with pytest.raises(Refused) as caught:
        store.patch(Ref("Node", "", "n1"), {"spec": {"taints": "x"}})
    assert caught.value.faults[0].field == "spec.taints"
    with pytest.raises(Refused) as caught:
        store.patch(Ref("Node", "", "n1"), {"metadata": {"labels": {"a": 1}}})
    assert "labels" in caught.value.faults[0].field


@pytest.mark.parametrize(
    ("amounts", "faults"),
    [
        ({"cpu": "-3"}, {"cpu": "must be greater than or equal to 0"}),
        ({"pods": "1.5"}, {"pods": "must be an integer"}),
        ({"nvidia.com/gpu": "500m", "memory": "-1"}, {"nvidia.com/gpu": "integer", "memory": "greater"}),
        ({"cpu": "500m", "memory": "1.5Gi", "pods": "110", "nvidia.com/gpu": "8"}, {}),
    ],
)
@pytest.mark.parametrize("field", ["capacity", "allocatable"])
def test_what_a_node_has_is_not_negative_nor_part_of_a_device(
    field: str, amounts: dict[str, str], faults: dict[str, str]
) -> None:
    store, _ = make_store()
    machine: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {field: amounts}}
    if not faults:
        store.create(machine)
        return
    why = refused(store, machine)
    assert {one.field for one in why.faults} == {f"status.{field}.{name}" for name in faults}
    assert all(text in why.message for text in faults.values())
