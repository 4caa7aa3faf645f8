"""The cluster of `bench live`: what is created on it, a loop that only binds, and a watch that sees Bindings.

Everything that was created is deleted at the end, also after a failure. Nodes need no kubelet.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

from benchmarks.live_load import KIND_OF, Gang, Load, bare_pod, gang_of, node
from benchmarks.scheduler_process import SchedulerProcesses
from enbloc.api.meta import Obj, Ref, name_of, namespace_of, uid_of
from enbloc.api.writes import BindPod, Create, Delete, Refused, WatchEvent
from enbloc.cluster.kube import KubeCluster
from enbloc.runtime.write_queue import MOST

WAIT_S: Final = 900.0

Progress = Callable[[str], None]


class NotServed(Exception):
    """The cluster does not serve what the bench needs; the message says what to do."""


class Seen:
    """Bindings as a watch shows them."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self.complete_s: dict[str, float] = {}
        """Gang → when all of its pods were created, as the API server answered; of a Job's pods by the watch."""
        self.bound_s: dict[str, float] = {}
        """Gang → when all of its pods were bound."""
        self.first_s = self.last_s = 0.0
        self.at_first: Callable[[], None] = lambda: None
        """Called at the first Binding."""
        self.bound = 0
        self._sizes = {gang.name: gang.size for gang in load.gangs()}
        self._bound_of: Counter[str] = Counter()
        self._created_of: Counter[str] = Counter()
        self._done: set[str] = set()
        self._known: set[str] = set()

    def observe(self, event: WatchEvent) -> None:
        if event.kind != "Pod" or namespace_of(event.obj) != self._load.namespace or event.type == "DELETED":
            return
        uid, gang = uid_of(event.obj), gang_of(name_of(event.obj))
        if gang not in self._sizes:
            return
        now_s = time.monotonic()
        if uid not in self._known:
            self._known.add(uid)
            self._created_of[gang] += 1
            if self._created_of[gang] == self._sizes[gang]:
                self.complete_s.setdefault(gang, now_s)
        if event.obj["spec"].get("nodeName") and uid not in self._done:
            self._done.add(uid)
            self.bound += 1
            if not self.first_s:
                self.first_s = now_s
                self.at_first()
            self.last_s = now_s
            self._bound_of[gang] += 1
            if self._bound_of[gang] == self._sizes[gang]:
                self.bound_s[gang] = now_s

    @property
    def is_complete(self) -> bool:
        return self.bound >= self._load.pods

    def waits_s(self, begun_s: float) -> list[float]:
        """Per gang, sorted: from its last pod's creation, or the start if that was later, to its last Binding."""
        return sorted(at - max(self.complete_s[name], begun_s) for name, at in self.bound_s.items())

    @property
    def partly_started(self) -> int:
        return sum(0 < count < self._sizes[name] for name, count in self._bound_of.items())


class Bare(NamedTuple):
    """Loops that only create and only bind: the limit of the API server."""

    pods: int
    create_s: float
    bind_s: float

    def with_another(self, other: Bare) -> Bare:
        return Bare(self.pods + other.pods, self.create_s + other.create_s, self.bind_s + other.bind_s)

    @property
    def binds_per_s(self) -> float:
        return self.pods / self.bind_s

    @property
    def created_and_bound_per_s(self) -> float:
        """The limit where the pods are created meanwhile: by a controller, or as they arrive."""
        return self.pods / (self.create_s + self.bind_s)


