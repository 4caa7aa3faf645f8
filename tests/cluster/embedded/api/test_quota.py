from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused
from enbloc.cluster.embedded.api.store import Store
from support.embedded_store import config_map, make_store, pod


def quota(hard: dict[str, str], name: str = "q", **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}}


def used(store: Store, name: str = "q") -> dict[str, str]:
    store.settle()
    found = store.get("ResourceQuota", "default", name)
    assert found is not None
    used: dict[str, str] = found["status"]["used"]
    return used


def asking(name: str, requests: dict[str, str], limits: dict[str, str] | None = None, **spec: Any) -> Obj:
    made = pod(name, **spec)
    made["spec"]["containers"][0]["resources"] = {"requests": requests, **({"limits": limits} if limits else {})}
    return made


def refusal(store: Store, obj: Obj) -> str:
    with pytest.raises(Refused) as caught:
        store.create(obj)
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    return caught.value.message


def test_the_refusal_has_the_numbers() -> None:
    store, _ = make_store()
    store.create(quota({"cpu": "3", "pods": "10"}))
    store.create(pod("a", cpu="3"))
    message = refusal(store, pod("b", cpu="1"))
    assert message.endswith("exceeded quota: q, requested: cpu=1, used: cpu=3, limited: cpu=3")
    assert used(store) == {"cpu": "3", "pods": "1"}


@pytest.mark.parametrize(
    ("hard", "first", "second"),
    [
        ({"pods": "1"}, pod("a"), pod("b")),
        ({"count/pods": "1"}, pod("a"), pod("b")),
        ({"requests.memory": "1Gi"}, asking("a", {"memory": "1Gi"}), asking("b", {"memory": "1"})),
        ({"limits.cpu": "2"}, asking("a", {}, {"cpu": "2"}), asking("b", {}, {"cpu": "1m"})),
        (
            {"requests.nvidia.com/gpu": "1"},
            asking("a", {"nvidia.com/gpu": "1"}),
            asking("b", {"nvidia.com/gpu": "1"}),
        ),
        ({"count/configmaps": "1"}, config_map("a"), config_map("b")),
        ({"configmaps": "1"}, config_map("a"), config_map("b")),
        (
            {"count/jobs.batch.volcano.sh": "0"},
            config_map("a"),
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": "j"},
                "spec": {"tasks": []},
            },
        ),
    ],
)
def test_what_is_counted(hard: dict[str, str], first: Obj, second: Obj) -> None:
    store, _ = make_store()
    store.create(quota(hard))
    store.create(first)
    assert "exceeded quota" in refusal(store, second)
    (key,) = hard
    assert used(store)[key] == hard[key]


def test_what_does_not_ask_for_it_passes() -> None:
    store, _ = make_store()
    store.create(quota({"requests.nvidia.com/gpu": "0"}))
    store.create(pod("a", cpu="1"))


def test_finished_and_deleted_pods_give_back() -> None:
    store, _ = make_store()
    store.create(quota({"requests.cpu": "2", "pods": "2"}))
    for name in ("a", "b"):
        store.create(pod(name, cpu="1"))
        store.bind("default", name, "", "n1")
    store.patch(Ref("Pod", "default", "a"), {"status": {"phase": "Succeeded"}}, "status")
    assert used(store) == {"pods": "1", "requests.cpu": "1"}
    store.delete(Ref("Pod", "default", "b"))
    assert used(store)["pods"] == "1"  # still on its node
    store.remove_pod("default", "b")
    store.delete(Ref("Pod", "default", "a"))
    assert used(store) == {"pods": "0", "requests.cpu": "0"}


def test_containers_must_say_what_a_quota_limits() -> None:
    store, _ = make_store()
    store.create(quota({"cpu": "3", "limits.memory": "1Gi"}))
    message = refusal(store, pod("a"))
    assert message.endswith("failed quota: q: must specify cpu for: main; limits.memory for: main")


@pytest.mark.parametrize(
    ("spec", "inside", "outside"),
    [
        ({"scopes": ["BestEffort"]}, pod("a"), pod("b", cpu="1")),
        ({"scopes": ["NotBestEffort"]}, pod("a", cpu="1"), pod("b")),
        ({"scopes": ["Terminating"]}, pod("a", activeDeadlineSeconds=5), pod("b")),
        ({"scopes": ["NotTerminating"]}, pod("a"), pod("b", activeDeadlineSeconds=5)),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                }
            },
            pod("a", priorityClassName="high"),
            pod("b"),
        ),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
            pod("a"),
            pod("b", priorityClassName="high"),
        ),
    ],
)
def test_scopes(spec: Any, inside: Obj, outside: Obj) -> None:
    store, _ = make_store()
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1}
    store.create(high)
    store.create(quota({"pods": "0"}, **spec))
    refusal(store, inside)
    store.create(outside)
    assert used(store) == {"pods": "0"}


@pytest.mark.parametrize("selector", ["x", {"matchExpressions": "x"}, {"matchExpressions": ["x", {"values": 3}]}])
def test_a_scope_selector_that_cannot_be_read_does_no_harm(selector: Any) -> None:
    store, _ = make_store()
    for obj in (quota({"pods": "9"}, scopeSelector=selector), pod()):
        with contextlib.suppress(Refused):
            store.create(obj)
    store.settle()


def test_a_raised_quota_lets_more_in_and_says_so() -> None:
    store, _ = make_store()
    store.create(quota({"pods": "1"}))
    store.create(pod("a"))
    refusal(store, pod("b"))
    store.patch(Ref("ResourceQuota", "default", "q"), {"spec": {"hard": {"pods": "2"}}})
    store.create(pod("b"))
    assert used(store) == {"pods": "2"}
    store.delete(Ref("ResourceQuota", "default", "q"))
    store.create(pod("c"))


def test_settling_is_silent_if_nothing_changed() -> None:
    store, _ = make_store()
    store.create(quota({"pods": "1"}))
    store.collect_garbage()  # settles too
    version = store.version
    assert store.settle() == 0
    store.create(pod("a"))
    store.remove_pod("default", "a")
    store.settle()
    assert store.version == version + 2  # came and went: no word about the quota


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["create", "finish", "delete", "quota"]), st.sampled_from("abcd")), max_size=25)
)
def test_use_kept_step_by_step_equals_use_counted_anew(steps: list[tuple[str, str]]) -> None:
    store, _ = make_store()
    hard = {"pods": "3", "requests.cpu": "3", "count/pods": "4", "count/resourcequotas": "9"}
    store.create(quota(hard))
    for step, name in steps:
        try:
            match step:
                case "create":
                    store.create(pod(name, cpu="1"))
                case "finish":
                    store.patch(Ref("Pod", "default", name), {"status": {"phase": "Failed"}}, "status")
                case "delete":
                    store.delete(Ref("Pod", "default", name))
                case "quota":
                    store.create(quota({"pods": "9"}, name))
        except Refused:
            pass
    kept = used(store)
    everything = list(store.objects())
    alive = [o for o in everything if o["kind"] == "Pod" and o["status"]["phase"] != "Failed"]
    assert kept == {
        "pods": str(len(alive)),
        "requests.cpu": str(len(alive)),
        "count/pods": str(sum(o["kind"] == "Pod" for o in everything)),
        "count/resourcequotas": str(sum(o["kind"] == "ResourceQuota" for o in everything)),
    }
