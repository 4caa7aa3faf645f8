from __future__ import annotations

from typing import Any

import pytest

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from support.embedded_store import CM, POD, config_map, make_store, owner, pod

CHILD = Ref("ConfigMap", "default", "child")


def child(*owners: dict[str, Any], name: str = "child") -> Obj:
    return config_map(name, ownerReferences=list(owners))


def test_dependants_go_with_their_last_owner() -> None:
    store, _ = make_store()
    first, second = store.create(config_map("one")), store.create(config_map("two"))
    made = store.create(child(owner(first), owner(second)))
    store.create(child(owner(made), name="grandchild"))
    store.delete(Ref("ConfigMap", "default", "one"))
    store.collect_garbage()
    left = store.get(*CHILD)
    assert left is not None
    assert left["metadata"]["ownerReferences"] == [owner(second)]
    store.delete(Ref("ConfigMap", "default", "two"))
    assert store.get(*CHILD) is not None  # not before it is said that all has happened
    assert store.collect_garbage() == 2
    assert store.list("ConfigMap")[0] == []


def test_owners_are_distinguished_by_uid() -> None:
    store, _ = make_store()
    made = store.create(config_map())
    store.create(child(owner(made)))
    store.delete(CM)
    store.create(config_map())  # a namesake is no owner
    store.collect_garbage()
    assert store.get(*CHILD) is None


def test_an_owner_may_come_after_its_dependants_in_the_same_instant() -> None:
    store, _ = make_store()
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "cm", "uid": "u-cm"}
    store.create(child(reference))
    store.create(config_map(uid="u-cm"))
    store.collect_garbage()
    assert store.get(*CHILD) is not None


@pytest.mark.parametrize(
    ("kind", "api_version", "stays"), [("ConfigMap", "v1", False), ("CRDJob", "x.io/v1", True), ("Pod", "", True)]
)
def test_an_owner_that_never_was_here(kind: str, api_version: str, stays: bool) -> None:
    store, _ = make_store()
    store.create(child({"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u-o"}))
    store.collect_garbage()
    assert (store.get(*CHILD) is not None) == stays


def test_an_owner_of_an_unknown_kind_that_was_here_counts() -> None:
    store, _ = make_store()
    job = store.create({"apiVersion": "x.io/v1", "kind": "CRDJob", "metadata": {"name": "j", "namespace": "default"}})
    store.create(child(owner(job)))
    store.delete(Ref("CRDJob.x.io", "default", "j"))
    store.collect_garbage()
    assert store.get(*CHILD) is None


def test_an_unknown_owner_is_looked_up_once_its_kind_is_served() -> None:
    store, _ = make_store()
    store.create(child({"apiVersion": "x.io/v1", "kind": "CRDJob", "name": "o", "uid": "u-o"}))
    store.collect_garbage()
    store.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "crdjobs.x.io"},
            "spec": {
                "group": "x.io",
                "scope": "Namespaced",
                "names": {"kind": "CRDJob", "plural": "crdjobs"},
                "versions": [{"name": "v1"}],
            },
        }
    )
    store.collect_garbage()
    assert store.get(*CHILD) is None


def test_foreground_waits_for_dependants() -> None:
    store, _ = make_store()
    made = store.create(config_map())
    running = pod()
    running["metadata"]["ownerReferences"] = [owner(made)]
    store.create(running)
    store.bind("default", "p", "", "n1")
    store.delete(CM, propagation="Foreground")
    store.collect_garbage()
    waiting = store.get(*CM)
    assert waiting is not None
    assert waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    store.remove_pod("default", "p")
    store.collect_garbage()
    assert store.get(*CM) is None


def test_orphans_stay() -> None:
    store, _ = make_store()
    store.create(child(owner(store.create(config_map()))))
    store.delete(CM, propagation="Orphan")
    store.collect_garbage()
    orphan = store.get(*CHILD)
    assert orphan is not None
    assert "ownerReferences" not in orphan["metadata"]


def test_a_running_dependant_is_deleted_gracefully() -> None:
    store, _ = make_store()
    made = store.create(config_map())
    running = pod()
    running["metadata"]["ownerReferences"] = [owner(made)]
    store.create(running)
    store.bind("default", "p", "", "n1")
    store.delete(CM)
    store.collect_garbage()
    leaving = store.get(*POD)
    assert leaving is not None
    assert leaving["metadata"]["deletionTimestamp"]


def test_a_namespace_goes_with_its_contents() -> None:
    store, _ = make_store()
    store.create(config_map("x", namespace="team", finalizers=["x.io/f"]))
    store.create(config_map("y", namespace="team"))
    store.delete(Ref("Namespace", "", "team"))
    store.collect_garbage()
    assert [name for _, _, name in (ref for ref, _ in store.contents("team"))] == ["x"]
    with pytest.raises(Refused) as caught:
        store.create(config_map("z", namespace="team"))
    assert caught.value.code == 403
    store.patch(Ref("ConfigMap", "team", "x"), {"metadata": {"finalizers": None}})
    store.collect_garbage()
    assert store.get("Namespace", "", "team") is None


def test_a_namespace_may_have_finalizers_of_its_own() -> None:
    store, _ = make_store()
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "finalizers": ["x.io/f"]}})
    store.delete(Ref("Namespace", "", "team"))
    assert store.collect_garbage() == 0
    store.patch(Ref("Namespace", "", "team"), {"metadata": {"finalizers": None}})
    store.collect_garbage()
    assert store.get("Namespace", "", "team") is None


def test_what_admission_protects_stays() -> None:
    def guard(obj: Obj) -> None:
        if obj["metadata"]["name"] == "child":
            raise Refused(403, "Forbidden", "no")

    store, _ = make_store(deletion=[guard])
    store.create(child(owner(store.create(config_map()))))
    store.delete(CM)
    store.collect_garbage()
    assert store.get(*CHILD) is not None
