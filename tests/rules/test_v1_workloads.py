"""V1: `scheduling.volcano.sh/group-min-member` on the owner of ordinary pods makes them a gang."""

from __future__ import annotations

import pytest

from enbloc.api.meta import Obj
from support import manifests as m
from support import racks as r
from support.simulation import simulate

MODE, TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
KINDS = [("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("v1", "ReplicationController")]


def owner(
    minimum: str | None, api_version: str = "apps/v1", kind: str = "ReplicaSet", at: str | None = None, pods: int = 3
) -> Obj:
    annotations = {MIN_MEMBER: minimum} if minimum else {}
    annotations |= {"sim.enbloc.dev/at": at} if at else {}
    metadata = {"name": "web", "namespace": "default", "uid": "owner-1", "annotations": annotations}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec_of(kind, pods)}


def spec_of(kind: str, pods: int) -> Obj:
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    template: Obj = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    if kind == "Job":
        template["spec"]["restartPolicy"] = "Never"
        return {"parallelism": pods, "completions": pods, "template": template}
    selector = {"app": "web"} if kind == "ReplicationController" else {"matchLabels": {"app": "web"}}
    spec = {"replicas": pods, "selector": selector, "template": template}
    return {**spec, "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else spec


def owned(count: int, api_version: str = "apps/v1", kind: str = "ReplicaSet") -> list[Obj]:
    """Pods that no controller here made."""
    found = []
    for index in range(count):
        made = m.pod(f"web-{index}")
        reference = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": "owner-1", "controller": True}
        made["metadata"]["ownerReferences"] = [reference]
        found.append(made)
    return found


@pytest.mark.parametrize("api_version, kind", KINDS)
def test_v1_pods_wait_for_the_minimum_of_their_owner(api_version: str, kind: str) -> None:
    pods = owned(3, api_version, kind) if kind == "ReplicationController" else []
    answer = simulate(m.node("n", 8), owner("6", api_version, kind), pods)
    assert not answer.bound("web-")
    assert "3 of 6" in answer.why("default/web")
    answer = simulate(m.node("n", 8), owner("3", api_version, kind), pods)
    assert answer.times("web-") == [0.0] * 3


def test_v1_all_or_nothing() -> None:
    answer = simulate(m.node("n", 2), m.node("late", 4, at="30s"), owner("3"))
    assert answer.times("web-") == [30.0] * 3


def test_v1_an_owner_without_the_annotation_changes_nothing() -> None:
    answer = simulate(m.node("n", 2), owner(None))
    assert len(answer.bound("web-")) == 2


def test_v1_an_owner_that_is_observed_after_its_pods_counts_for_those_that_wait() -> None:
    answer = simulate(m.node("n", 2, at="20s"), m.node("more", 2, at="40s"), owned(4), owner("4", at="10s", pods=4))
    assert answer.times("web-") == [40.0] * 4


def test_v1_a_bad_value_is_warned_of_and_does_not_count() -> None:
    answer = simulate(m.node("n", 2), owner("many"))
    assert len(answer.bound("web-")) == 2
    assert any(MIN_MEMBER in text for text in answer.warnings())


@pytest.mark.parametrize("minimum", [None, "3"])
def test_v1_t1_the_topology_of_the_owner_is_that_of_its_pods(minimum: str | None) -> None:
    """One HyperNode of tier 1 holds two pods, the other four; without `group-min-member` two in one are enough."""
    near = owner(minimum, pods=4)
    near["metadata"]["annotations"] |= {MODE: "hard", TIER: "1"}
    trees = [r.hyper_node("ha", 1, "/^a-/"), r.hyper_node("hb", 1, "/^b-/")]
    answer = simulate(m.node("a-0", 2), m.node("b-0", 3), m.node("b-1", 1), *trees, near)
    assert set(answer.nodes("web-").values()) == ({"b-0", "b-1"} if minimum else {"a-0"})
    answer = simulate(m.node("a-0", 2), m.node("b-0", 2), *trees, near)
    assert len(answer.bound("web-")) == (0 if minimum else 2)


def test_v1_the_gang_survives_a_restart_of_the_scheduler() -> None:
    answer = simulate(m.node("n", 2), m.node("late", 4, at="30s"), owner("3"), m.restart("10s"))
    assert answer.times("web-") == [30.0] * 3
