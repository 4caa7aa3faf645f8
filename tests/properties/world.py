"""A whole cluster that is driven step by step, with a check of every write of the scheduler.

What was done is kept as documents, so that the same can be run again by an ordinary simulation.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from enbloc.api import core
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, controller_of
from enbloc.api.requests import pod_requests
from enbloc.api.writes import BindPod, EmitEvent, Patch, Write
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.settle import Plane
from enbloc.cluster.port import Watch
from enbloc.config import Config, parse, scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.engine.core.tables.commit_marks import covers, mark_of
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.engine import Engine
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.own_annotations import COMMITTED
from enbloc.gangs.registry import GangRegistry
from enbloc.runtime.control_plane import ControlPlane
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import Scenario, read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import NANO, SECOND, parse_quantity

CONFIG = parse(None)


class Crash(BaseException):
    """The scheduler's process ends here."""


class Overseer:
    """A cluster that checks each Binding as it is made (I1, I2, I3), and may cut its client off."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.engine: Engine | None = None
        self.bound: Counter[str] = Counter()
        self.committed: dict[GangKey, set[str]] = {}
        self.open: dict[GangKey, str] = {}
        """Gangs of which some are bound by a decision whose commit is still to come."""
        self.writes_left: int | None = None
        self.refuse: Callable[[Write], bool] = lambda write: False

    def list(self, kind: str, namespace: str | None = None) -> tuple[list[Obj], int]:
        return self.store.list(kind, namespace)

    def watch(self, kinds: Collection[str] | None, since: int) -> Watch:
        return self.store.watch(kinds, since)

    def execute(self, write: Write) -> Obj | None:
        if self.writes_left is not None:
            if self.writes_left == 0:
                raise Crash
            self.writes_left -= 1
        if isinstance(write, BindPod):
            return self._bind(write)
        return self.store.execute(write)

    def _bind(self, write: BindPod) -> Obj | None:
        pod = self.store.execute(write)
        assert pod is not None
        self.bound[write.uid] += 1
        assert self.bound[write.uid] == 1, f"I3: {write.name} was bound twice"
        over = oversubscribed(self.store, write.node, pod)
        assert not over, f"I2: {write.name} oversubscribes {write.node}: {over}"
        assert self.engine is not None
        gang = self.engine.state.tasks[write.uid].gang.key
        mark = write.annotations.get(COMMITTED, "")
        if not mark:
            self.open[gang] = write.name
            return pod
        minima = self.engine.state.gangs[gang].minima
        known = self.committed.setdefault(gang, set())
        whole = not missing(self.store, gang, self.engine)
        assert whole or any(covers(each, minima) for each in known), f"I1: {gang} was committed without its minima"
        assert whole or gang not in self.open, f"I1: {gang} was begun again"
        self.open.pop(gang, None)
        known.add(mark)
        for mate in self.engine.parts.units.mates(self.engine.state.gangs[gang]):  # one mark commits a whole group
            if mate.key in self.open:
                assert not missing(self.store, mate.key, self.engine), f"I1: {mate} was committed without its minima"
                del self.open[mate.key]
                self.committed.setdefault(mate.key, set()).add(mark_of(mate.minima))
        return pod

    def cycle_ended(self) -> None:
        assert not self.open, f"I1: partly started: {self.open}"


def requests_of(pod: Obj) -> dict[str, int]:
    return {"pods": NANO, **pod_requests(view(pod["spec"], core.PodSpec))}


def oversubscribed(store: Store, node: str, pod: Obj) -> list[str]:
    """The resources that the pod asks for and of which more is asked for on its node than the node has."""
    found = store.get("Node", "", node)
    if found is None:
        return ["the node does not exist"]
    room = {name: parse_quantity(text).nanos for name, text in found["status"]["allocatable"].items()}
    used: Counter[str] = Counter()
    for other in store.list("Pod")[0]:
        if other["spec"].get("nodeName") == node and other["status"].get("phase") not in ("Succeeded", "Failed"):
            used.update(requests_of(other))
    return [name for name, amount in requests_of(pod).items() if amount and used[name] > room.get(name, 0)]


def members(store: Store, gang: GangKey) -> list[Obj]:
    if gang.dialect == "arbitrator":
        return [pod for pod in store.list("Pod")[0] if (controller_of(pod) or {}).get("uid") == gang.name]
    return [pod for pod in store.list("Pod")[0] if GangRegistry().member(pod).gang == gang]


def missing(store: Store, gang: GangKey, engine: Engine) -> dict[str, int]:
    """What a gang lacks of its minima, counted from the API (but for the minimum of a gang by annotation)."""
    group = store.get("PodGroup.scheduling.volcano.sh", gang.namespace, gang.name)
    spec = group["spec"] if group is not None and gang.dialect != "pod" else {"minMember": 1}
    if gang.dialect == "arbitrator":
        spec = {"minMember": least_of_spec(store, gang)}
    if gang.dialect == "koordinator":
        spec = {"minMember": engine.state.gangs[gang].minima.total}
    occupied: Counter[str] = Counter()
    for pod in members(store, gang):
        ended = pod["status"].get("phase") if "status" in pod else ""
        if ended == "Failed" or pod["metadata"].get("deletionTimestamp"):
            continue
        if ended == "Succeeded" or pod["spec"].get("nodeName"):
            occupied[GangRegistry().member(pod).role] += 1
    wanted = {role: least - occupied[role] for role, least in (spec.get("minTaskMember") or {}).items()}
    wanted[""] = spec["minMember"] - occupied.total()
    return {role: count for role, count in wanted.items() if count > 0}


def least_of_spec(store: Store, gang: GangKey) -> int:
    """The minimum in the SchedulingSpec of an owner, which must exist; the oldest of them."""
    found = min(
        (
            (spec["metadata"]["creationTimestamp"], spec["metadata"]["name"], spec["spec"].get("minAvailable") or 0)
            for spec in store.list("SchedulingSpec.arbitrator.incubator.k8s.io", gang.namespace)[0]
            if (controller_of(spec) or {}).get("uid") == gang.name
        ),
    )
    return found[-1]


class Overseen(ControlPlane):
    """A control plane whose every cycle is looked at."""

    def __init__(self, overseer: Overseer, config: Config) -> None:
        super().__init__(overseer, config, scheduler_names(config, alone=True), simulated_key_pair)
        self.overseer = overseer

    def schedule(self, now: int) -> bool:
        self.overseer.engine = self.scheduler.engine
        self.overseer.open.clear()
        wrote = super().schedule(now)
        if self.overseer.writes_left is None:
            self.overseer.cycle_ended()
        return wrote


class ReadOnly:
    """A cluster that takes no writes, and remembers which were tried; conditions of gangs that wait do not count."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.tried: list[Write] = []

    def list(self, kind: str, namespace: str | None = None) -> tuple[list[Obj], int]:
        return self.store.list(kind, namespace)

    def watch(self, kinds: Collection[str] | None, since: int) -> Watch:
        return self.store.watch(kinds, since)

    def execute(self, write: Write) -> Obj | None:
        said = isinstance(write, EmitEvent) or (
            isinstance(write, Patch) and write.subresource == "status" and [*write.patch["status"]] == ["conditions"]
        )
        if not said:
            self.tried.append(write)
        return None


