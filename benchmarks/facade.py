"""The embedded API over HTTP: pods created per second, times of lists and watches.

The reference is a bare server of the same library that reads the same requests, answers with the same bytes, and does
nothing else: the cost of HTTP. Rates are per second of the server's CPU time, so a busy machine and the client do not
distort them; times to list and to fan out are wall-clock times.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import resource
import shutil
import signal
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import msgspec
from aiohttp import web

from enbloc import config as configs
from enbloc.api.meta import Obj

TOKEN: Final = "bench"
CONNECTIONS: Final = 16
LISTS: Final = 5
FANNED_OUT: Final = 200
_PODS: Final = "/api/v1/namespaces/default/pods"


def run(nodes: int, pods: int, watches: int, *, data: bool = False) -> dict[str, Any]:
    """With `data` every write is on disk before it is acknowledged, as with `enbloc up --data`."""
    reference = _with_server("bare", 0, lambda port, ask: _create(port, ask, min(pods, 5_000)))
    kept = "kept" if data else "facade"
    figures = _with_server(kept, nodes, lambda port, ask: _measure(port, ask, pods, watches))
    rate, reference_rate = figures.pop("rate"), reference
    return {
        "nodes": nodes,
        "pods": pods,
        "watches": watches,
        "data": data,
        "creates_per_s": round(rate),
        "reference_per_s": round(reference_rate),
        "ratio": round(rate / reference_rate, 3),
        **figures,
    }


Ask = Callable[[], tuple[float, int]]
"""The server's CPU time so far, in seconds, and its largest memory, in MB."""


def _with_server(which: str, nodes: int, measure: Callable[[int, Ask], Awaitable[Any]]) -> Any:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(which, nodes, theirs), daemon=True)
    server.start()
    try:
        port = ours.recv()

        def ask() -> tuple[float, int]:
            ours.send("?")
            answer: tuple[float, int] = ours.recv()
            return answer

        return asyncio.run(_bounded(measure(port, ask)))
    finally:
        server.terminate()
        server.join()


async def _bounded(work: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(work, 600)


def _serve(which: str, nodes: int, pipe: Connection) -> None:
    asyncio.run(_serving(which, nodes, pipe))


async def _serving(which: str, nodes: int, pipe: Connection) -> None:
    from enbloc.cluster.embedded.http.listener import Listener

    directory = tempfile.mkdtemp(prefix="enbloc-bench-") if which == "kept" else None
    handler = _bare if which == "bare" else _facade(nodes, directory)
    _, port = await Listener(handler).start("127.0.0.1", 0)

    def answer() -> None:
        pipe.recv()
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        pipe.send((time.process_time(), peak_mb))

    asyncio.get_running_loop().add_reader(pipe.fileno(), answer)
    end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end.set)
    pipe.send(port)
    await end.wait()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)


async def _bare(request: web.BaseRequest) -> web.StreamResponse:
    body = await request.read()
    return web.Response(body=body, status=201, headers={"Content-Type": "application/json"})


def _facade(nodes: int, directory: str | None) -> Any:
    from enbloc.cluster.embedded.api.datadir import DataDir
    from enbloc.cluster.embedded.api.journal import Journal
    from enbloc.cluster.embedded.api.store import OBJECT_BYTES
    from enbloc.cluster.embedded.cluster import make_store
    from enbloc.cluster.embedded.http.access import Access
    from enbloc.cluster.embedded.http.facade import Facade
    from enbloc.up.clock import now_ns
    from enbloc.up.options import Options, make_nodes

    journal = Journal(DataDir(Path(directory))) if directory is not None else None
    restore = journal.restore if journal is not None else None
    store = make_store(now_ns, configs.parse(None), restore, OBJECT_BYTES)
    for node in make_nodes(Options(nodes=nodes), load_brings_nodes=False):
        store.create(node)
    return Facade(store, Access(TOKEN), committed=journal.durable if journal is not None else None)


