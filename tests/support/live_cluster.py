"""An embedded cluster that answers late and refuses at random, for the live runtime; time is virtual, and jumps."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

from enbloc import config as configs
from enbloc.api.meta import Obj, annotations_of, name_of
from enbloc.api.writes import BindPod, EmitEvent, Refused, WatchEvent, Write
from enbloc.cluster.embedded.api.pods import node_of
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.cluster.embedded.nodes.node_player import NodePlayer
from enbloc.config import Config, scheduler_names
from enbloc.controllers.job_plugins import simulated_key_pair
from enbloc.controllers.retry import Retries
from enbloc.gangs.own_annotations import COMMITTED
from enbloc.gangs.record_digests import SIMULATED, Keyring
from enbloc.runtime.live_control_plane import LiveControlPlane
from enbloc.runtime.recorder import Limits, Recorder
from enbloc.sim.clock import EPOCH
from enbloc.units import SECOND

Result = TypeVar("Result")


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer as soon as no task is ready."""

    def __init__(self) -> None:
        self._virtual_s = 0.0
        super().__init__()

    def time(self) -> float:
        return self._virtual_s

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._virtual_s = max(self._virtual_s, self._scheduled[0]._when)  # type: ignore[attr-defined]
        if not self._ready and not self._scheduled:  # type: ignore[attr-defined]
            raise RuntimeError(f"all tasks wait without end: {asyncio.all_tasks(self)}")
        super()._run_once()  # type: ignore[misc]


def in_virtual_time(main: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main())


class LateCluster:
    """The embedded store behind a network: answers and events come late, some writes are refused, some answers lost."""

    def __init__(
        self,
        store: Store,
        seed: int,
        lag_s: float = 0.01,
        refusals: float = 0.0,
        losses: float = 0.0,
        in_disorder: bool = False,
    ) -> None:
        self.store = store
        self.lag_s = lag_s
        self.refusals = refusals
        self.losses = losses
        self.in_disorder = in_disorder
        """Whether pods, PodGroups and all other kinds are watched apart, as by informers: events of two watches may
        come in another order than they happened."""
        self.writes: list[Write] = []
        """All that were carried out."""
        self.under_way: Counter[str] = Counter()
        self.most_under_way = 0
        self.refuse: Callable[[Write], Refused | None] = lambda write: None
        self.closed = False
        self._random = random.Random(seed)
        self._known: defaultdict[str, dict[str, Obj]] = defaultdict(dict)
        self._follows: list[asyncio.Task[None]] = []

    async def start(self, kinds: Collection[str], report: Callable[[WatchEvent], None]) -> None:
        def observe(event: WatchEvent) -> None:
            if event.type == "DELETED":
                self._known[event.kind].pop(event.obj["metadata"]["uid"], None)
            else:
                self._known[event.kind][event.obj["metadata"]["uid"]] = event.obj
            report(event)

        for kind in sorted(kinds, key=lambda kind: (kind == "Pod", kind)):
            for obj in self.store.list(kind)[0]:
                observe(WatchEvent("ADDED", kind, obj))
        groups = {kind for kind in kinds if kind.startswith("PodGroup.")}
        apart = [{"Pod"} & set(kinds), groups, set(kinds) - {"Pod"} - groups]
        for some in apart if self.in_disorder else [set(kinds)]:
            watch = self.store.watch(some, self.store.version)
            self._follows.append(asyncio.get_running_loop().create_task(self._follow(watch, observe)))

    async def _follow(self, watch: Any, observe: Callable[[WatchEvent], None]) -> None:
        while True:
            await asyncio.sleep(self._random.uniform(0.0, self.lag_s) + 0.001)
            for event in watch.drain():
                observe(event)

    async def execute(self, write: Write) -> Obj | None:
        if self.closed:
            raise Refused(503, "ServiceUnavailable", "closed")
        self.under_way["all"] += 1
        self.most_under_way = max(self.most_under_way, self.under_way["all"])
        try:
            await asyncio.sleep(self._random.uniform(0.0, self.lag_s))
            lucky = not isinstance(write, EmitEvent) and self._random.random()
            refused = self.refuse(write)
            if refused is not None:
                raise refused
            if lucky and lucky < self.refusals:
                raise Refused(503, "ServiceUnavailable", "no luck")
            if lucky and lucky > 1 - self.losses / 2:
                raise Refused(504, "Timeout", "lost on the way there")
            made = self.store.execute(write)
            self.writes.append(write)
            await asyncio.sleep(self._random.uniform(0.0, self.lag_s))
            if lucky and lucky > 1 - self.losses:
                raise Refused(504, "Timeout", "lost on the way back")
            return None if isinstance(write, BindPod) else made
        finally:
            self.under_way["all"] -= 1

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        await asyncio.sleep(self._random.uniform(0.0, self.lag_s))
        return self.store.get(kind, namespace, name)

    def known(self, kind: str) -> list[Obj]:
        return list(self._known[kind].values())

    def serves(self, kind: str) -> bool:
        return True

    def healthy(self) -> bool:
        return not self.closed

    async def close(self) -> None:
        self.closed = True
        for task in self._follows:
            task.cancel()