def fresh_scheduler(store: Store, config: Config) -> tuple[ControlPlane, ReadOnly]:
    """A control plane that has just listed everything, as after a restart."""
    cluster = ReadOnly(store)
    return ControlPlane(cluster, config, scheduler_names(config, alone=True), simulated_key_pair), cluster


class World:
    """A simulation whose next step is given while it runs."""

    def __init__(self, config: Config = CONFIG) -> None:
        self.config = config
        self.overseer: Overseer | None = None
        self.documents: list[Obj] = []
        self.sim = Simulation(Scenario([]), config, self._plane)
        self.sim._has_end = True
        self._seconds = 0

    def _plane(self, store: Store, config: Config) -> Plane:
        if self.overseer is None:
            self.overseer = Overseer(store)
        return Overseen(self.overseer, config)

    @property
    def store(self) -> Store:
        return self.sim._store

    @property
    def plane(self) -> Overseen:
        assert isinstance(self.sim._plane, Overseen)
        return self.sim._plane

    @property
    def engine(self) -> Engine:
        return self.plane.scheduler.engine

    @property
    def now(self) -> int:
        return self.sim._clock.now_ns

    def do(self, *values: Obj, after: int = 1) -> None:
        """Lets time pass, then all of this happens at one instant."""
        self._seconds += after
        at = f"{self._seconds}s"
        documents = [at_time(value, at) for value in values]
        for document in documents:
            scenario = read_scenario([Document("f", 1, document)])
            self.documents.append(document)
            order = len(self.documents)
            for event in scenario.events:
                heapq.heappush(self.sim._player._upcoming, (event.at_ns, order, event))
        self.sim._run(self._seconds * SECOND, None)

    def step(self, do: str, kind: str = "", name: str = "", after: int = 1, **fields: Any) -> None:
        self.do(step(do, kind, name, **fields), after=after)

    def pods(self) -> list[Obj]:
        return self.store.list("Pod")[0]

    def result(self) -> Result:
        return self.sim._result("until", "")


