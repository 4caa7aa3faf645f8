"""Volumes that pin pods to nodes."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from enbloc.engine.core.filters.stateful.exclusive_claims import REASON, ExclusiveClaims
from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeFacts, NodeTable
from engine.filters.clusters import Task, class_of, clusters, named, node, passing, passing_masks, table, task

NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
CONFLICT = "node(s) had volume node affinity conflict"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
SELECTED = "volume.kubernetes.io/selected-node"


def pvc(name: str, storage: str | None = "late", size: str = "5Gi", **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    spec |= {"storageClassName": storage} if storage is not None else {}
    metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    phase = more.pop("phase", "Pending")
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec | more,
        "status": {"phase": phase},
    }


def pv(name: str, zone: str | None = None, storage: str = "late", size: str = "10Gi", **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "capacity": {"storage": size},
        "storageClassName": storage,
        "accessModes": ["ReadWriteOnce"],
    }
    if zone is not None:
        line = {"key": "zone", "operator": "In", "values": [zone]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [line]}]}}
    phase, metadata = more.pop("phase", "Available"), more.pop("metadata", {})
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, **metadata},
        "spec": spec | more,
        "status": {"phase": phase},
    }


def storage_class(name: str, mode: str = "WaitForFirstConsumer", provisioner: str = "csi", zones: Any = None) -> Any:
    found: dict[str, Any] = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    found |= {"provisioner": provisioner, "volumeBindingMode": mode}
    if zones is not None:
        found["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": "zone", "values": [zone]}] if zone else []} for zone in zones
        ]
    return found


LOCAL = storage_class("late", provisioner="kubernetes.io/no-provisioner")
CSI = storage_class("late")
SOON = storage_class("soon", mode="Immediate")


def volumes_of(*objects: dict[str, Any]) -> VolumeTable:
    volumes = VolumeTable()
    for obj in objects:
        volumes.put(obj)
    return volumes


def using(*claims: str) -> TaskClass:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(claims)]
    return class_of(volumes=volumes)


def bound(name: str, volume: str, **more: Any) -> dict[str, Any]:
    return pvc(name, volumeName=volume, phase="Bound", **more)


@pytest.mark.parametrize(
    ("objects", "expected", "reason"),
    [
        pytest.param([bound("c", "v"), pv("v", "x")], "ab", CONFLICT, id="bound to a pinned volume"),
        pytest.param([bound("c", "v"), pv("v")], "abcd", None, id="bound to one that is everywhere"),
        pytest.param([bound("c", "v")], "", "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
                     id="its volume has gone"),
        pytest.param([], "", 'persistentvolumeclaim "c" not found', id="no such claim"),
        pytest.param([CSI, pvc("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], "",
                     'persistentvolumeclaim "c" is being deleted', id="terminating"),
        pytest.param([SOON, pvc("c", "soon")], "", UNBOUND, id="not bound yet"),
        pytest.param([pvc("c", None)], "", UNBOUND, id="of no class"),
        pytest.param([pvc("c")], "", 'storageclass.storage.k8s.io "late" not found', id="class not found"),
        pytest.param([CSI, pv("v"), pvc("c", volumeName="v")], "", UNBOUND, id="names a volume, not bound to it yet"),
        pytest.param([pv("v"), pvc("c", volumeName="v")], "", UNBOUND, id="names a volume, class not found"),
        pytest.param([CSI, pvc("c")], "abcd", NO_VOLUME, id="can be made anywhere"),
        pytest.param([storage_class("late", zones=["y"]), pvc("c")], "c", NO_VOLUME, id="can be made there"),
        pytest.param([storage_class("late", zones=["x", "y"]), pvc("c")], "abc", NO_VOLUME, id="or there"),
        pytest.param([storage_class("late", zones=[""]), pvc("c")], "", NO_VOLUME, id="an empty topology"),
        pytest.param([CSI | {"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": []}]}]},
                      pvc("c")], "", NO_VOLUME, id="a topology without values"),
        pytest.param([CSI, pvc("c", metadata={"annotations": {SELECTED: "b"}})], "b", NO_VOLUME, id="node selected"),
        pytest.param([CSI, pvc("c", metadata={"annotations": {SELECTED: "z"}})], "", NO_VOLUME, id="node gone"),
        pytest.param([LOCAL, pvc("c")], "", NO_VOLUME, id="no local volume"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x")], "ab", NO_VOLUME, id="a local volume"),
        pytest.param([LOCAL, pvc("c", metadata={"annotations": {SELECTED: "b"}}), pv("v", "x")], "b", NO_VOLUME,
                     id="a local volume, node selected"),
        pytest.param([storage_class("late", zones=["y"]), pvc("c", metadata={"annotations": {SELECTED: "b"}}),
                      pv("v", "x")], "", NO_VOLUME, id="being made where it cannot be"),
        pytest.param([storage_class("late", zones=["y"]), pvc("c"), pv("v", "x")], "abc", NO_VOLUME, id="had or made"),
        pytest.param([LOCAL, pvc("c", size="20Gi"), pv("v", "x")], "", NO_VOLUME, id="too small"),
        pytest.param([LOCAL, pvc("c", resources={}), pv("v", "x")], "ab", NO_VOLUME, id="without a size"),
        pytest.param([LOCAL, {**pvc("c"), "status": None}, pv("v", "x")], "ab", NO_VOLUME, id="without a status"),
        pytest.param([LOCAL, pvc("c"), {**pv("v", "x"), "status": None}], "", NO_VOLUME,
                     id="a volume without a status"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", storage="other")], "", NO_VOLUME, id="other class"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", phase="Released")], "", NO_VOLUME, id="not free"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", claimRef={"namespace": "default", "name": "d"})], "", NO_VOLUME,
                     id="promised to another"),
        pytest.param([LOCAL, pvc("c"), pv("w", "x"), pv("v", "y", claimRef={"namespace": "default", "name": "c"})], "c",
                     NO_VOLUME, id="promised to this one"),
        pytest.param([LOCAL, pvc("c", accessModes=["ReadWriteMany"]), pv("v", "x")], "", NO_VOLUME, id="access mode"),
        pytest.param([LOCAL, pvc("c", volumeMode="Block"), pv("v", "x")], "", NO_VOLUME, id="volume mode"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", volumeMode="Block")], "", NO_VOLUME, id="volume of another mode"),
        pytest.param([LOCAL, pvc("c", volumeMode="Filesystem"), pv("v", "x")], "ab", NO_VOLUME,
                     id="the claim names the default volume mode"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", volumeMode="Filesystem")], "ab", NO_VOLUME,
                     id="the volume names the default volume mode"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})], "",
                     NO_VOLUME, id="volume terminating"),
        pytest.param([LOCAL, pvc("c", size="10Gi"), pv("v", "x")], "ab", NO_VOLUME, id="of exactly its size"),
        pytest.param([LOCAL, pvc("c", size="20Gi"), pv("v", "x", claimRef={"namespace": "default", "name": "c"})], "",
                     NO_VOLUME, id="promised to this one, too small"),
        pytest.param([LOCAL, pvc("c", metadata={"uid": "1"}),
                      pv("v", "x", claimRef={"namespace": "default", "name": "c", "uid": "1"})], "ab", NO_VOLUME,
                     id="promised to this one by UID"),
        pytest.param([LOCAL, pvc("c", metadata={"uid": "1"}),
                      pv("v", "x", claimRef={"namespace": "default", "name": "c"})], "ab", NO_VOLUME,
                     id="promised to this one by name"),
        pytest.param([LOCAL, pvc("c", metadata={"uid": "2"}),
                      pv("v", "x", claimRef={"namespace": "default", "name": "c", "uid": "1"})], "", NO_VOLUME,
                     id="promised to an earlier one of its name"),
        pytest.param([LOCAL, pvc("c"), pv("v", "x", claimRef={"namespace": "other", "name": "c"})], "", NO_VOLUME,
                     id="promised to one of another namespace"),
        pytest.param([CSI, pv("v", "x"), pvc("c", volumeName="v",
                      metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}})], "ab", CONFLICT,
                     id="bound by its annotation"),
        pytest.param([CSI, pv("v"), pvc("c", volumeName="v", phase="Lost")], "",
                     'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"', id="lost"),
        pytest.param([LOCAL, pvc("c", selector={"matchLabels": {"k": "v"}}), pv("v", "x"),
                      pv("w", "y", metadata={"labels": {"k": "v"}})], "c", NO_VOLUME, id="selector"),
        pytest.param([LOCAL, pvc("c", selector={"matchExpressions": [{"key": "k", "operator": "Like"}]}), pv("v", "x")],
                     "", NO_VOLUME, id="unreadable selector"),
    ],
)  # fmt: skip
def test_g6_claim(objects: list[Any], expected: str, reason: str | None) -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "x"}), node("c", {"zone": "y"}), node("d"))
    found = volumes_of(*objects).checks(using("c"), nodes)
    assert [check.reason for check in found] == ([reason] if reason else [])
    assert passing(nodes, found) == list(expected)


def test_g6_claims_of_one_pod_do_not_share_a_volume() -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "y"}))
    objects = [LOCAL, pvc("c"), pvc("d"), pv("v", "x"), pv("w", "y"), pv("u", "y", size="7Gi")]
    assert passing(nodes, volumes_of(*objects).checks(using("c", "d"), nodes)) == ["b"]
    # The same claim in two volumes is one claim.
    assert passing(nodes, volumes_of(*objects).checks(using("c", "c"), nodes)) == ["a", "b"]


def test_g6_the_small_claim_takes_the_small_volume() -> None:
    nodes = table(node("a", {"zone": "x"}))
    objects = [LOCAL, pvc("big", size="9Gi"), pvc("small", size="1Gi"), pv("v", "x"), pv("w", "x", size="2Gi")]
    assert passing(nodes, volumes_of(*objects).checks(using("big", "small"), nodes)) == ["a"]


def test_g6_claims_to_select_are_those_that_wait_for_a_node() -> None:
    selected = pvc("s", metadata={"annotations": {SELECTED: "a"}})
    volumes = volumes_of(CSI, SOON, pvc("c"), selected, pvc("i", "soon"), bound("b", "v"), pv("v"))
    cls = using("c", "s", "i", "b", "missing", "c")
    assert volumes.claims_of(cls) == ["c", "s", "i", "b", "missing"]
    assert volumes.claims_to_select(cls) == ["c"]


def test_g6_ephemeral_volumes_follow_their_class() -> None:
    nodes = table(node("a", {"zone": "x"}), node("c", {"zone": "y"}))
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}}
    cls = class_of(volumes=[volume])
    assert passing(nodes, volumes_of(storage_class("late", zones=["y"])).checks(cls, nodes)) == ["c"]
    assert volumes_of(CSI).checks(cls, nodes) == []
    assert passing(nodes, volumes_of().checks(cls, nodes)) == []
    assert volumes_of(CSI).ephemeral_to_select(cls) == ["tmp"]
    assert volumes_of(CSI).claims_to_select(cls) == []


def test_g6_an_ephemeral_volume_without_a_class_can_be_made_anywhere() -> None:
    cls = class_of(volumes=[{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    assert volumes_of(CSI).checks(cls, table(node("a"))) == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        pytest.param(pv("v", "y"), ["b"], id="moved"),
        pytest.param(pv("v", "x", size="1Gi"), [], id="smaller"),
        pytest.param(pv("v", "x", storage="other"), [], id="of another class"),
        pytest.param(pv("v", "x", claimRef={"namespace": "default", "name": "d"}), [], id="promised to another claim"),
    ],
)
def test_g6_a_volume_that_changed_is_not_available_as_it_was(now: dict[str, Any], expected: list[str]) -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "y"}))
    volumes = volumes_of(LOCAL, pvc("c"), pv("v", "x"))
    assert passing(nodes, volumes.checks(using("c"), nodes)) == ["a"]
    volumes.put(now)
    assert passing(nodes, volumes.checks(using("c"), nodes)) == expected
    volumes.remove("PersistentVolume", "", "v")
    assert passing(nodes, volumes.checks(using("c"), nodes)) == []


def test_g6_the_version_counts_changes_that_matter() -> None:
    volumes = volumes_of(pvc("c"))
    assert volumes.version == 1
    volumes.put(pvc("c", metadata={"resourceVersion": "2"}))
    assert volumes.version == 1
    volumes.put(pvc("c", metadata={"annotations": {SELECTED: "a"}}))
    assert volumes.version == 2
    volumes.remove("PersistentVolumeClaim", "default", "none")
    assert volumes.version == 2
    volumes.remove("PersistentVolumeClaim", "default", "c")
    assert volumes.version == 3
    assert [check.reason for check in volumes.checks(using("c"), table())] == ['persistentvolumeclaim "c" not found']


@pytest.mark.parametrize(
    ("storage", "selects"),
    [
        pytest.param([CSI], ["tmp"], id="waits for a node"),
        pytest.param([storage_class("late", mode="Immediate")], [], id="is made at once"),
        pytest.param([], [], id="class not found"),
    ],
)
def test_g6_ephemeral_volumes_whose_claim_gets_a_node(storage: list[Any], selects: list[str]) -> None:
    template = {"volumeClaimTemplate": {"spec": {"storageClassName": "late"}}}
    cls = class_of(volumes=[{"name": "tmp", "ephemeral": template}, {"name": "other", "emptyDir": {}}])
    assert volumes_of(*storage).ephemeral_to_select(cls) == selects


sizes = st.sampled_from(["1Gi", "2Gi", "3Gi"])


@given(
    clusters(),
    st.lists(sizes, min_size=1, max_size=2),
    st.lists(st.tuples(sizes, st.sampled_from(["a", "b", None])), max_size=4),
)
def test_g6_local_volumes_as_asked_node_by_node(
    nodes: NodeTable, claims: list[str], volumes: list[tuple[str, str | None]]
) -> None:
    objects = [LOCAL, *[pvc(f"c{i}", size=size) for i, size in enumerate(claims)]]
    objects += [pv(f"v{i}", zone, size=size) for i, (size, zone) in enumerate(volumes)]

    def plainly(facts: NodeFacts) -> bool:
        here = [size for size, zone in volumes if zone is None or facts.labels.get("zone") == zone]
        ways = permutations(here, len(claims))
        return any(all(has >= asks for asks, has in zip(claims, way, strict=True)) for way in ways)

    found = volumes_of(*objects).checks(using(*[f"c{i}" for i in range(len(claims))]), nodes)
    assert passing(nodes, found) == named(nodes, plainly)


# ---- ReadWriteOncePod


def user(uid: str, claim: str, namespace: str = "default") -> Task:
    return task(uid, namespace=namespace, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


@pytest.mark.parametrize(
    ("mode", "other", "applies", "free"),
    [
        pytest.param("ReadWriteOncePod", user("1", "c"), True, False, id="in use"),
        pytest.param("ReadWriteOncePod", user("1", "d"), True, True, id="another claim"),
        pytest.param("ReadWriteOncePod", user("1", "c", "other"), True, True, id="another namespace"),
        pytest.param("ReadWriteOnce", user("1", "c"), False, True, id="shared on a node"),
    ],
)
def test_g6_exclusive_claim(mode: str, other: Task, applies: bool, free: bool) -> None:
    nodes = table(node("a"), node("b"))
    claims = ExclusiveClaims(nodes, volumes_of(pvc("c", accessModes=[mode])))
    before = claims.digest()
    claims.add(other, 0)
    assert claims.applies(user("2", "c")) is applies
    ((reason, mask),) = claims.masks(user("2", "c"))
    assert (reason, mask.tolist()) == (REASON, [free, free])
    claims.remove(other, 0)
    assert claims.digest() == before
    assert claims.masks(user("2", "c"))[0][1].all()


# ---- volumes that a plan counts on


def test_g6_claims_of_two_pods_do_not_count_on_the_same_volume() -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "y"}))
    volumes = volumes_of(LOCAL, pvc("c"), pvc("d"), pvc("e"), pv("v", "x"), pv("w", "y"), pv("u", "y", size="7Gi"))
    stateful = StatefulFilters(nodes, volumes)
    start = stateful.digest()
    assert stateful.applies(user("1", "c"))
    stateful.add(user("1", "c"), 1)
    assert stateful.volumes_to_bind("1") == {"c": "u"}
    assert passing_masks(nodes, stateful.masks(user("2", "d"))) == ["a", "b"]
    between = stateful.digest()
    stateful.add(user("2", "d"), 1)
    assert stateful.volumes_to_bind("2") == {"d": "w"}
    assert passing_masks(nodes, stateful.masks(user("3", "e"))) == ["a"]
    # A second user of a claim goes where that claim's volume is.
    assert passing_masks(nodes, stateful.masks(user("3", "c"))) == ["b"]
    stateful.remove(user("2", "d"), 1)
    assert stateful.digest() == between
    stateful.remove(user("1", "c"), 1)
    assert stateful.digest() == start


def test_g6_a_claim_with_an_assumed_volume_is_not_made_elsewhere() -> None:
    nodes = table(node("a", {"zone": "x"}), node("b", {"zone": "y"}))
    stateful = StatefulFilters(nodes, volumes_of(CSI, pvc("c"), pv("v", "x")))
    assert passing_masks(nodes, stateful.masks(user("1", "c"))) == ["a", "b"]
    stateful.add(user("1", "c"), 0)
    assert passing_masks(nodes, stateful.masks(user("2", "c"))) == ["a"]


def test_g6_an_assumed_volume_ends_when_its_claim_is_bound() -> None:
    nodes = table(node("a", {"zone": "x"}))
    volumes = volumes_of(LOCAL, pvc("c"), pvc("d"), pv("v", "x"))
    stateful = StatefulFilters(nodes, volumes)
    stateful.add(user("1", "c"), 0)
    assert passing_masks(nodes, stateful.masks(user("2", "d"))) == []
    volumes.put(pv("other"))
    volumes.put(bound("c", "other"))
    assert stateful.volumes_to_bind("1") == {}
    assert passing_masks(nodes, stateful.masks(user("2", "d"))) == ["a"]


def test_g6_volumes_that_are_made_are_no_matter_for_others() -> None:
    stateful = StatefulFilters(table(node("a")), volumes_of(CSI, pvc("c")))
    assert not stateful.applies(user("1", "c"))
    stateful.add(user("1", "c"), 0)
    assert stateful.volumes_to_bind("1") == {}


@given(st.lists(st.tuples(sizes, st.integers(0, 1)), max_size=5), st.lists(st.tuples(sizes, st.sampled_from("ab"))))
def test_g6_no_volume_is_given_twice(asked: list[tuple[str, int]], offered: list[tuple[str, str]]) -> None:
    nodes = table(node("n0", {"zone": "a"}), node("n1", {"zone": "b"}))
    claims = [pvc(f"c{i}", size=size) for i, (size, _) in enumerate(asked)]
    volumes = volumes_of(LOCAL, *claims, *[pv(f"v{i}", zone, size=size) for i, (size, zone) in enumerate(offered)])
    stateful = StatefulFilters(nodes, volumes)
    given: list[str] = []
    for i, (size, row) in enumerate(asked):
        new = user(str(i), f"c{i}")
        before = stateful.digest()
        fits = nodes.names[row] in passing_masks(nodes, stateful.masks(new))
        left = [f"v{j}" for j, (has, zone) in enumerate(offered) if has >= size and zone == "ab"[row]]
        assert fits == bool(set(left) - set(given)) or not stateful.applies(new)
        if fits and stateful.applies(new):
            stateful.add(new, row)
            stateful.remove(new, row)
            assert stateful.digest() == before
            stateful.add(new, row)
            given += stateful.volumes_to_bind(str(i)).values()
    assert len(set(given)) == len(given)


def test_a_storage_class_with_an_unknown_spec_is_accepted() -> None:
    volumes = VolumeTable()
    volumes.put({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "s"}, "spec": 1e300})
    assert volumes.version == 1