def _pod(number: int) -> Obj:
    """As a controller would create it: labels, annotations, an owner, requests, environment variables."""
    container = {
        "name": "worker",
        "image": "registry.example/train:1",
        "command": ["python", "train.py"],
        "env": [{"name": "RANK", "value": str(number)}, {"name": "WORLD_SIZE", "value": "16"}],
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"train-{number // 16}-worker-{number % 16}-{number}",
            "labels": {"volcano.sh/job-name": f"train-{number // 16}", "volcano.sh/task-index": str(number % 16)},
            "annotations": {"scheduling.k8s.io/group-name": f"train-{number // 16}"},
        },
        "spec": {"schedulerName": "enbloc", "restartPolicy": "Never", "containers": [container]},
    }


class _Client:
    """One persistent connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @staticmethod
    async def connect(port: int) -> _Client:
        return _Client(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))

    def _send(self, method: str, path: str, body: bytes = b"") -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        self._writer.write(f"{head}\r\n".encode() + body)

    async def request(self, method: str, path: str, body: bytes = b"") -> tuple[int, int]:
        """The status code and the size of the body."""
        self._send(method, path, body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        code = int(head[9:12])
        lowered = head.lower()
        if b"content-length:" in lowered:
            length = int(lowered.split(b"content-length:")[1].split(b"\r\n")[0])
            await self._reader.readexactly(length)
            return code, length
        total = 0
        while size := int(await self._reader.readline(), 16):
            await self._reader.readexactly(size + 2)
            total += size
        await self._reader.readline()
        return code, total

    async def watch(self, path: str, events: int) -> None:
        """Reads a watch until `count` events have arrived."""
        self._send("GET", path)
        await self._reader.readuntil(b"\r\n\r\n")
        while events > 0:
            events -= (await self._reader.read(2**20)).count(b'{"type":"')

    def close(self) -> None:
        self._writer.close()


async def _create(port: int, ask: Ask, count: int, begin: int = 0) -> float:
    """Creates pods over a few connections; returns how many per second of the server's CPU time."""
    bodies = [msgspec.json.encode(_pod(number)) for number in range(begin, begin + count)]
    clients = [await _Client.connect(port) for _ in range(CONNECTIONS)]

    async def work(client: _Client, mine: list[bytes]) -> None:
        for body in mine:
            code, _ = await client.request("POST", _PODS, body)
            assert code == 201, code

    before, _ = ask()
    await asyncio.gather(*(work(client, bodies[at::CONNECTIONS]) for at, client in enumerate(clients)))
    after, _ = ask()
    for client in clients:
        client.close()
    return count / (after - before)


async def _measure(port: int, ask: Ask, pods: int, watches: int) -> dict[str, Any]:
    begin_s = time.perf_counter()
    rate = await _create(port, ask, pods)
    wall_s = time.perf_counter() - begin_s
    client = await _Client.connect(port)
    times_ms, size = [], 0
    for _ in range(LISTS):
        begin_s = time.perf_counter()
        _, size = await client.request("GET", "/api/v1/pods")
        times_ms.append((time.perf_counter() - begin_s) * 1e3)
    client.close()
    fan_out = await _fan_out(port, ask, pods, watches)
    _, peak_mb = ask()
    return {
        "rate": rate,
        "creates_per_s_by_clock": round(pods / wall_s),
        "list_ms": round(statistics.median(times_ms), 1),
        "list_mb": round(size / 2**20, 1),
        **fan_out,
        "rss_mb": peak_mb,
    }


async def _fan_out(port: int, ask: Ask, pods: int, watches: int) -> dict[str, Any]:
    """Many watches on all pods, and some new pods: when has the last watch received the last of them?"""
    version = await _version(port)
    path = f"/api/v1/pods?watch=true&resourceVersion={version}"
    clients = [await _Client.connect(port) for _ in range(watches)]
    watching = [asyncio.create_task(client.watch(path, FANNED_OUT)) for client in clients]
    await asyncio.sleep(0.5)
    before, _ = ask()
    begin_s = time.perf_counter()
    await _create(port, ask, FANNED_OUT, pods)
    await asyncio.gather(*watching)
    seconds = time.perf_counter() - begin_s
    after, _ = ask()
    for client in clients:
        client.close()
    events = watches * FANNED_OUT
    return {
        "fan_out_ms": round(seconds * 1e3, 1),
        "fan_out_events_per_s": round(events / (after - before)) if after > before else 0,
    }


async def _version(port: int) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"GET {_PODS}?limit=1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    listed = json.loads(answer.partition(b"\r\n\r\n")[2])
    found: str = listed["metadata"]["resourceVersion"]
    return found
