from __future__ import annotations

import re
from typing import Any

import pytest

from enbloc.api.meta import Ref, condition_of
from enbloc.api.writes import BindPod, Create, Delete, EmitEvent, EvictPod, Patch, Refused
from enbloc.cluster.embedded.api.events import EventIndex
from enbloc.cluster.events import event_key
from support.embedded_store import CM, POD, config_map, make_store, node, pod


def refusal(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        call(*args, **kwargs)
    return caught.value.code, caught.value.reason


def test_create_sets_what_the_server_sets() -> None:
    store, _ = make_store()
    made = store.create(
        config_map(
            creationTimestamp="1999-01-01T00:00:00Z", deletionTimestamp="2020-01-01T00:00:00Z", resourceVersion="9"
        )
    )
    metadata = made["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert metadata["generation"] == 1
    assert metadata["resourceVersion"] == str(store.version)
    assert "deletionTimestamp" not in metadata
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", metadata["uid"])


def test_create_keeps_a_given_uid_and_status() -> None:
    store, _ = make_store()
    made = store.create({**node(), "metadata": {"name": "n1", "uid": "u-1"}})
    assert made["metadata"]["uid"] == "u-1"
    assert made["status"]["allocatable"]["cpu"] == "64"


def test_same_history_same_names_and_uids() -> None:
    def run() -> list[Any]:
        store, _ = make_store()
        for _ in range(20):
            store.create({**config_map(), "metadata": {"generateName": "cm-"}})
        return list(store.objects())

    first = run()
    assert first == run()
    assert len({obj["metadata"]["name"] for obj in first}) == len(first)


@pytest.mark.parametrize(
    ("obj", "namespace"),
    [
        (config_map(), "default"),
        (config_map(namespace="team"), "team"),
        ({**node(), "metadata": {"name": "n", "namespace": "team"}}, ""),
        ({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}}, ""),
        ({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "team"}}, "team"),
    ],
)
def test_scope(obj: Any, namespace: str) -> None:
    store, _ = make_store()
    assert store.create(obj)["metadata"].get("namespace", "") == namespace


def crd(scope: str, subresources: Any = None) -> Any:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": {
            "group": "x.io",
            "scope": scope,
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [{"name": "v1", "served": True, "storage": True, "subresources": subresources}],
        },
    }


def test_a_stored_crd_decides_scope_and_status() -> None:
    store, _ = make_store()
    store.create(crd("Namespaced", {"status": {}}))
    made = store.create({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"a": 1}})
    assert made["metadata"]["namespace"] == "default"
    ref = Ref("Thing.x.io", "default", "t")
    assert "status" not in store.patch(ref, {"status": {"ok": True}})
    assert store.patch(ref, {"status": {"ok": True}}, "status")["status"] == {"ok": True}
    store.delete(Ref("CustomResourceDefinition.apiextensions.k8s.io", "", "things.x.io"))
    assert store.discovery.find("Thing.x.io") is None


def test_get_and_list_are_sorted() -> None:
    store, _ = make_store()
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        store.create(config_map(name, namespace=namespace))
    names = [(o["metadata"]["namespace"], o["metadata"]["name"]) for o in store.list("ConfigMap")[0]]
    assert names == [("a", "y"), ("a", "z"), ("b", "x")]
    assert [o["metadata"]["name"] for o in store.list("ConfigMap", "b")[0]] == ["x"]
    assert store.list("Nothing") == ([], store.version)
    assert store.get("ConfigMap", "a", "nobody") is None
    assert store.kinds() == ["ConfigMap", "Namespace"]


def test_refusals_have_kubernetes_codes() -> None:
    store, _ = make_store()
    made = store.create(config_map())
    assert refusal(store.create, config_map()) == (409, "AlreadyExists")
    assert refusal(store.patch, Ref("ConfigMap", "default", "x"), {}) == (404, "NotFound")
    assert refusal(store.patch, CM, {"data": {}}, uid="other") == (409, "Conflict")
    assert refusal(store.patch, CM, {"data": {}}, resource_version="1") == (409, "Conflict")
    assert refusal(store.patch, CM, {"metadata": {"resourceVersion": "1"}}) == (409, "Conflict")
    assert refusal(store.patch, CM, {"metadata": {"name": "y"}}) == (400, "BadRequest")
    assert refusal(store.patch, CM, {"kind": "Secret"}) == (400, "BadRequest")
    assert refusal(store.patch, CM, []) == (400, "BadRequest")
    assert refusal(store.replace, {**made, "metadata": {**made["metadata"], "resourceVersion": "1"}}) == (
        409,
        "Conflict",
    )
    assert refusal(store.delete, Ref("Pod", "default", "x")) == (404, "NotFound")
    assert refusal(store.delete, CM, uid="other") == (409, "Conflict")


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": 3}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ["x"]}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": 7}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "A_B"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "UPPER"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "ownerReferences": ["x"]}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": {}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "status": "fine"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": "x"},
    ],
)
def test_what_is_no_object_is_refused(bad: Any) -> None:
    store, _ = make_store()
    assert refusal(store.create, bad) == (422, "Invalid")
    assert not list(store.objects())


