"""Objects come and go under ever new names; when they are gone nothing is left of them in anybody's memory."""

from __future__ import annotations

import copy
import gc
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref, name_of
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.events import EventIndex
from enbloc.cluster.embedded.api.watch_log import Bounds, WatchLog
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.cluster.embedded.nodes import node_player as played
from enbloc.config import parse, scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.engine import events
from enbloc.engine.core.queueing import scheduling_queue
from enbloc.engine.core.tables import nodes
from enbloc.engine.core.tables.classes import ClassTable
from enbloc.engine.core.tables.queues import QueueTree
from enbloc.gangs import koordinator
from enbloc.gangs.record_digests import SIMULATED
from enbloc.runtime.control_plane import ControlPlane, controllers
from enbloc.runtime.translate import Translator
from enbloc.sim.clock import EPOCH
from enbloc.units import SECOND
from support import manifests as m
from support.memory_sizes import sizes

ACTIONS = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
CONFIG: Obj = {
    "actions": [
        *({"name": name} for name in ACTIONS),
        {"name": "reserve", "arguments": {"starvingJobTimeThreshold": 3, "reservedNodePercent": 100}},
    ]
}
LAST = ("Node", "Queue", "Namespace", "PriorityClass")
"""What others need goes after them."""

MAY_VARY = ("WatchEvent", "WatchLog.", "EventIndex.", "Ref", "EventKey", "Evictable.", "Task.spec")
"""What happened last, and was said last, is remembered up to a bound, and differs from time to time. So does what the
ledger counted when it was last asked. A pod's spec is counted where it is found first: in an event, or in a task."""


class World:
    """A cluster whose control plane runs on, and another one beside it that only looks, as one that does not lead."""

    def __init__(self) -> None:
        self.now = EPOCH
        config = parse(CONFIG)
        self.store = make_store(lambda: self.now, config)
        provide_queues(self.store, ())
        self.nodes = played.NodePlayer(self.store)
        names = scheduler_names(config, alone=True)
        self.plane = ControlPlane(self.store, config, names, simulated_key_pair)
        self.looker = Translator(config, names, SIMULATED)
        self.lookers = [self.looker, *controllers(simulated_key_pair)]
        self._watch = self.store.watch(None, self.store.version)
        self.add(m.CRDJOB_DEFINITION, *(m.node(f"base{number}", 32, "64Gi") for number in range(4)))

    def add(self, *objects: Obj) -> None:
        for obj in objects:
            self.store.create(copy.deepcopy(obj))
            if obj["kind"] in LAST:
                self.settle()

    def remove(self, objects: Iterable[Obj]) -> None:
        for obj in objects:
            try:
                self.store.delete(ref_of(obj))
            except Refused as why:
                if why.code != 404:
                    raise

    def settle(self) -> None:
        version = -1
        while version != self.store.version:
            version = self.store.version
            self.store.collect_garbage()
            self.store.settle()
            self.nodes.observe()
            self.nodes.run(self.now)
            self.plane.reconcile(self.now)
            self.plane.schedule(self.now)
            for event in self._watch.drain():
                self._look(event)
            self.looker.read_changed()  # as a live control plane that does not lead
            self.looker.engine.compact()

    def _look(self, event: WatchEvent) -> None:
        for looker in self.lookers:
            if event.kind in looker.kinds:
                looker.observe(event)

    def pass_time(self, seconds: int) -> None:
        end = self.now + seconds * SECOND
        self.settle()
        while True:
            dues = [at for at in (self.nodes.due(), self.plane.due()) if at is not None and at > self.now]
            if min(dues, default=end) >= end:
                break
            self.now = min(dues)
            self.settle()
        self.now = end
        self.settle()

    def sizes(self) -> Counter[str]:
        gc.collect()
        return sizes(self.plane, self.store, self.nodes, self.lookers)


