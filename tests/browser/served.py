"""What the browser is shown: a cluster with GPUs, and pages on a store that a thread serves."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from cluster.embedded.http.serving import TOKEN
from enbloc import Cluster
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.http.access import Access
from enbloc.cluster.embedded.http.facade import Facade
from enbloc.cluster.embedded.http.listener import Listener
from support import manifests as m
from web.played import pages_of

GPU: Final = "nvidia.com/gpu"
SHOTS: Final = os.environ.get("ENBLOC_SHOTS", "")
"""A folder for screenshots, which the docs use."""


NO_EVICTION: Final = {"actions": "enqueue, allocate, backfill"}
RUNNING: Final = (("llama", 6, 8, "research"), ("diffusion", 8, 3, "research"), ("whisper", 4, 2, "serving")) + (
    ("ranker", 5, 5, "serving"),
)
WAITING: Final = (("vision", 4, 8, "research"), ("giant", 12, 8, "research"), ("impossible", 2, 16, "serving")) + (
    ("speech", 6, 4, "serving"),
)
"""Gangs: name, pods, GPUs of each, queue."""
_START_S: Final = 60.0
GANG_PODS: Final = 20


def filled_store(nodes: int, gangs: int, *, running: int, per_node: int) -> Store:
    """As a scheduler left it: nodes of eight GPUs in racks of 40, gangs of `GANG_PODS` pods with a GPU each, of which
    the first `running` run, so many pods on a node."""
    store = Store(lambda: 1_700_000_000_000_000_000)
    store.auto_namespaces = True
    for number in range(nodes):
        labels = {"topology.kubernetes.io/rack": f"rack-{number // 40:03}"}
        store.create(m.node(f"node-{number:04}", cpu=96, extra={GPU: 8}, labels=labels))
    for gang in range(gangs):
        group, *pods = m.gang(f"gang-{gang:04}", GANG_PODS, cpu=4, extra={GPU: 1})
        store.create(group)
        for index, pod in enumerate(pods):
            if gang < running:
                pod["spec"]["nodeName"] = f"node-{(gang * GANG_PODS + index) // per_node:04}"
                pod["status"] = {"phase": "Running", "startTime": "2023-11-14T22:13:20Z"}
            store.create(pod)
    return store


@contextmanager
def gpu_cluster() -> Iterator[Cluster]:
    """Four racks of four nodes with eight GPUs, two queues; gangs that run, wait for room, and can never start."""
    rack = "topology.kubernetes.io/rack"
    nodes = [
        m.node(f"n{number:02}", cpu=64, extra={GPU: 8}, labels={rack: f"rack-{number // 4 + 1}"})
        for number in range(16)
    ]
    queues = [m.queue("research", weight=2), m.queue("serving", weight=1)]
    with Cluster([*nodes, *queues], config=NO_EVICTION) as cluster:
        started = 0
        for name, count, gpus, queue in (*RUNNING, *WAITING):
            for obj in m.gang(name, count, cpu=4, extra={GPU: gpus}, queue=queue):
                cluster.create(obj)
            started += count if (name, count, gpus, queue) in RUNNING else 0
            _wait(cluster, started)
        yield cluster


def _wait(cluster: Cluster, running: int) -> None:
    """Until so many pods run: the next gang finds what this one left."""
    end_s = time.monotonic() + _START_S
    while sum((pod.get("status") or {}).get("phase") == "Running" for pod in cluster.objects("Pod")) < running:
        assert time.monotonic() < end_s, "the gangs did not start"
        time.sleep(0.02)


class Served(NamedTuple):
    address: str
    store: Store


@contextmanager
def serve_store(store: Store, *, loopback_only: bool = True) -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    facade = Facade(store, Access(TOKEN, loopback_only=loopback_only), pages_of(store).handlers())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> tuple[Listener, int]:
        listener = Listener(facade)
        return listener, (await listener.start("127.0.0.1", 0))[1]

    listener, port = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield Served(f"http://127.0.0.1:{port}/", store)
    finally:
        facade.close()
        asyncio.run_coroutine_threadsafe(listener.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()