def test_patch_and_generation() -> None:
    store, _ = make_store()
    made = store.create(pod())
    labelled = store.patch(POD, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    assert labelled["spec"] is made["spec"]
    assert store.patch(POD, {"spec": {"containers": [{"name": "main", "image": "new"}]}})["metadata"]["generation"] == 2
    assert store.patch(POD, {"status": {"phase": "Running"}}, "status")["metadata"]["generation"] == 2


def test_a_patch_that_changes_nothing_is_silent() -> None:
    store, _ = make_store()
    made = store.create(pod())
    before = store.version
    for patch, subresource in (
        ({}, ""),
        ({"metadata": {"name": "p"}}, ""),
        ({"metadata": {"labels": {"gone": None}}}, "status"),
        ({"spec": made["spec"]}, ""),
        ({"status": {"phase": "Running"}}, ""),  # the status is not touched this way
        ({"status": {"phase": "Pending"}}, "status"),
        ({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}}, "status"),
    ):
        assert store.patch(POD, patch, subresource) is made
    assert store.version == before


def test_identity_cannot_be_patched() -> None:
    store, _ = make_store()
    made = store.create(config_map())
    same = store.patch(CM, {"metadata": {"creationTimestamp": "x", "deletionTimestamp": "y", "generation": 7}})
    assert same is made
    wiped = store.patch(CM, {"metadata": None})
    assert wiped["metadata"] == made["metadata"]


def test_a_bad_status_is_refused() -> None:
    store, _ = make_store()
    store.create(node())
    ref = Ref("Node", "", "n1")
    assert refusal(store.patch, ref, {"status": {"conditions": "x"}}, "status") == (422, "Invalid")
    assert refusal(store.patch, ref, {"status": {"allocatable": {"cpu": "much"}}}, "status") == (422, "Invalid")


def test_replace_keeps_identity_and_drops_what_is_missing() -> None:
    store, _ = make_store()
    made = store.create(config_map(labels={"a": "b"}))
    new = store.replace({**config_map(), "data": {"b": "2"}})
    assert new["data"] == {"b": "2"}
    assert "labels" not in new["metadata"]
    assert new["metadata"]["uid"] == made["metadata"]["uid"]
    assert refusal(store.replace, config_map("nobody")) == (404, "NotFound")


TOLERATION = {"key": "a", "operator": "Exists"}


@pytest.mark.parametrize(
    ("spec", "patch", "allowed"),
    [
        ({}, {"containers": [{"name": "main", "image": "new"}]}, True),
        ({}, {"containers": [{"name": "other", "image": "busybox"}]}, False),
        ({}, {"activeDeadlineSeconds": 5}, True),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 9}, False),
        ({"tolerations": [TOLERATION]}, {"tolerations": [TOLERATION, {"key": "b"}]}, True),
        ({"tolerations": [TOLERATION]}, {"tolerations": []}, False),
        ({"schedulingGates": [{"name": "g"}]}, {"schedulingGates": []}, True),
        ({}, {"schedulingGates": [{"name": "g"}]}, False),
        ({}, {"nodeName": "n1"}, False),
        ({}, {"schedulerName": "x"}, False),
        ({}, {"nodeSelector": {"a": "b"}}, False),
        ({"schedulingGates": [{"name": "g"}]}, {"nodeSelector": {"a": "b"}}, True),
    ],
)
def test_what_of_a_pod_may_change(spec: Any, patch: Any, allowed: bool) -> None:
    store, _ = make_store()
    store.create(pod(**spec))
    if allowed:
        assert store.patch(POD, {"spec": patch})["metadata"]["generation"] == 2
    else:
        assert refusal(store.patch, POD, {"spec": patch}) == (422, "Invalid")


def test_bind() -> None:
    store, _ = make_store()
    made = store.create(pod())
    bound = store.bind("default", "p", made["metadata"]["uid"], "n1", {"mark": "1"})
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"] == {"mark": "1"}
    scheduled = condition_of(bound, "PodScheduled")
    assert scheduled is not None
    assert scheduled["status"] == "True"
    assert refusal(store.bind, "default", "p", "", "n2", {}) == (409, "Conflict")


def test_bind_refuses_other_incarnations_gated_and_terminating_pods() -> None:
    store, _ = make_store()
    store.create(pod())
    assert refusal(store.bind, "default", "p", "other", "n1") == (409, "Conflict")
    assert refusal(store.bind, "default", "nobody", "", "n1") == (404, "NotFound")
    store.create(pod("gated", schedulingGates=[{"name": "g"}]))
    assert refusal(store.bind, "default", "gated", "", "n1") == (409, "Conflict")
    leaving = pod("leaving")
    leaving["metadata"]["finalizers"] = ["x.io/wait"]
    store.create(leaving)
    store.delete(Ref("Pod", "default", "leaving"))
    assert refusal(store.bind, "default", "leaving", "", "n1") == (409, "Conflict")


