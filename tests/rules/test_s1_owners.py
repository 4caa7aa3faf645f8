"""S1: an owner reference counts only within the child's own namespace, wherever an owner or what it owns is looked for.

Tenant `a` knows the UID of what tenant `b` owns, and writes children that name it: before it exists, or while it runs.
Nothing in `b` may differ from a run without them. No garbage is collected here: it would hide what controllers read.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from enbloc.admission.settings import settings_of
from enbloc.advice.explanation import explain
from enbloc.api import volcano, workloads
from enbloc.api.kinds import kind_id
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.admission import bootstrap
from enbloc.cluster.embedded.api.store import Store
from enbloc.config import parse
from enbloc.controllers import volcano as volcano_groups
from enbloc.controllers.controller import Controller
from enbloc.controllers.job import JobController
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.controllers.queuejob import QueueJobController
from enbloc.controllers.workloads.controller import WorkloadController
from enbloc.gangs.model import GangKey
from enbloc.gangs.registry import GangRegistry
from enbloc.inspect.overview import read_overview
from enbloc.sim.without_effect import without_effect
from enbloc.traces.capture import capture
from enbloc.units import SECOND
from support import manifests as m
from support.workload_cluster import job as batch_job
from support.workload_cluster import workload

UID = "uid-of-b"
START = 1_700_000_000 * SECOND


def of_b(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": "b", "uid": UID}}


def volcano_job(event: str, action: str) -> Obj:
    return m.job("v", m.role("w", 2), policies=[m.policy(action, event)])


CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": {"name": "v"},
    "spec": {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Forbid",
        "jobTemplate": {"spec": batch_job("x", parallelism=1)["spec"]},
    },
}
VICTIMS = {
    **{
        f"{event} {action}": volcano_job(event, action)
        for event in ("PodFailed", "PodEvicted", "*")
        for action in ("AbortJob", "RestartJob", "TerminateJob", "CompleteJob", "RestartTask", "RestartPod")
    },
    "Job without a policy": m.job("v", m.role("w", 2)),
    "TaskCompleted": volcano_job("TaskCompleted", "CompleteJob"),
    "Job that depends": m.job("v", m.role("p", 1), m.role("w", 1, depends_on={"name": ["p"]})),
    "QueueJob": m.queue_job("v", m.role("w", 2), minimum=2),
    "batch Job": batch_job("v", parallelism=2, completions=2, backoffLimit=0),
    "indexed Job": batch_job("v", parallelism=2, completions=2, completionMode="Indexed", backoffLimit=0),
    "Deployment": workload("Deployment", "v", replicas=2),
    "ReplicaSet": workload("ReplicaSet", "v", replicas=2),
    "StatefulSet": workload("StatefulSet", "v", replicas=2, serviceName="v"),
    "DaemonSet": workload("DaemonSet", "v"),
    "CronJob": CRON_JOB,
}


def child(victim: Obj, obj: Obj, index: int = 0) -> Obj:
    """An object of tenant a that says that b's object controls it, with every name and label that b's own have."""
    owner = {key: victim[key] for key in ("apiVersion", "kind")} | {"name": "v", "uid": UID, "controller": True}
    keys = {volcano.TASK_SPEC: "w", volcano.TASK_INDEX: str(index), volcano.JOB_NAME: "v"}
    labels = {"app": "v", **keys}
    metadata = {**obj["metadata"], "namespace": "a", "ownerReferences": [owner]}
    return {**obj, "metadata": {**metadata, "labels": labels, "annotations": {**keys, volcano.JOB_VERSION: "0"}}}


def children(victim: Obj) -> list[Obj]:
    tracked = m.pod(f"v-w-{1}")
    tracked["metadata"]["finalizers"] = [workloads.JOB_TRACKING]
    indexed = {**batch_job("v-9"), "metadata": {"name": "v-9"}}
    return [
        child(victim, m.pod("v-w-0")),
        child(victim, tracked, 1),
        child(victim, m.podgroup(f"v-{UID}", 9)),
        child(victim, m.scheduling_spec("v", 9)),
        child(victim, indexed),
        child(victim, {**workload("ReplicaSet", "v-rs", replicas=0), "metadata": {"name": "v-rs"}}),
    ]


class Tenants:
    """The API and every controller, without a scheduler and without garbage collection. Pods of b run at once."""

    def __init__(self) -> None:
        self.now = START
        self.store = Store(lambda: self.now, (), auto_namespaces=True)
        bootstrap(self.store)
        self.store.create(m.node("n", 8))
        self.restart()

    def restart(self) -> None:
        self.controllers: list[Controller] = [
            JobController(simulated_key_pair),
            QueueJobController(),
            WorkloadController(),
            volcano_groups.controller(),
        ]
        self.watches = [self.store.watch(one.kinds, self.store.version) for one in self.controllers]
        for controller in self.controllers:
            for kind in sorted(controller.kinds):
                for obj in self.store.list(kind)[0]:
                    controller.observe(WatchEvent("ADDED", kind, obj))

    def settle(self) -> None:
        for _ in range(100):
            rounds = [self._round(*both) for both in zip(self.controllers, self.watches, strict=True)]
            if not any(rounds):
                return
        raise AssertionError("controllers do not settle")

    def _round(self, controller: Controller, watch: Any) -> bool:
        for event in watch.drain():
            controller.observe(event)
        writes = list(controller.reconcile(self.now))
        for write in writes:
            try:
                self.store.execute(write)
            except Refused as why:
                controller.refused(write, why, self.now)
        return bool(writes)

    def turn(self, namespace: str, phase: str) -> None:
        for pod in self.store.list("Pod")[0]:
            if pod["metadata"]["namespace"] == namespace and not pod["metadata"].get("deletionTimestamp"):
                name = pod["metadata"]["name"]
                if not pod["spec"].get("nodeName"):
                    self.store.bind(namespace, name, pod["metadata"]["uid"], "n")
                status: Obj = {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}
                if phase == "Failed":
                    status["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]
                self.store.patch(Ref("Pod", namespace, name), {"status": status}, "status")
        self.settle()

    def enqueue(self) -> None:
        for group in self.store.list(volcano.POD_GROUP)[0]:
            name, namespace = group["metadata"]["name"], group["metadata"]["namespace"]
            if namespace == "b" and (group.get("status") or {}).get("phase") in (None, "", "Pending"):
                self.store.patch(Ref(volcano.POD_GROUP, "b", name), {"status": {"phase": "Inqueue"}}, "status")
        self.settle()

    def seen_in_b(self) -> list[str]:
        """Every object of b but for the numbers that count all creations."""
        kinds = sorted({kind for one in self.controllers for kind in one.kinds} | {"Event"})
        found = [obj for kind in kinds for obj in self.store.list(kind)[0]]
        found = [obj for obj in found if obj["metadata"].get("namespace") == "b"]
        numbers = r"'resourceVersion': '\d+'|\d{8}-0000-4000-8000-[0-9a-f]{12}|[-.][a-z0-9]{5}(?=')|[0-9a-f]{16}(?=')"
        return sorted(re.sub(numbers, "", str(obj)) for obj in found)


def play(victim: Obj, evil: list[Obj], *, first: bool, restarts: bool) -> list[list[str]]:
    """What b sees, at each step of one story."""
    world, seen = Tenants(), []

    def look() -> None:
        if restarts:
            world.restart()
        world.settle()
        seen.append(world.seen_in_b())

    def attack() -> None:
        for obj in evil:
            world.store.create(obj)
        world.settle()

    if first:
        attack()
    world.store.create(of_b(victim))
    world.settle()
    world.now += 60 * SECOND
    world.settle()
    world.enqueue()
    world.turn("b", "Running")
    look()
    if not first:
        attack()
    for phase in ("Running", "Failed", "Succeeded"):
        world.turn("a", phase)
        look()
    for kind, namespace, name in [(kind_id(one), "a", one["metadata"]["name"]) for one in evil]:
        if world.store.get(kind, namespace, name) is not None:
            world.store.delete(Ref(kind, namespace, name), grace_s=0)
    look()
    world.now += 60 * SECOND
    look()
    return seen


@pytest.mark.parametrize("restarts", [False, True], ids=["", "restarts"])
@pytest.mark.parametrize("first", [False, True], ids=["later", "first"])
@pytest.mark.parametrize("name", VICTIMS)
def test_s1_a_child_of_another_namespace_has_no_effect_on_its_owner(name: str, first: bool, restarts: bool) -> None:
    victim = VICTIMS[name]
    alone = play(victim, [], first=first, restarts=restarts)
    assert any("Running" in one for one in alone[0]), alone[0]
    assert play(victim, children(victim), first=first, restarts=restarts) == alone


# ---- dialects


def own_pod(victim: Obj, name: str, namespace: str, **annotations: str) -> Obj:
    made = child(victim, m.pod(name))
    return {
        **made,
        "metadata": {**made["metadata"], "namespace": namespace, "uid": f"{namespace}-{name}", **annotations},
    }


def registry_of(objects: list[Obj]) -> GangRegistry:
    kinds = [
        {"kind": "Train.example.com", "minimum": ["spec.workers"]},
        {"kind": "Fleet.example.com", "minimum": ["n"]},
    ]
    registry = GangRegistry.of(parse({"groupByOwner": {"enabled": True, "kinds": kinds}}))
    for obj in objects:
        if obj["kind"] == "Pod":
            registry.observe_pod(obj, gone=False)
        else:
            registry.observe(WatchEvent("ADDED", kind_id(obj), obj))
    return registry


def custom(kind: str, **spec: Any) -> Obj:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "v"}, **spec}


GROUPED: dict[str, Obj] = {
    "workload": workload("ReplicaSet", "v", replicas=4)
    | {"metadata": {"name": "v", "annotations": {volcano.GROUP_MIN_MEMBER: "4"}}},
    "owner": custom("Train", spec={"workers": 4}),
}


@pytest.mark.parametrize("evil_first", [False, True])
@pytest.mark.parametrize("name", GROUPED)
def test_s1_pods_are_grouped_only_by_an_owner_of_their_own_namespace(name: str, evil_first: bool) -> None:
    victim = GROUPED[name]
    evil, own = own_pod(victim, "p", "a"), own_pod(victim, "p", "b")
    registry = registry_of([evil, of_b(victim), own] if evil_first else [of_b(victim), own, evil])
    found = registry.spec(registry.member(own).gang)
    assert found is not None
    assert found.minimum == 4
    alone = registry.member(evil).gang
    assert registry.spec(alone) is None
    assert alone.dialect != name


@pytest.mark.parametrize("evil_first", [False, True])
def test_s1_an_owner_without_a_namespace_groups_the_pods_of_each(evil_first: bool) -> None:
    fleet = custom("Fleet", n=4)
    fleet["metadata"]["uid"] = UID
    pods = [own_pod(fleet, "p", "a"), own_pod(fleet, "p", "b")]
    registry = registry_of([*pods, fleet] if evil_first else [fleet, *pods])
    specs = [registry.spec(registry.member(pod).gang) for pod in pods]
    assert [(one.key.namespace, one.minimum) for one in specs if one is not None] == [("a", 4), ("b", 4)]


def test_s1_a_podgroup_follows_only_a_job_of_its_own_namespace() -> None:
    victim = m.job("v", m.role("w", 2, run_time="10s"), m.role("late", 1, depends_on={"name": ["w"]}))
    groups = [m.podgroup(f"v-{UID}", 2, namespace=namespace) for namespace in ("b", "a")]
    groups = [
        child(victim, one) | {"metadata": {**child(victim, one)["metadata"], "namespace": namespace}}
        for one, namespace in zip(groups, ("b", "a"), strict=True)
    ]
    registry = registry_of([of_b(victim), *groups])
    own, other = (registry.spec(GangKey("volcano", namespace, f"v-{UID}")) for namespace in ("b", "a"))
    assert own is not None
    assert other is not None
    assert (own.key.namespace, own.wave_of) == ("b", {"w": 0, "late": 1})
    assert (other.key.namespace, other.wave_of) == ("a", {})
    changed = {**of_b(victim), "spec": {**victim["spec"], "maxRetry": 9}}
    assert [key.namespace for key in registry.observe(WatchEvent("MODIFIED", volcano.JOB, changed)).gangs] == ["b"]


def test_s1_a_schedulingspec_follows_only_a_queuejob_of_its_own_namespace() -> None:
    victim = of_b(m.queue_job("v", m.role("w", 2), minimum=2))
    victim["status"] = {"state": {"phase": "Completed"}, "met": 9}
    registry = registry_of([victim, child(victim, m.scheduling_spec("v", 2))])
    found = registry.spec(GangKey("arbitrator", "a", UID))
    assert found is not None
    assert (found.observed.started, found.observed.finished) == (False, False)


# ---- garbage


CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "v"}}


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan", "Background"])
@pytest.mark.parametrize(
    "victim", [CONFIG_MAP, VICTIMS["QueueJob"], VICTIMS["ReplicaSet"]], ids=lambda obj: obj["kind"]
)
def test_s1_an_owner_is_deleted_without_regard_to_another_namespace(victim: Obj, propagation: Any) -> None:
    store = Store(lambda: START, (), auto_namespaces=True)
    bootstrap(store)
    evil = child(victim, m.pod("evil"))
    evil["metadata"]["finalizers"] = ["example.com/stay"]
    store.create(of_b(victim))
    store.create(evil)
    before = store.get("Pod", "a", "evil")
    ref = Ref(kind_id(victim), "b", "v")
    store.delete(ref, propagation=propagation)
    assert store.get("Pod", "a", "evil") == before
    assert store.get(*ref) is None


@pytest.mark.parametrize(
    "victim", [CONFIG_MAP, VICTIMS["QueueJob"], VICTIMS["ReplicaSet"]], ids=lambda obj: obj["kind"]
)
def test_s1_an_owner_of_another_namespace_does_not_exist(victim: Obj) -> None:
    """As in Kubernetes: the child is collected, and one with another owner loses the reference."""
    store = Store(lambda: START, (), auto_namespaces=True)
    bootstrap(store)
    store.create(of_b(victim))
    store.create({**CONFIG_MAP, "metadata": {"name": "own", "namespace": "a", "uid": "own"}})
    store.create(child(victim, m.pod("evil")))
    both = child(victim, m.pod("both"))
    both["metadata"]["ownerReferences"].append({"apiVersion": "v1", "kind": "ConfigMap", "name": "own", "uid": "own"})
    store.create(both)
    store.collect_garbage()
    assert store.get("Pod", "a", "evil") is None
    kept = store.get("Pod", "a", "both")
    assert kept is not None
    assert [one["uid"] for one in kept["metadata"]["ownerReferences"]] == ["own"]


def test_s1_an_owner_without_a_namespace_keeps_children_anywhere() -> None:
    store = Store(lambda: START, (), auto_namespaces=True)
    bootstrap(store)
    store.create(m.node("v", 1) | {"metadata": {"name": "v", "uid": UID}})
    store.create(child(m.node("v", 1), m.pod("p")))
    store.collect_garbage()
    assert store.get("Pod", "a", "p") is not None
    store.delete(Ref("Node", "", "v"))
    store.collect_garbage()
    assert store.get("Pod", "a", "p") is None


# ---- what people look at


def test_s1_the_overview_reads_a_job_only_for_a_podgroup_of_its_own_namespace() -> None:
    victim = of_b(m.job("v", m.role("w", 2)))
    victim["status"] = {"state": {"phase": "Failed"}}
    group = child(victim, m.podgroup("g", 1))
    overview = read_overview({volcano.JOB: [victim], volcano.POD_GROUP: [group], "Pod": []})
    assert [(row.gang, row.state) for row in overview.gangs] == [("a/v", "Waiting")]


def test_s1_explain_finds_only_pods_of_the_same_namespace() -> None:
    victim = of_b(VICTIMS["ReplicaSet"])
    evil = child(victim, m.pod("evil"))
    evil["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [victim, evil]
    found = explain(objects, START, parse(None), "b/v")
    assert found is not None
    assert "evil" not in found.gang


def test_s1_capture_counts_a_job_whose_pods_are_said_to_be_in_another_namespace() -> None:
    victim = of_b(m.job("v", m.role("w", 2)))
    victim["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [
        {"status": phase, "lastTransitionTime": f"2026-01-01T00:0{at}:00Z"}
        for at, phase in ((1, "Running"), (2, "Completed"))
    ]
    victim["status"] = {"state": {"phase": "Completed", **conditions[1]}, "conditions": conditions}
    pods = [child(victim, m.pod("evil"))]
    alone, attacked = (capture({volcano.JOB: [victim], "Pod": more}, parse(None)) for more in ([], pods))
    assert [job.id for job in alone.jobs] == [job.id for job in attacked.jobs] == ["b/v"]


def test_s1_an_object_without_effect_is_named_though_another_namespace_has_an_owner_of_its_name() -> None:
    train = custom("Train")
    train["metadata"]["namespace"] = "b"
    pod = child(custom("Train"), m.pod("p"))
    found = without_effect([train, pod], settings_of(parse(None), alone=True))
    assert [(one.namespace, one.name) for one in found] == [("b", "v")]
