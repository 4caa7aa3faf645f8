"""Classes of equal tasks: what distinguishes two pods for the scheduler, and what does not."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from enbloc.config import Config
from enbloc.engine.core.tables import classes as module
from enbloc.engine.core.tables.classes import UNUSED_BOUND, ClassTable, TaskClass
from enbloc.engine.core.tables.resources import CPU, PODS, Resources
from enbloc.runtime.control_plane import ControlPlane
from enbloc.sim.simulation import control_plane
from support import manifests as m
from support.simulation import simulate
from test_scenarios import STORIES, run, timeline_text

BASE: dict[str, Any] = {
    "schedulerName": "enbloc",
    "containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}, "ports": [{"containerPort": 80}]},
        {"name": "d"},
    ],
}
AFFINITY = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
SPREAD = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def with_container(**change: Any) -> dict[str, Any]:
    spec = copy.deepcopy(BASE)
    spec["containers"][0].update(change)
    return spec


SAME: dict[str, dict[str, Any]] = {
    "image, command, environment": with_container(image="other", command=["x"], env=[{"name": "A", "value": "1"}]),
    "a container's name": with_container(name="other"),
    "a port that is not the host's": with_container(
        ports=[{"containerPort": 81}, {"containerPort": 82, "hostPort": 0}]
    ),
    "no ports": with_container(ports=None),
    "host name": {**BASE, "hostname": "w-0", "subdomain": "s"},
    "priority": {**BASE, "priority": 7, "priorityClassName": "high"},
    "scheduler": {**BASE, "schedulerName": "volcano"},
    "node": {**BASE, "nodeName": "n1"},
    "restart policy of the pod": {**BASE, "restartPolicy": "Never"},
    "empty fields": {**BASE, "nodeSelector": {}, "tolerations": [], "affinity": None, "volumes": []},
    "volumes that are no claims": {**BASE, "volumes": [{"name": "x", "emptyDir": {}}, {"name": "y", "configMap": {}}]},
    "unknown fields": {**BASE, "shareProcessNamespace": True},
    "order of the keys": dict(reversed(BASE.items())),
}

OTHER: dict[str, dict[str, Any]] = {
    "requests": with_container(resources={"requests": {"cpu": "2"}}),
    "limits": with_container(resources={"limits": {"cpu": "1", "memory": "1"}}),
    "host port": with_container(ports=[{"containerPort": 80, "hostPort": 80}]),
    "init container": {**BASE, "initContainers": [{"resources": {"requests": {"cpu": "1"}}}]},
    "sidecar": {**BASE, "initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]},
    "overhead": {**BASE, "overhead": {"cpu": "1"}},
    "the pod's own resources": {**BASE, "resources": {"requests": {"cpu": "3"}}},
    "node selector": {**BASE, "nodeSelector": {"disk": "ssd"}},
    "tolerations": {**BASE, "tolerations": [{"operator": "Exists"}]},
    "affinity": {**BASE, "affinity": AFFINITY},
    "spread": {**BASE, "topologySpreadConstraints": SPREAD},
    "claim": {**BASE, "volumes": CLAIM},
    "ephemeral claim": {**BASE, "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {}}}]},
}


@pytest.fixture
def classes() -> ClassTable:
    return ClassTable(Resources())


@pytest.mark.parametrize("case", SAME)
def test_what_is_no_part_of_a_class(classes: ClassTable, case: str) -> None:
    assert classes.of("ns", SAME[case]) is classes.of("ns", BASE)


@pytest.mark.parametrize("case", OTHER)
def test_what_is_part_of_a_class(classes: ClassTable, case: str) -> None:
    assert classes.of("ns", OTHER[case]) is not classes.of("ns", BASE)
    assert classes.of("ns", copy.deepcopy(OTHER[case])) is classes.of("ns", OTHER[case])


def test_all_of_these_differ_from_each_other(classes: ClassTable) -> None:
    found = [classes.of("ns", spec) for spec in OTHER.values()]
    assert [cls.id for cls in found] == list(range(len(OTHER)))
    assert list(classes.by_id.values()) == found


@pytest.mark.parametrize("case, matters", [("affinity", True), ("spread", True), ("claim", True), ("host port", False)])
def test_a_namespace_matters_where_something_in_it_is_named(classes: ClassTable, case: str, matters: bool) -> None:
    assert (classes.of("one", OTHER[case]) is not classes.of("two", OTHER[case])) is matters
    assert classes.of("one", BASE) is classes.of("two", BASE)


def test_a2_what_the_gang_asks_of_nodes_is_part_of_it(classes: ClassTable) -> None:
    narrowed = classes.of("ns", BASE, {"disk": "ssd"})
    assert narrowed is classes.of("ns", OTHER["node selector"])
    both = classes.of("ns", OTHER["node selector"], {"zone": "a"})
    assert both.spec.node_selector == {"disk": "ssd", "zone": "a"}
    assert OTHER["node selector"]["nodeSelector"] == {"disk": "ssd"}  # what came from the API is not changed


def test_what_a_class_knows(classes: ClassTable) -> None:
    def of(spec: dict[str, Any]) -> TaskClass:
        return classes.of("ns", spec)

    assert of(BASE).request == ((CPU, 1000), (PODS, 1))
    assert not of(BASE).best_effort
    assert of({"containers": [{}]}).best_effort
    assert of({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}).request == ((PODS, 1),)
    plain = {name for name, spec in OTHER.items() if of(spec).plain}
    assert set(OTHER) - plain == {"host port", "affinity", "spread", "claim", "ephemeral claim"}


def test_unused_classes_are_dropped_and_their_ids_are_not_used_again(classes: ClassTable) -> None:
    found = [classes.of("ns", spec) for spec in OTHER.values()]
    classes.retain({found[0].id, found[-1].id})
    assert list(classes.by_id.values()) == [found[0], found[-1]]
    again = [classes.of("ns", spec) for spec in OTHER.values()]
    assert (again[0], again[-1]) == (found[0], found[-1])
    assert [cls.id for cls in again[1:-1]] == list(range(len(OTHER), 2 * len(OTHER) - 2))


def selfish(name: str, at: int) -> m.Obj:
    """A pod with anti-affinity to its own job, unlike any other pod."""
    shunned = {"labelSelector": {"matchLabels": {"job": name}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [shunned]}}
    spread = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **shunned}]
    looks = {"affinity": apart, "topologySpreadConstraints": spread}
    return m.pod(name, 1, at=f"{at}s", delete_at=f"{at + 9}s", labels={"job": name}, **looks)


def test_what_was_worked_out_for_classes_that_are_gone_is_forgotten() -> None:
    made: list[ControlPlane] = []

    def plane(store: Any, config: Config) -> Any:
        found = control_plane(store, config)
        assert isinstance(found, ControlPlane)
        made.append(found)
        return found

    many = 3 * UNUSED_BOUND
    answer = simulate(m.node("n", 16), [selfish(f"p{number}", number) for number in range(many)], plane=plane)
    assert len(answer.bound("p")) == many
    state = made[-1].scheduler.engine.state
    assert len(state.classes.by_id) <= UNUSED_BOUND + 32
    caches = [*vars(state.stateful._affinity._terms).values(), *vars(state.stateful._spread).values()]
    caches += [state._candidates._known, state.stateful._counting]
    assert max(len(cache) for cache in caches if isinstance(cache, dict)) <= UNUSED_BOUND + 32
    assert not state.stateful._affinity._index._anchored


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_forgetting_classes_after_every_cycle_changes_nothing(story: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = timeline_text(run(story))
    monkeypatch.setattr(ClassTable, "needs_compaction", lambda classes: True)
    assert timeline_text(run(story)) == before


@pytest.mark.parametrize(
    ("own", "of_gang", "both"),
    [
        ({"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, {"a": "1"}, {"a": "1"}),
        ({"a": "1"}, {"a": "2"}, {"a": "1 2"}),  # no node has such a value
        ({}, {"b": "2"}, {"b": "2"}),
        ({"a": "1"}, {}, {"a": "1"}),
    ],
)
def test_a2_the_node_selectors_of_a_pod_and_its_gang_count_both(
    own: dict[str, str], of_gang: dict[str, str], both: dict[str, str]
) -> None:
    found = ClassTable(Resources()).of("ns", {"containers": [{}], "nodeSelector": own}, of_gang)
    assert found.spec.node_selector == both


def test_g6_a_host_port_of_any_container_concerns_other_pods() -> None:
    port = {"ports": [{"hostPort": 80, "containerPort": 80}]}
    classes = ClassTable(Resources())
    assert not classes.of("ns", {"containers": [port]}).plain
    assert not classes.of("ns", {"containers": [{}], "initContainers": [port]}).plain
    assert classes.of("ns", {"containers": [{"ports": [{"containerPort": 80}]}], "initContainers": [{}]}).plain


def test_classes_without_tasks_are_dropped_once_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the bound, and twice those that were in use."""
    monkeypatch.setattr(module, "UNUSED_BOUND", 2)
    classes = ClassTable(Resources())
    made = [classes.of("ns", {"containers": [{}], "nodeSelector": {"n": str(number)}}) for number in range(3)]
    assert classes.needs_compaction()
    classes.retain({made[0].id})
    for number in range(5):
        assert classes.needs_compaction() == (len(classes.by_id) > 4), number
        classes.of("ns", {"containers": [{}], "nodeSelector": {"m": str(number)}})
    assert classes.of("ns", {"containers": [{}], "nodeSelector": {"n": "1"}}).id not in {one.id for one in made}