def test_delete_waits_for_the_node_only_where_one_runs_the_pod() -> None:
    store, _ = make_store()
    store.create(pod())
    store.delete(POD)
    assert store.get(*POD) is None
    store.create(pod(terminationGracePeriodSeconds=7))
    store.bind("default", "p", "", "n1")
    leaving = store.delete(POD)
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 7
    assert leaving["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:07Z"
    assert store.delete(POD) is leaving  # again: nothing new
    assert store.delete(POD, grace_s=3)["metadata"]["deletionGracePeriodSeconds"] == 3
    store.remove_pod("default", "p", "other")
    assert store.get(*POD) is not None
    store.remove_pod("default", "p")
    store.remove_pod("default", "p")
    assert store.get(*POD) is None


def test_a_finished_pod_goes_at_once() -> None:
    store, _ = make_store()
    store.create(pod())
    store.bind("default", "p", "", "n1")
    store.patch(POD, {"status": {"phase": "Succeeded"}}, "status")
    store.delete(POD)
    assert store.get(*POD) is None


def test_an_endless_grace_period_does_no_harm() -> None:
    store, _ = make_store()
    store.create(pod(terminationGracePeriodSeconds=10**15))
    store.bind("default", "p", "", "n1")
    assert store.delete(POD)["metadata"]["deletionTimestamp"] < "9999"


def test_finalizers_hold_an_object() -> None:
    store, _ = make_store()
    store.create(config_map(finalizers=["x.io/a", "x.io/b"]))
    store.delete(CM)
    held = store.patch(CM, {"metadata": {"finalizers": ["x.io/b"]}})
    assert held["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    store.patch(CM, {"metadata": {"finalizers": None}})
    assert store.get(*CM) is None


def test_deletion_hooks_may_refuse() -> None:
    def guard(obj: Any) -> None:
        raise Refused(403, "Forbidden", "no")

    store, _ = make_store(deletion=[guard])
    store.create(config_map())
    assert refusal(store.delete, CM) == (403, "Forbidden")
    assert store.get(*CM) is not None


def test_evict_marks_and_deletes() -> None:
    store, _ = make_store()
    store.create(pod())
    store.bind("default", "p", "", "n1")
    gone = store.evict("default", "p", "", "Preempted", "for a/b")
    target = condition_of(gone, "DisruptionTarget")
    assert target is not None
    assert (target["status"], target["reason"], target["message"]) == ("True", "Preempted", "for a/b")
    assert gone["metadata"]["deletionTimestamp"]


def said(message: str = "m", ref: Ref = POD, uid: str = "u") -> EmitEvent:
    return EmitEvent(ref, uid, "Warning", "Bad", message)


def test_events_repeat_by_count() -> None:
    store, clock = make_store()
    first = store.emit(said())
    clock.pass_s(5)
    second = store.emit(said())
    store.emit(said("other"))
    assert first["metadata"]["name"] == second["metadata"]["name"]
    assert (second["count"], second["firstTimestamp"], second["lastTimestamp"]) == (
        2,
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:05Z",
    )
    assert len(store.list("Event")[0]) == 2
    assert store.emit(said(ref=Ref("Node", "", "n1")))["metadata"]["namespace"] == "default"


def test_an_event_that_was_deleted_is_written_again() -> None:
    store, _ = make_store()
    first = store.emit(said())
    store.delete(Ref("Event", "default", first["metadata"]["name"]))
    assert store.emit(said())["count"] == 1


def test_events_are_bounded_per_object_and_in_all() -> None:
    store, _ = make_store()
    for number in range(200):
        store.emit(said(str(number)))
    assert sorted(int(e["message"]) for e in store.list("Event")[0]) == list(range(136, 200))

    book = EventIndex(per_object=2, in_total=3)
    dropped = []
    for number in range(6):
        dropped += book.add(event_key(said(str(number), uid=f"u{number // 2}")), "default", "p")[1]
    assert len(dropped) == 3
    assert book.find(event_key(said("5", uid="u2"))) is not None


def test_execute_carries_out_every_kind_of_write() -> None:
    store, _ = make_store()
    assert store.execute(Create(pod())) == store.get(*POD)
    store.execute(Patch(POD, {"metadata": {"labels": {"a": "b"}}}))
    store.execute(BindPod("default", "p", "", "n1"))
    store.execute(EvictPod("default", "p", "", "r", "m"))
    store.execute(EmitEvent(POD, "", "Normal", "r", "m"))
    store.execute(Delete(POD, grace_s=0))
    assert store.get(*POD) is None
    assert len(store.list("Event")[0]) == 1