def _named(api_version: str, kind: str, name: str, **fields: Any) -> Obj:
    metadata = {"name": name} if kind in (*LAST, "StorageClass") else {"name": name, "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def _claim(name: str, storage: str) -> Obj:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return _named("v1", "PersistentVolumeClaim", name, spec={**asked, "storageClassName": storage})


def _storage(name: str) -> Obj:
    made = {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}
    return _named("storage.k8s.io/v1", "StorageClass", name, **made)


def _budget(name: str) -> Obj:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    return _named("policy/v1", "PodDisruptionBudget", name, spec=spec)


def _command(name: str, action: str, job: str) -> Obj:
    target = {"apiVersion": m.BATCH, "kind": "Job", "name": job}
    return _named("bus.volcano.sh/v1alpha1", "Command", name, action=action, target=target)


def _within(namespace: str, *objects: Obj) -> list[Obj]:
    return [one | {"metadata": one["metadata"] | {"namespace": namespace}} for one in objects]


def volcano(u: str) -> list[Obj]:
    retried = [{"event": "PodFailed", "action": "RestartJob"}]
    patient = [{"event": "PodFailed", "action": "AbortJob", "timeout": "3s"}]
    return [
        m.queue(f"q{u}", capability={"cpu": "10"}, guarantee={"cpu": "1"}),
        m.job(f"plain{u}", m.role("w", 2, run_time="5s"), m.role("m", 1, run_time="3s"), queue=f"q{u}"),
        m.job(f"dressed{u}", m.role("w", 2, run_time="5s"), plugins={"env": [], "svc": []}, ttlSecondsAfterFinished=20),
        m.job(f"again{u}", m.role("w", 2, run_time="2s", exit_code="1,0"), policies=retried),
        m.job(f"late{u}", m.role("w", 2, run_time="4s", exit_code="1"), policies=patient),
        m.job(
            f"waves{u}", m.role("a", 1, run_time="9s"), {**m.role("b", 2, run_time="5s"), "dependsOn": {"name": ["a"]}}
        ),
        m.job(f"big{u}", m.role("w", 300)),
        m.job(f"stopped{u}", m.role("w", 1)),
        _command(f"stop{u}", "AbortJob", f"stopped{u}"),
        _command(f"odd{u}", "Nonsense", f"stopped{u}"),
        *m.gang(f"gang{u}", 3, run_time="5s"),
        *m.gang(f"waits{u}", 2, cpu=500),
        *m.gang(f"oversized{u}", 2, cpu=500, resources={"cpu": "1000"}),
        *m.gang(f"elastic{u}", 4, 2, run_time="5s", resources={"cpu": "2"}),
        *m.pods(2, f"lost{u}-", group=f"none{u}"),
        *m.pods(2, f"stray{u}-", annotations={"scheduling.volcano.sh/queue-name": f"none{u}"}),
    ]


def others(u: str) -> list[Obj]:
    both = [f"default/one{u}", f"default/two{u}"]
    known, unknown = m.crdjob_owner(f"c{u}", f"u{u}"), m.crdjob_owner(f"d{u}", f"v{u}")
    return [
        *m.koordinator_gang(f"k{u}", 3, run_time="5s"),
        *m.koordinator_gang(f"differ{u}", 2, 2, run_time="5s"),
        *m.koordinator_gang(f"differ{u}", 1, 3, first=5, run_time="5s"),
        *m.koordinator_gang(f"held{u}", 3, cpu=50, mode=m.NON_STRICT, wait="4s"),
        *m.koordinator_gang(f"fits{u}", 3, cpu=20, mode=m.NON_STRICT, wait="4s", run_time="2s"),
        *m.koordinator_gang(f"one{u}", 2, groups=both, run_time="5s"),
        *m.koordinator_gang(f"two{u}", 2, groups=both, run_time="5s"),
        *m.koordinator_gang(f"half{u}", 2, groups=[f"default/half{u}", f"default/never{u}"], wait="5s"),
        m.pod(f"bad{u}", annotations=m.koordinator_annotations(f"Bad_{u}", "many")),
        m.sigs_podgroup(f"kp{u}", 2),
        *m.labelled_pods(f"kp{u}", 2, run_time="5s"),
        m.sigs_podgroup(f"sp{u}", 2, api=m.PLUGINS, minResources={"cpu": "2"}, scheduleTimeoutSeconds=5),
        *m.labelled_pods(f"sp{u}", 2, m.PLUGINS_LABEL, run_time="5s"),
        m.native_podgroup(f"own{u}", {"gang": {"minCount": 2}}),
        *m.native_pods(f"own{u}", 2, run_time="5s"),
        m.queue_job(f"qj{u}", m.role("w", 2, run_time="5s"), minimum=2),
        m.queue_job(f"again{u}", m.role("w", 2, run_time="2s", exit_code="1,0"), minimum=2),
        m.crdjob(f"c{u}", f"u{u}"),
        m.scheduling_spec(f"c{u}", 2, by=known),
        *m.owned(*m.pods(2, f"c{u}-", run_time="5s"), by=known),
        *m.owned(*m.pods(2, f"d{u}-", cpu=500), by=unknown),
        m.scheduling_spec(f"d{u}", 2, by=unknown),
        *m.pods(1, f"kar{u}-", scheduler="kar-scheduler"),
    ]


def surroundings(u: str) -> list[Obj]:
    number = int(u.removeprefix("x"))
    apart = {"labelSelector": {"matchLabels": {"app": u}}, "topologyKey": f"zone-{u}"}
    near = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": apart}]}
    spread = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **apart, "topologyKey": "kubernetes.io/hostname"}]
    port = {"name": "m", "image": "b", "ports": [{"containerPort": 80, "hostPort": 1000 + number}]}
    namespace = _named("v1", "Namespace", f"ns{u}")
    namespace["metadata"]["labels"] = {"team": u}
    return [
        m.node(f"n{u}", labels={f"zone-{u}": u}, taints=[{"key": "for", "value": u, "effect": "NoSchedule"}]),
        namespace,
        m.priority_class(f"low{u}", 10 + number),
        m.priority_class(f"high{u}", 1000 + number),
        *_within(
            f"ns{u}",
            *m.gang("g", 2, run_time="5s"),
            _budget(u),
            m.resource_quota(10),
            m.job("j", m.role("w", 1, run_time="4s")),
        ),
        *_within(
            f"ns{u}",
            m.queue_job("q", m.role("w", 1, run_time="4s"), minimum=1),
            *m.koordinator_gang("k", 2, run_time="5s"),
        ),
        *m.gang(f"near{u}", 2, affinity={"podAffinity": near}),
        *m.gang(f"spread{u}", 2, labels={"app": u}, topologySpreadConstraints=spread),
        *m.gang(f"odd{u}", 2, memory=f"{number + 1}Mi", run_time="5s"),
        *m.gang(f"nowhere{u}", 2, nodeSelector={f"key{u}": u}),
        *m.pods(1, f"restarts{u}-", run_time="1s", exit_code="1,1,0", restartPolicy="OnFailure"),
        m.pod(f"port{u}", run_time="5s", containers=[port]),
        m.pod(f"there{u}", nodeSelector={f"zone-{u}": u}, tolerations=[{"operator": "Exists"}]),
        _storage(f"st{u}"),
        _claim(f"vc{u}", f"st{u}"),
        m.pod(f"vp{u}", run_time="5s", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": f"vc{u}"}}]),
        _budget(u),
        *m.pods(2, f"kept{u}-", run_time="5s", labels={"app": u}),
        m.job(f"lo{u}", m.role("w", 40, 1, cpu=4), priority=f"low{u}"),
        m.job(f"hi{u}", m.role("w", 3, cpu=30, run_time="4s"), priority=f"high{u}"),
    ]


def live(world: World, made: list[Obj]) -> None:
    """All of it comes, runs, waits and goes."""
    world.add(*made)
    world.pass_time(12)
    world.remove(obj for obj in made if obj["kind"] not in ("Pod", *LAST))
    world.settle()
    world.remove(obj for obj in made if obj["kind"] == "Pod")
    world.pass_time(31)
    kept = (*LAST, "CustomResourceDefinition")
    world.remove([obj for obj in world.store.objects() if obj["kind"] not in kept])
    world.pass_time(31)
    world.remove(obj for obj in made if obj["kind"] in LAST)
    world.pass_time(2)


@pytest.fixture
def tight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is remembered up to a bound is soon at it."""
    for table in (ClassTable, QueueTree):
        monkeypatch.setattr(table, "needs_compaction", lambda table: True)
    monkeypatch.setattr(nodes, "_STALE_BOUND", 2)
    monkeypatch.setattr(nodes, "_DEAD_ROWS", 1)
    monkeypatch.setattr(events, "VOLUME_CLAIMS_BOUND", 1)
    monkeypatch.setattr(scheduling_queue, "STALE_BOUND", 4)
    monkeypatch.setattr(koordinator, "_STALE_BOUND", 4)
    monkeypatch.setattr(played, "NAMES_BOUND", 1)
    monkeypatch.setattr(played, "STALE_SLACK", 4)
    _let(monkeypatch, EventIndex, in_total=8)
    _let(monkeypatch, WatchLog, bounds=Bounds(history=8, unread=100_000))


def _let(monkeypatch: pytest.MonkeyPatch, owner: type, **bounds: Any) -> None:
    plain: Callable[..., None] = owner.__init__  # type: ignore[misc]
    monkeypatch.setattr(owner, "__init__", lambda self, *args: plain(self, **bounds))


def grown(world: World, rounds: Callable[[int], None], by: int = 1) -> dict[str, tuple[int, ...]]:
    """What is larger after the third lap than it was after any before, and by how much at least it would be."""
    found: list[Counter[str]] = []
    for lap in range(3):
        rounds(lap)
        found.append(world.sizes())
    laps = {path: (found[0][path], found[1][path], size) for path, size in found[2].items()}
    return {
        path: counts
        for path, counts in laps.items()
        if counts[2] >= by + max(counts[:2]) and not path.startswith(MAY_VARY)
    }


@pytest.mark.usefixtures("tight")
@pytest.mark.parametrize("kinds", [volcano, others, surroundings])
def test_nothing_is_left_of_what_is_gone(kinds: Callable[[str], list[Obj]]) -> None:
    world = World()
    before = len(list(world.store.objects()))
    assert grown(world, lambda lap: live(world, kinds(f"x{lap}"))) == {}
    assert len([obj for obj in world.store.objects() if obj["kind"] != "Event"]) == before


@pytest.mark.usefixtures("tight")
def test_nothing_is_left_beside_what_stays() -> None:
    """Gangs come and go behind one that waits, pods come and go in gangs that stay, and nodes change."""
    world = World()
    world.add(
        *m.gang("waits", 2, cpu=500),
        *m.gang("oversized", 2, cpu=500, resources={"cpu": "1000"}),
        *m.koordinator_gang("stays", 3, 2),
        *m.koordinator_gang("holds", 2, cpu=500, mode=m.NON_STRICT, wait="100h"),
        m.job("job", m.role("w", 3, 1)),
        m.queue_job("qj", m.role("w", 2), minimum=1),
        m.pod("asks", nodeSelector={"beat": "no"}),
    )

    def come_and_go(u: str) -> None:
        behind = [*m.gang(f"waits{u}", 2, cpu=500), *m.gang(f"oversized{u}", 2, cpu=500, resources={"cpu": "1000"})]
        within = [
            m.pod(f"stays-{u}", annotations=m.koordinator_annotations("stays", 2)),
            m.pod(f"holds-{u}", 500, annotations=m.koordinator_annotations("holds", 2)),
        ]
        world.add(*behind, *within, m.pod(f"long{u}", run_time="1000h"))
        world.pass_time(2)
        world.store.evict("default", "job-w-1", "", "Moved", "")
        beat = [{"key": "beat", "value": u, "effect": "PreferNoSchedule"}]
        world.store.patch(Ref("Node", "", "base0"), {"metadata": {"labels": {"beat": u}}, "spec": {"taints": beat}})
        world.pass_time(2)
        world.remove(obj for obj in [*behind, *world.store.list("Pod")[0]] if u in name_of(obj))
        world.pass_time(31)

    def rounds(lap: int) -> None:
        for number in range(20):
            come_and_go(f"x{lap}x{number}x")

    assert grown(world, rounds, by=20) == {}
