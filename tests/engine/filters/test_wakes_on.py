"""Which cluster events can help a task that a filter rejected: a table filter × event, and the events carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from enbloc.engine.core.filters import node_affinity, node_selector, readiness, taints, unschedulable
from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.stateful.affinity import PodAffinity
from enbloc.engine.core.filters.stateful.assumed_volumes import AssumedVolumes
from enbloc.engine.core.filters.stateful.exclusive_claims import ExclusiveClaims
from enbloc.engine.core.filters.stateful.ports import HostPorts
from enbloc.engine.core.filters.stateful.spread import TopologySpread
from enbloc.engine.core.filters.stateful.stateful import StatefulFilters
from enbloc.engine.core.filters.volumes import WAKES_ON as VOLUMES
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.state.candidates import Candidates, ScoreVector
from enbloc.engine.core.tables.headroom import FIT_WAKES_ON
from enbloc.engine.events import ClusterEvent, EventKind
from engine.filters.clusters import HOST, Task, class_of, node, settle, table, task
from engine.filters.test_volumes import CSI, LOCAL, pv, pvc

NODE = {EventKind.NODE_ADDED, EventKind.NODE_CHANGED}
VOLUME = {EventKind.VOLUME_CHANGED, EventKind.VOLUME_CLAIM_CHANGED}
PODS_REMOVED = {EventKind.ROOM_FREED, EventKind.NODE_REMOVED}


@pytest.mark.parametrize(
    ("wakes_on", "expected"),
    [
        pytest.param(Check("", lambda rows: rows >= 0).wakes_on, NODE, id="static"),
        pytest.param(VOLUMES, NODE | VOLUME, id="volumes"),
        pytest.param(HostPorts.wakes_on, NODE | {EventKind.ROOM_FREED}, id="host ports"),
        pytest.param(ExclusiveClaims.wakes_on, NODE | VOLUME | PODS_REMOVED, id="exclusive claims"),
        pytest.param(AssumedVolumes.wakes_on, NODE | VOLUME | PODS_REMOVED, id="assumed volumes"),
        pytest.param(
            PodAffinity.wakes_on,
            NODE | PODS_REMOVED | {EventKind.POD_PLACED, EventKind.NAMESPACE_LABELS_CHANGED},
            id="affinity",
        ),
        pytest.param(TopologySpread.wakes_on, NODE | PODS_REMOVED | {EventKind.POD_PLACED}, id="spread"),
        pytest.param(FIT_WAKES_ON, NODE | {EventKind.ROOM_FREED}, id="resource fit"),
    ],
)
def test_g9_a_filter_declares_the_events_that_can_help_it(
    wakes_on: frozenset[EventKind], expected: set[EventKind]
) -> None:
    assert {kind for kind in EventKind if kind in wakes_on} == expected


class World:
    """A small cluster in which events happen; `passes` is whether any node passes all filters of a task."""

    def __init__(self) -> None:
        self.nodes = table(node("a", {"zone": "x", HOST: "a"}))
        self.volumes = VolumeTable()
        self.stateful: StatefulFilters[Task] = StatefulFilters(self.nodes, self.volumes)

    def put_node(self, name: str, labels: dict[str, str] | None = None, **facts: Any) -> None:
        self.nodes.put(node(name, {HOST: name} | (labels or {}), **facts))
        settle(self.nodes)

    def place(self, one: Task, name: str = "a") -> Task:
        self.stateful.add(one, self.nodes.rows[name])
        return one

    def remove(self, one: Task, name: str = "a") -> None:
        self.stateful.remove(one, self.nodes.rows[name])

    def remove_node(self, name: str, *placed: Task) -> None:
        for one in placed:
            self.remove(one, name)
        self.nodes.remove(name)

    def put_volumes(self, *objects: dict[str, Any]) -> None:
        for obj in objects:
            self.volumes.put(obj)

    def _checks(self, one: Task) -> list[Check]:
        nodes, cls = self.nodes, one.cls
        single = [each.check(cls, nodes) for each in (readiness, unschedulable, node_selector, node_affinity)]
        return [c for c in (*single, *taints.checks(cls, nodes), *self.volumes.checks(cls, nodes)) if c is not None]

    def passes(self, one: Task) -> bool:
        rows = np.arange(self.nodes.count)
        found = self.nodes.alive[: self.nodes.count].copy()
        for check in self._checks(one):
            found &= check.mask(rows)
        for _, mask in self.stateful.masks(one):
            found &= mask
        return bool(found.any())

    def wakes_on(self, one: Task) -> frozenset[EventKind]:
        """Of the filters that reject the task on some node."""
        rows, alive = np.arange(self.nodes.count), self.nodes.alive[: self.nodes.count]
        rejecting = [check.wakes_on for check in self._checks(one) if (~check.mask(rows) & alive).any()]
        if any((~mask & alive).any() for _, mask in self.stateful.masks(one)):
            rejecting.append(self.stateful.wakes_on([one]))
        return frozenset[EventKind]().union(*rejecting)


WEB = {"matchLabels": {"app": "web"}}
HERE = {"app": "web"}


def near(**more: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": WEB, **more}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def apart() -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": WEB}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def gpu(operator: str = "Exists") -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": operator}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def port(uid: str) -> Task:
    return task(uid, containers=[{"ports": [{"hostPort": 80}]}])


def user(uid: str, claim: str = "data") -> Task:
    return task(uid, volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": claim}}])


SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}

Happens = Callable[[World], object]


def not_ready(world: World) -> tuple[Task, Happens]:
    world.put_node("a", ready=False)
    return task("t"), lambda world: world.put_node("a")


def cordoned(world: World) -> tuple[Task, Happens]:
    world.put_node("a", unschedulable=True)
    return task("t"), lambda world: world.put_node("b")


def tainted(world: World) -> tuple[Task, Happens]:
    world.put_node("a", taints=[("k", "", "NoSchedule")])
    return task("t"), lambda world: world.put_node("a")


def selector(world: World) -> tuple[Task, Happens]:
    return task("t", nodeSelector={"gpu": "1"}), lambda world: world.put_node("a", {"gpu": "1"})


def required_affinity(world: World) -> tuple[Task, Happens]:
    return task("t", affinity=gpu()), lambda world: world.put_node("b", {"gpu": "1"})


def volume_that_is_created(world: World) -> tuple[Task, Happens]:
    world.put_volumes(LOCAL, pvc("data"))
    return user("t"), lambda world: world.put_volumes(pv("free"))


def storage_class_that_is_created(world: World) -> tuple[Task, Happens]:
    world.put_volumes(pvc("data"))
    return user("t"), lambda world: world.put_volumes(CSI)


def claim_that_is_created(world: World) -> tuple[Task, Happens]:
    world.put_volumes(CSI)
    return user("t"), lambda world: world.put_volumes(pvc("data"))


def used_port(world: World) -> tuple[Task, Happens]:
    other = world.place(port("1"))
    return port("t"), lambda world: world.remove(other)


def exclusive_claim_in_use(world: World) -> tuple[Task, Happens]:
    world.put_volumes(CSI, pvc("data", accessModes=["ReadWriteOncePod"]))
    other = world.place(user("1"))
    return user("t"), lambda world: world.remove(other)


def exclusive_claim_on_a_removed_node(world: World) -> tuple[Task, Happens]:
    world.put_volumes(CSI, pvc("data", accessModes=["ReadWriteOncePod"]))
    world.put_node("b")
    other = world.place(user("1"), "b")
    return user("t"), lambda world: world.remove_node("b", other)


def assumed_volume(world: World) -> tuple[Task, Happens]:
    world.put_volumes(LOCAL, pv("only"), pvc("data"), pvc("other"))
    other = world.place(user("1", "other"))
    return user("t"), lambda world: world.remove(other)


def affinity_to_a_pod_that_is_placed(world: World) -> tuple[Task, Happens]:
    return task("t", affinity=near()), lambda world: world.place(task("1", HERE))


def anti_affinity_to_a_pod_that_ends(world: World) -> tuple[Task, Happens]:
    other = world.place(task("1", HERE))
    return task("t", affinity=apart()), lambda world: world.remove(other)


def anti_affinity_of_a_pod_on_a_removed_node(world: World) -> tuple[Task, Happens]:
    world.put_node("b", {"zone": "x"})
    other = world.place(task("1", affinity=apart()), "b")
    return task("t", HERE), lambda world: world.remove_node("b", other)


def affinity_by_namespace_labels(world: World) -> tuple[Task, Happens]:
    world.place(task("1", HERE, namespace="other"))
    wanted = task("t", affinity=near(namespaceSelector={"matchLabels": {"team": "b"}}))
    return wanted, lambda world: world.stateful.set_namespace("other", {"team": "b"})


def spread_over_an_unlabelled_node(world: World) -> tuple[Task, Happens]:
    world.put_node("a")
    return task("t", HERE, topologySpreadConstraints=[SPREAD]), lambda world: world.put_node("a", {"zone": "x"})


def skewed_by_a_full_domain(world: World) -> tuple[Task, Happens]:
    world.put_node("b", {"zone": "y"}, unschedulable=True)
    other = world.place(task("1", HERE))
    return task("t", HERE, topologySpreadConstraints=[SPREAD]), lambda world: world.remove(other)


def skewed_until_the_empty_domain_gets_a_pod(world: World) -> tuple[Task, Happens]:
    world.put_node("b", {"zone": "y"}, unschedulable=True)
    world.place(task("1", HERE))
    return (
        task("t", HERE, topologySpreadConstraints=[SPREAD]),
        lambda world: world.place(task("2", HERE), "b"),
    )


def skewed_until_the_empty_domain_is_removed(world: World) -> tuple[Task, Happens]:
    world.put_node("b", {"zone": "y"}, unschedulable=True)
    world.place(task("1", HERE))
    return task("t", HERE, topologySpreadConstraints=[SPREAD]), lambda world: world.remove_node("b")


@pytest.mark.parametrize(
    ("rejected", "kind"),
    [
        (not_ready, EventKind.NODE_CHANGED),
        (cordoned, EventKind.NODE_ADDED),
        (tainted, EventKind.NODE_CHANGED),
        (selector, EventKind.NODE_CHANGED),
        (required_affinity, EventKind.NODE_ADDED),
        (volume_that_is_created, EventKind.VOLUME_CHANGED),
        (storage_class_that_is_created, EventKind.VOLUME_CHANGED),
        (claim_that_is_created, EventKind.VOLUME_CLAIM_CHANGED),
        (used_port, EventKind.ROOM_FREED),
        (exclusive_claim_in_use, EventKind.ROOM_FREED),
        (exclusive_claim_on_a_removed_node, EventKind.NODE_REMOVED),
        (assumed_volume, EventKind.ROOM_FREED),
        (affinity_to_a_pod_that_is_placed, EventKind.POD_PLACED),
        (anti_affinity_to_a_pod_that_ends, EventKind.ROOM_FREED),
        (anti_affinity_of_a_pod_on_a_removed_node, EventKind.NODE_REMOVED),
        (affinity_by_namespace_labels, EventKind.NAMESPACE_LABELS_CHANGED),
        (spread_over_an_unlabelled_node, EventKind.NODE_CHANGED),
        (skewed_by_a_full_domain, EventKind.ROOM_FREED),
        (skewed_until_the_empty_domain_gets_a_pod, EventKind.POD_PLACED),
        (skewed_until_the_empty_domain_is_removed, EventKind.NODE_REMOVED),
    ],
    ids=lambda value: value.__name__.replace("_", " ") if callable(value) else value.name,
)
def test_g9_an_event_that_helps_is_one_that_the_filter_wakes_on(
    rejected: Callable[[World], tuple[Task, Happens]], kind: EventKind
) -> None:
    world = World()
    one, happens = rejected(world)
    assert not world.passes(one)
    assert kind in world.wakes_on(one)
    happens(world)
    assert world.passes(one)


def test_g9_tasks_wake_on_what_helps_any_of_them() -> None:
    """A plain task before it is of no matter to what helps the one with a host port."""
    stateful = World().stateful
    port = task("p", containers=[{"ports": [{"hostPort": 80}]}])
    assert stateful.wakes_on([task("plain")]) == frozenset()
    assert stateful.wakes_on([task("plain"), port]) == stateful.wakes_on([port]) != frozenset()


def test_g9_a_class_wakes_on_what_its_checks_and_free_room_wake_on() -> None:
    world = World()
    world.put_volumes(CSI, pvc("data"))
    plain, with_volume = class_of(), user("t").cls

    def candidates(checks: list[Check]) -> Candidates:
        scores = ScoreVector(world.nodes, plain.request, lambda headroom: headroom.after(0) * 0)
        return Candidates(plain, world.nodes, checks, scores, None)

    assert candidates([]).wakes_on() == NODE | {EventKind.ROOM_FREED}
    checks = world.volumes.checks(with_volume, world.nodes)
    assert candidates(checks).wakes_on() == NODE | VOLUME | {EventKind.ROOM_FREED}


@pytest.mark.parametrize(
    ("event", "helps"),
    [
        (ClusterEvent(EventKind.VOLUME_CHANGED), True),
        (ClusterEvent(EventKind.VOLUME_CLAIM_CHANGED, subject=("default", "data")), True),
        (ClusterEvent(EventKind.VOLUME_CLAIM_CHANGED, subject=("default", "other")), False),
        (ClusterEvent(EventKind.VOLUME_CLAIM_CHANGED, subject=("elsewhere", "data")), False),
        (ClusterEvent(EventKind.ROOM_FREED, node="a"), False),
    ],
    ids=str,
)
def test_g9_a_claim_concerns_the_classes_that_name_it(event: ClusterEvent, helps: bool) -> None:
    volumes = VolumeTable()
    assert volumes.may_help(user("t").cls, event) is helps
    assert not volumes.may_help(class_of(), event)