class LiveBench:
    """The objects created on the cluster, and their deletion."""

    def __init__(self, cluster: KubeCluster, progress: Progress, wait_s: float = WAIT_S) -> None:
        """`wait_s`: how long a scheduler may take for all of it."""
        self._cluster = cluster
        self._progress = progress
        self._wait_s = wait_s
        self.namespace = self.label = f"enbloc-bench-{secrets.token_hex(3)}"
        """The label of the nodes stays that of the first namespace."""
        self._nodes: list[str] = []
        self._has_namespace = False
        self._dialects: set[str] = set()

    async def make_nodes(self, count: int) -> None:
        self._progress(f"makes {count} nodes, in namespace {self.namespace} pods")
        await self._make_namespace()
        self._nodes = [f"{self.label}-{index}" for index in range(count)]
        await many(lambda name: self._cluster.execute(Create(node(name, self.label))), self._nodes)

    async def change_namespace(self) -> None:
        """Another namespace for the next scheduler, on the same nodes: nothing of the last one is there."""
        await self._clean_namespace()
        self.namespace = f"enbloc-bench-{secrets.token_hex(3)}"
        await self._make_namespace()

    async def _make_namespace(self) -> None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}
        await self._cluster.execute(Create(namespace))
        self._has_namespace = True

    async def check_served(self, dialect: str) -> None:
        kind = KIND_OF.get(dialect)
        if kind is None:
            return
        await self._cluster.list(kind, self.namespace)  # which looks the kind up
        if not self._cluster.serves(kind):
            raise NotServed(f"the cluster does not serve {kind}: `enbloc install` has definitions of ours")

    # ---- the loop that only binds

    async def bare(self, count: int) -> Bare:
        """The seconds that a loop needs that only binds, and those of creating its pods before."""
        begun = time.monotonic()
        pods = await many(
            self._create, [bare_pod(f"bare-{index}", self.namespace, self.label) for index in range(count)]
        )
        created = time.monotonic()
        self._progress(f"binds {count} pods in a bare loop")
        binds = [self._binding(pod, index) for index, pod in enumerate(pods)]
        first = time.monotonic()
        await many(self._cluster.execute, binds)
        took = Bare(count, created - begun, time.monotonic() - first)
        await self.delete_gangs(None)
        return took

    async def bare_arrivals(self, load: Load, rate: float) -> list[float]:
        """Gangs arrive at a rate and are bound as soon as their last pod exists: the time of each, sorted."""
        self._progress(f"binds {load.pods} pods that arrive at {rate:.0f} a second in a bare loop")
        waits: list[float] = []
        binding: list[asyncio.Task[None]] = []

        async def bind(pods: list[Obj], at_s: float) -> None:
            await many(self._cluster.execute, [self._binding(pod, index) for index, pod in enumerate(pods)])
            waits.append(time.monotonic() - at_s)

        async def arrived(_: Gang, pods: list[Obj]) -> None:
            binding.append(asyncio.get_running_loop().create_task(bind(pods, time.monotonic())))

        await self._arrive(load._replace(scheduler="none", dialect="koordinator"), rate, arrived)
        await asyncio.gather(*binding)
        await self.delete_gangs(None)
        return sorted(waits)

    def _binding(self, pod: Obj, index: int) -> BindPod:
        target = self._nodes[index % len(self._nodes)]
        return BindPod(self.namespace, name_of(pod), uid_of(pod), target, {"bench": "bare"})

    # ---- gangs

    async def make_backlog(self, load: Load, seen: Seen) -> None:
        self._progress(f"makes {load.pods} pods in gangs of {load.gang_size} ({load.dialect})")
        self._dialects.add(load.dialect)

        async def make(gang: Gang) -> None:
            await self._make(gang, seen)

        await many(make, load.gangs(), MOST // 4 if load.gang_size > 1 else MOST)

    async def arrivals(self, load: Load, seen: Seen, rate: float) -> None:
        self._progress(f"makes {load.pods} pods in gangs of {load.gang_size} ({load.dialect}), {rate:.0f} a second")

        async def arrived(gang: Gang, pods: list[Obj]) -> None:
            if pods:
                seen.complete_s[gang.name] = time.monotonic()

        await self._arrive(load, rate, arrived)

    async def warm_up(self, load: Load, process: SchedulerProcesses) -> None:
        """Until the scheduler has bound a gang of one pod: it is running by then."""
        gang = load.one_more()
        self._dialects.add(load.dialect)
        if gang.group is not None:
            await self._create(gang.group)
        await many(self._create, gang.pods)
        until = time.monotonic() + self._wait_s
        while time.monotonic() < until:
            why = process.failure()
            if why is not None:
                raise RuntimeError(why)
            pods = await self._cluster.list("Pod", self.namespace)
            if any(gang_of(name_of(pod)) == gang.name and pod["spec"].get("nodeName") for pod in pods):
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"it did not bind a gang of one pod within {self._wait_s:g} s")

    async def _arrive(self, load: Load, rate: float, arrived: Callable[[Gang, list[Obj]], Awaitable[None]]) -> None:
        begun_s, created = time.monotonic(), 0
        making: set[asyncio.Task[None]] = set()

        async def make(gang: Gang) -> None:
            if gang.group is not None:
                await self._create(gang.group)
            await arrived(gang, await many(self._create, gang.pods))

        for gang in load.gangs():
            await asyncio.sleep(max(0.0, begun_s + created / rate - time.monotonic()))
            created += gang.size
            task = asyncio.get_running_loop().create_task(make(gang))
            making.add(task)
            task.add_done_callback(making.discard)
        await asyncio.gather(*making)

    async def _make(self, gang: Gang, seen: Seen) -> None:
        if gang.group is not None:
            await self._create(gang.group)
        await many(self._create, gang.pods, 4)
        if gang.pods:
            seen.complete_s[gang.name] = time.monotonic()

    async def _create(self, obj: Obj) -> Obj:
        made = await self._cluster.execute(Create(obj))
        assert made is not None
        return made

    async def wait_bound(self, seen: Seen, process: SchedulerProcesses) -> None:
        until = time.monotonic() + self._wait_s
        while not seen.is_complete and time.monotonic() < until:
            why = process.failure()
            if why is not None:
                raise RuntimeError(why)
            await asyncio.sleep(0.02)

    # ---- the end

    async def delete_gangs(self, dialect: str | None) -> None:
        kind = KIND_OF.get(dialect or "")
        if kind is not None:
            await self._delete_all(kind)
        if dialect == "job":
            await self._delete_all(KIND_OF["volcano"])
        await self._delete_all("Pod")

    async def _delete_all(self, kind: str) -> None:
        async def delete(obj: Obj) -> None:
            await _gone(self._cluster.execute(Delete(Ref(kind, self.namespace, name_of(obj)), uid_of(obj), 0)))

        await many(delete, await self._cluster.list(kind, self.namespace))

    async def clean(self) -> None:
        """Deletes all that was created."""
        self._progress("cleans up")
        await self._clean_namespace()
        await many(lambda name: _gone(self._cluster.execute(Delete(Ref("Node", "", name)))), self._nodes)

    async def _clean_namespace(self) -> None:
        if not self._has_namespace:
            return
        for dialect in sorted(self._dialects):  # the cluster may not serve the others
            await self.delete_gangs(dialect)
        await self.delete_gangs(None)
        for kind in ("Event", "Secret"):
            await self._delete_all(kind)
        await _gone(self._cluster.execute(Delete(Ref("Namespace", "", self.namespace))))
        self._has_namespace = False


async def _gone(deletion: Awaitable[Any]) -> None:
    try:
        await deletion
    except Refused as why:
        if why.code not in (404, 409):
            raise


async def many(work: Callable[[Any], Awaitable[Any]], items: Iterable[Any], most: int = MOST) -> list[Any]:
    """Runs all of it on as many connections as the control plane has; results in the order of the items."""
    queue = list(enumerate(items))[::-1]
    found: list[Any] = [None] * len(queue)

    async def one() -> None:
        while queue:
            index, item = queue.pop()
            found[index] = await work(item)

    await asyncio.gather(*(one() for _ in range(min(most, len(queue)))))
    return found