class LiveWorld:
    """A cluster with nodes that play pods, and a live control plane on it."""

    limits = Limits()
    """Of recordings."""

    def __init__(
        self,
        *objects: Obj,
        seed: int = 0,
        config: Config | None = None,
        record: Path | None = None,
        keyring: Keyring = SIMULATED,
        tick_s: float = 0.002,
        **lag: Any,
    ) -> None:
        """`record`: a directory in which each plane has a recording, numbered from 0; `tick_s`: how often kubelets look
        at their pods."""
        self._record = record
        self._keyring = keyring
        self._recorders: list[Recorder] = []
        self.config = config or configs.parse(None)
        self.loop = asyncio.get_running_loop()
        self.store = make_store(self.now, self.config)
        provide_queues(self.store, objects)
        for obj in objects:
            self.store.create(obj)
        self.cluster = LateCluster(self.store, seed, **lag)
        self.plane = self.new_plane()
        self.faults: list[str] = []
        self._tick_s = tick_s
        self.nodes = NodePlayer(self.store)
        self._audit = self.store.watch({"Pod"}, self.store.version)
        self._tasks: list[asyncio.Task[Any]] = []
        self._running: asyncio.Task[None] | None = None

    def now(self) -> int:
        return EPOCH + int(asyncio.get_running_loop().time() * SECOND)

    def wait_recorded(self) -> None:
        """Until the recorders' threads, which run in real time, have written all that was recorded."""
        while any(recorder.is_behind for recorder in self._recorders):
            time.sleep(0.001)

    def new_plane(self) -> LiveControlPlane:
        names = scheduler_names(self.config, alone=True)
        recorder: Recorder | None = None
        if self._record is not None:
            recorder = Recorder(self._record / str(len(self._recorders)), self.config, names, self.limits)
            self._recorders.append(recorder)
        return LiveControlPlane(
            self.cluster,
            self.config,
            names,
            self.now,
            self._keyring,
            key_pair=simulated_key_pair,
            recorder=recorder,
        )

    async def begin(self) -> None:
        self._tasks.append(self.loop.create_task(self._play()))
        await self.lead()

    async def lead(self) -> None:
        await self.plane.start()
        self._running = self.loop.create_task(self.plane.run())
        self.plane.lead()

    async def restart(self) -> None:
        """As after SIGKILL: what was under way is lost, and a new one begins."""
        self.plane.stop_writing()
        await self._stop_running()
        old = self.cluster
        await old.close()
        self.cluster = LateCluster(
            self.store, old._random.randrange(2**31), old.lag_s, old.refusals, old.losses, old.in_disorder
        )
        self.cluster.refuse = old.refuse
        self.plane = self.new_plane()
        await self.lead()

    async def settle(self, within_s: float = 120.0) -> None:
        """Until nothing is under way for a while."""
        assert await self.comes_to_rest(within_s), f"it does not come to rest: {self.plane.is_quiet}"

    async def comes_to_rest(self, within_s: float, *, timers: bool = False, retries: bool = True) -> bool:
        """Whether nothing is under way for a while; `timers`: nor is a timer going to fire for as long again. Without
        `retries` the times at which controllers repeat refused writes do not count."""
        until = self.loop.time() + within_s
        quiet = 0
        while self.loop.time() < until and quiet < 30:
            await asyncio.sleep(0.1)
            self.check()
            is_quiet = self.plane.is_quiet and self.nodes.due() is None
            if is_quiet and timers:
                with nullcontext() if retries else patch.object(Retries, "next", lambda _: None):
                    due_in_s = self.plane._due_in_s()
                is_quiet = due_in_s is None or due_in_s > within_s
            quiet = quiet + 1 if is_quiet else 0
        return quiet > 0

    def check(self) -> None:
        if self._running is not None and self._running.done():
            self._running.result()
        assert not self.faults, self.faults

    async def _stop_running(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def end(self) -> None:
        self.check()
        await self.plane.end()
        await self._stop_running()
        await self.cluster.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for recorder in self._recorders:
            recorder.close()

    async def _play(self) -> None:
        """What kubelets, garbage collection and quotas do; no pod may be bound to a node without room (I2)."""
        while True:
            await asyncio.sleep(self._tick_s)
            for event in self._audit.drain():
                self._look_at(event)
            self.store.collect_garbage()
            self.store.settle()
            self.nodes.observe()
            self.nodes.run(self.now())

    def _look_at(self, event: WatchEvent) -> None:
        if (event.obj.get("status") or {}).get("reason", "").startswith("OutOf"):
            self.faults.append(f"{name_of(event.obj)} found no room on {node_of(event.obj)} (I2)")

    # ---- what has become of it

    def pods(self) -> list[Obj]:
        return self.store.list("Pod")[0]

    def bound(self) -> dict[str, str]:
        return {name_of(pod): node_of(pod) for pod in self.pods() if node_of(pod)}

    def marks(self) -> list[str]:
        return [annotations_of(pod)[COMMITTED] for pod in self.pods() if COMMITTED in annotations_of(pod)]

    def binds(self) -> list[BindPod]:
        return [write for write in self.cluster.writes if isinstance(write, BindPod)]
