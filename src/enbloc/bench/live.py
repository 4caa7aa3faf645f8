"""The live path against a real API server: Bindings per second, as a share of what that server can handle.

The reference is a loop that only binds, on as many connections: the limit of that server on that machine. The same
number of pods, in gangs, is scheduled on the same nodes by the control plane of `enbloc run`, in this process. Half of
the reference is measured before and half after, so that a changing load of the machine distorts the ratio less. Nodes
need no kubelet. Everything that was created is deleted at the end, also after a failure.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from enbloc import config as configs
from enbloc.api.meta import Obj, Ref, name_of, uid_of
from enbloc.api.writes import BindPod, Create, Delete, Refused, Write
from enbloc.cluster.kube import KubeCluster, connect
from enbloc.gangs.record_digests import new_keyring
from enbloc.runtime.clock import SteadyClock
from enbloc.runtime.live_control_plane import LiveControlPlane
from enbloc.runtime.service import settle_memory
from enbloc.runtime.write_queue import MOST

NODE_CPU: Final = 64
PODS_A_NODE: Final = 250
POD_CPU: Final = "100m"
WAIT_S: Final = 600.0
_READY: Final = {"type": "Ready", "status": "True", "reason": "Bench", "message": ""}

Progress = Callable[[str], None]


async def run(
    kubeconfig: str | None, context: str | None, nodes: int, pods: int, gang_size: int, progress: Progress
) -> dict[str, Any]:
    """Measures, and cleans up. Raises `NoCredentials` or `Refused`."""
    cluster = await connect(kubeconfig, context)
    bench = _Bench(cluster, progress)
    try:
        await bench.make_nodes(nodes)
        before_s = await bench.bare(pods // 2)
        took = await bench.scheduled(await connect(kubeconfig, context), pods, gang_size)
        after_s = await bench.bare(pods - pods // 2)
    finally:
        await bench.clean()
        await cluster.close()
    bare_per_s = pods / (before_s + after_s)
    rate = (took.bound - 1) / max(took.last_s - took.first_s, 1e-9)
    return {
        "nodes": nodes,
        "pods": pods,
        "gang_size": gang_size,
        "bound": took.bound,
        "bare_bind_per_s": round(bare_per_s),
        "bound_per_s": round(rate),
        "share_of_limit": round(rate / bare_per_s, 2),
        "first_bind_s": round(took.first_s - took.begun_s, 3),
        "partly_started": took.partly_started,
    }


class _Timed:
    """A cluster that records when Bindings were answered."""

    def __init__(self, cluster: KubeCluster) -> None:
        self._cluster = cluster
        self.begun_s = self.first_s = self.last_s = 0.0
        self.bound = 0
        self.partly_started = 0
        self.start, self.get, self.close = cluster.start, cluster.get, cluster.close
        self.serves, self.healthy = cluster.serves, cluster.healthy

    async def execute(self, write: Write) -> Obj | None:
        made = await self._cluster.execute(write)
        if isinstance(write, BindPod):
            self.last_s = time.monotonic()
            self.first_s = self.first_s or self.last_s
            self.bound += 1
        return made


class _Bench:
    """The objects created on the cluster, and their deletion."""

    def __init__(self, cluster: KubeCluster, progress: Progress) -> None:
        self._cluster = cluster
        self._progress = progress
        self._name = f"enbloc-bench-{secrets.token_hex(3)}"
        self._nodes: list[str] = []
        self._has_namespace = False

    async def make_nodes(self, count: int) -> None:
        self._progress(f"makes {count} nodes, in namespace {self._name} pods")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._name}}
        await self._cluster.execute(Create(namespace))
        self._has_namespace = True
        amounts = {"cpu": str(NODE_CPU), "memory": "256Gi", "pods": str(PODS_A_NODE)}
        self._nodes = [f"{self._name}-{index}" for index in range(count)]

        async def make(name: str) -> None:
            metadata = {"name": name, "labels": {"enbloc.dev/bench": self._name}}
            status = {"capacity": amounts, "allocatable": amounts, "conditions": [_READY]}
            await self._cluster.execute(
                Create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status})
            )

        await _many(make, self._nodes)

    async def bare(self, count: int) -> float:
        """The seconds that a loop needs that only binds."""
        pods = await self._make_pods([self._pod(f"bare-{index}", {}) for index in range(count)], "none")
        self._progress(f"binds {count} pods in a bare loop")
        binds = [
            BindPod(self._name, name_of(pod), uid_of(pod), self._nodes[index % len(self._nodes)], {"bench": "bare"})
            for index, pod in enumerate(pods)
        ]
        begun = time.monotonic()
        await _many(self._cluster.execute, binds)
        took_s = time.monotonic() - begun
        await self._delete_pods()
        return took_s

    async def scheduled(self, cluster: KubeCluster, count: int, gang_size: int) -> _Timed:
        """The same number of pods, in gangs, by the control plane of `enbloc run`."""
        key = "gang.scheduling.koordinator.sh/"
        pods = []
        for index in range(count):
            gang = index // gang_size
            size = min(gang_size, count - gang * gang_size)
            notes = {f"{key}name": f"gang-{gang}", f"{key}min-available": str(size)}
            pods.append(self._pod(f"gang-{gang}-{index % gang_size}", notes))
        await self._make_pods(pods, self._name)
        self._progress(f"schedules {count} pods in gangs of {gang_size}")
        timed = _Timed(cluster)
        plane = LiveControlPlane(timed, configs.parse(None), frozenset({self._name}), SteadyClock(), new_keyring())
        timed.begun_s = time.monotonic()
        running: asyncio.Task[None] | None = None
        try:
            await plane.start()
            settle_memory()
            running = asyncio.get_running_loop().create_task(plane.run())
            plane.lead()
            until = time.monotonic() + WAIT_S
            while timed.bound < count and time.monotonic() < until and not running.done():
                await asyncio.sleep(0.05)
            if running.done():
                running.result()
            await plane.end()
        finally:
            plane.stop_writing()
            if running is not None:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            await cluster.close()
        timed.partly_started = await self._partly_started()
        await self._delete_pods()
        return timed

    async def _partly_started(self) -> int:
        """Gangs of which some pods are bound and some are not."""
        found: dict[str, set[bool]] = {}
        for pod in await self._cluster.list("Pod", self._name):
            gang = name_of(pod).rpartition("-")[0]
            found.setdefault(gang, set()).add(bool(pod["spec"].get("nodeName")))
        return sum(len(states) > 1 for states in found.values())

    def _pod(self, name: str, notes: dict[str, str]) -> Obj:
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": POD_CPU, "memory": "64Mi"}}}
        spec = {
            "nodeSelector": {"enbloc.dev/bench": self._name},
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
        }
        metadata = {"name": name, "namespace": self._name, "annotations": notes}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    async def _make_pods(self, pods: list[Obj], scheduler: str) -> list[Obj]:
        self._progress(f"makes {len(pods)} pods")

        async def make(pod: Obj) -> Obj:
            made = await self._cluster.execute(Create({**pod, "spec": {**pod["spec"], "schedulerName": scheduler}}))
            assert made is not None
            return made

        return await _many(make, pods)

    async def _delete_pods(self) -> None:
        async def delete(pod: Obj) -> None:
            ref = Ref("Pod", self._name, name_of(pod))
            await _gone(self._cluster.execute(Delete(ref, uid_of(pod), 0)))

        await _many(delete, await self._cluster.list("Pod", self._name))

    async def clean(self) -> None:
        """Deletes all that was created."""
        self._progress("cleans up")
        if self._has_namespace:
            await self._delete_pods()
            events = [Ref("Event", self._name, name_of(one)) for one in await self._cluster.list("Event", self._name)]
            await _many(lambda ref: _gone(self._cluster.execute(Delete(ref))), events)
        await _many(lambda name: _gone(self._cluster.execute(Delete(Ref("Node", "", name)))), self._nodes)
        if self._has_namespace:
            await _gone(self._cluster.execute(Delete(Ref("Namespace", "", self._name))))


async def _gone(deletion: Awaitable[Any]) -> None:
    try:
        await deletion
    except Refused as why:
        if why.code not in (404, 409):
            raise


async def _many(work: Callable[[Any], Awaitable[Any]], items: Iterable[Any]) -> list[Any]:
    """Runs all of it on as many connections as the control plane has; results in the order of the items."""
    queue = list(enumerate(items))[::-1]
    found: list[Any] = [None] * len(queue)

    async def one() -> None:
        while queue:
            index, item = queue.pop()
            found[index] = await work(item)

    await asyncio.gather(*(one() for _ in range(MOST)))
    return found