API_VERSIONS = {
    "Job": "batch.volcano.sh/v1alpha1",
    "PodGroup": "scheduling.volcano.sh/v1beta1",
    "Queue": "scheduling.volcano.sh/v1beta1",
    "QueueJob": "arbitrator.incubator.k8s.io/v1alpha1",
    "SchedulingSpec": "arbitrator.incubator.k8s.io/v1alpha1",
}


def step(do: str, kind: str = "", name: str = "", at: str = "0s", **fields: Any) -> Obj:
    found: Obj = {"apiVersion": "sim.enbloc.dev/v1", "kind": "Step", "at": at, "do": do, **fields}
    if kind:
        found["target"] = {"apiVersion": API_VERSIONS.get(kind, "v1"), "kind": kind, "name": name}
    return found


def at_time(value: Obj, at: str) -> Obj:
    if value["kind"] == "Step":
        return {**value, "at": at}
    metadata = value["metadata"]
    annotations = {**(metadata.get("annotations") or {}), "sim.enbloc.dev/at": at}
    return {**value, "metadata": {**metadata, "annotations": annotations}}


def replay(documents: list[Obj], config: Config, until: int) -> Result:
    scenario = read_scenario([Document("f", number, value) for number, value in enumerate(documents, 1)])
    return Simulation(scenario, config).run(until)


def bound_lines(result: Result) -> list[str]:
    return [str(line) for line in result.timeline if line.what in ("bound", "evicted")]


def _lasting(gang: GangState) -> GangSpec:
    """With what was decided since. Of pods without their PodGroup the age does not matter: they are not attempted."""
    spec = msgspec.structs.replace(gang.spec, observed=gang.status)
    return msgspec.structs.replace(spec, created_ns=0) if spec.problem else spec


def seen(engine: Engine) -> dict[str, Any]:
    """What an engine knows, in words that do not depend on when it learned it."""
    state = engine.state
    names = state.resources.names
    return {
        "nodes": {
            name: {names[c]: int(state.nodes.free[c, row]) for c in range(len(names)) if state.nodes.free[c, row]}
            for name, row in sorted(state.nodes.rows.items())
        },
        "rank": sorted(state.nodes.rows, key=state.nodes.rows.__getitem__),
        "queues": {
            queue.name: [
                {names[c]: int(vector[c]) for c in range(len(names)) if c < len(vector) and vector[c]}
                for vector in (queue.used, queue.demand)
            ]
            for queue in sorted(state.queues.queues.values(), key=lambda queue: queue.name)
            if queue.exists
        },
        "gangs": {
            gang.key: (_lasting(gang), gang.priority, gang.satisfied, gang.need.missing, sorted(gang.tasks))
            for gang in sorted(state.gangs.values(), key=lambda gang: gang.key)
            if gang.spec.object is not None or any(task.ours or task.node for task in gang.tasks.values())
        },
        "tasks": {
            uid: (TaskStatus(task.status).name, task.node, task.role, task.order)
            for uid, task in sorted(state.tasks.items())
            if task.ours or task.node
        },
    }
