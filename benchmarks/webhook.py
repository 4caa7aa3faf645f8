"""The webhook among slow clients: how long a review takes while many clients hang.

The reference is the same review in the same server without them. The server is a process of its own, over TLS, with the
embedded store as its cluster.
"""

from __future__ import annotations

import asyncio
import base64
import builtins
import multiprocessing
import os
import signal
import ssl
import statistics
import time
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from enbloc import config as configs
from enbloc.api import volcano
from enbloc.api.meta import Obj
from enbloc.api.writes import Write
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.install.hooks import configurations
from enbloc.webhook.certificate_rotation import MUTATING
from enbloc.webhook.server import CONFIGURATION, MUTATE, Server

NAMESPACE: Final = "enbloc-system"
WARM_UP: Final = 20
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def run(clients: int, reviews: int) -> dict[str, Any]:
    """Reviews, one after the other on one connection, first alone and then among `clients` that never end a request."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        port, bundle = ours.recv()
        alone_ms, among_ms = asyncio.run(asyncio.wait_for(_measure(port, bundle, clients, reviews), 600))
    finally:
        server.terminate()
        server.join()
    median_ms = statistics.median(among_ms)
    return {
        "slow_clients": clients,
        "reviews": reviews,
        "review_ms": round(median_ms, 2),
        "longest_ms": round(max(among_ms), 2),
        "reference_ms": round(statistics.median(alone_ms), 2),
        "ratio": round(median_ms / statistics.median(alone_ms), 3),
    }


class _StoreApi:
    """What the webhook needs of a cluster, on an embedded store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return self._store.get(kind, namespace, name)

    async def list(self, kind: str) -> builtins.list[Obj]:
        return self._store.list(kind)[0]

    async def execute(self, write: Write) -> Obj | None:
        return self._store.execute(write)


def _serve(pipe: Connection) -> None:
    asyncio.run(_serving(pipe))


async def _serving(pipe: Connection) -> None:
    config = configs.parse(None)
    store = make_store(time.time_ns, config)
    provide_queues(store, ())
    for configuration in configurations(NAMESPACE, {}):
        store.create(configuration)
    server = Server(_StoreApi(store), None, config, namespace=NAMESPACE, names=("localhost",), port=0)
    serving = asyncio.create_task(server.serve())
    while server.address is None:
        await asyncio.sleep(0.01)
    trusted = store.get(MUTATING, "", CONFIGURATION)
    assert trusted is not None
    pipe.send((server.address[1], trusted["webhooks"][0]["clientConfig"]["caBundle"]))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os._exit, 0)
    await serving


async def _measure(port: int, bundle: str, clients: int, reviews: int) -> tuple[list[float], list[float]]:
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())

    async def connect() -> Streams:
        return await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")

    client = await connect()
    await _review_times(client, WARM_UP)
    alone_ms = await _review_times(client, reviews)
    slow = []
    for _ in range(clients):
        _, writer = await connect()
        writer.write(b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{" % MUTATE.encode())
        slow.append(writer)
    await asyncio.sleep(0.5)
    among_ms = await _review_times(client, reviews)
    for writer in (*slow, client[1]):
        writer.transport.abort()
    await asyncio.sleep(0)  # the transports close their sockets
    return alone_ms, among_ms


async def _review_times(client: Streams, count: int) -> list[float]:
    reader, writer = client
    body = msgspec.json.encode(_review())
    head = f"POST {MUTATE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    times_ms = []
    for _ in range(count):
        begin_s = time.perf_counter()
        writer.write(head + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in answer, answer
        await reader.readexactly(int(answer.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
        times_ms.append((time.perf_counter() - begin_s) * 1e3)
    return times_ms


def _review() -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/train:1"}
    task = {"name": "worker", "replicas": 16, "template": {"spec": {"containers": [container]}}}
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"queue": volcano.DEFAULT_QUEUE, "tasks": [task]},
    }
    kind = {"group": "batch.volcano.sh", "version": "v1alpha1", "kind": "Job"}
    request = {"uid": "1", "operation": "CREATE", "kind": kind, "object": job}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
