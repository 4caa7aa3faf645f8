"""A façade on a fresh store, for tests: served on a real socket, asked by a plain HTTP client."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from enbloc import config
from enbloc.api.meta import Obj
from enbloc.cluster.embedded.api.store import OBJECT_BYTES, Store
from enbloc.cluster.embedded.cluster import make_store, provide_queues
from enbloc.cluster.embedded.http.access import Access
from enbloc.cluster.embedded.http.certificate import make_certificate
from enbloc.cluster.embedded.http.facade import Facade
from enbloc.cluster.embedded.http.kubeconfig import write_kubeconfig
from enbloc.cluster.embedded.http.listener import Listener

TOKEN = "let-me-in"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def fresh_store(**options: Any) -> Store:
    store = make_store(lambda: time.time_ns() // 1_000_000 * 1_000_000, config.parse(None), object_bytes=OBJECT_BYTES)
    provide_queues(store, ())
    store.auto_namespaces = False
    for name, value in options.items():
        setattr(store, name, value)
    return store


class Api:
    """A client, and the store behind the server."""

    def __init__(self, session: aiohttp.ClientSession, store: Store, facade: Facade, port: int) -> None:
        self.session = session
        self.store = store
        self.facade = facade
        self.port = port

    async def __call__(
        self, method: str, path: str, body: Any = None, *, media: str = "application/json", **headers: str
    ) -> tuple[int, Any]:
        """The status code and the body, read as JSON where it is."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent["Content-Type"] = media
        sending = None if data is None else io.BytesIO(data)
        async with self.session.request(method, path, data=sending, headers=sent) as response:
            raw = await response.read()
            if response.content_type.startswith("application/json"):
                return response.status, json.loads(raw)
            return response.status, raw.decode()

    async def get(self, path: str, **headers: str) -> Any:
        code, body = await self("GET", path, **headers)
        assert code == 200, body
        return body

    async def post(self, path: str, body: Any) -> Any:
        code, made = await self("POST", path, body)
        assert code == 201, made
        return made

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
        """Gives a function that waits for the next event; `None` at the end."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        joint = "&" if "?" in path else "?"
        async with self.session.get(f"{path}{joint}watch=true", headers=sent) as response:
            assert response.status == 200, await response.text()

            async def following() -> Any:
                async with asyncio.timeout(5):
                    line = await response.content.readline()
                return json.loads(line) if line else None

            yield following


@asynccontextmanager
async def serving(
    store: Store | None = None, send_buffer_bytes: int | None = None, **options: Any
) -> AsyncIterator[Api]:
    """`send_buffer_bytes`: what the kernel takes for a client that does not read; several MB unless given."""
    store = store or fresh_store()
    facade = Facade(store, Access(TOKEN), **options)
    listener = Listener(facade)
    _, port = await listener.start("127.0.0.1", 0)
    assert listener._socket is not None
    if send_buffer_bytes is not None:
        listener._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    try:
        async with aiohttp.ClientSession(
            f"http://127.0.0.1:{port}", headers=headers, read_bufsize=2**22, connector=aiohttp.TCPConnector(limit=0)
        ) as session:
            yield Api(session, store, facade, port)
    finally:
        facade.close()
        await listener.stop()


def serve(
    test: Callable[[Api], Awaitable[None]], store: Store | None = None, limit_s: float | None = 60, **options: Any
) -> None:
    """Runs one test against a server of its own."""

    async def run() -> None:
        async with serving(store, **options) as api:
            async with asyncio.timeout(limit_s):
                await test(api)

    asyncio.run(run())


@contextmanager
def served_in_background(directory: Path, store: Store | None = None) -> Iterator[tuple[Path, Store]]:
    """A server with TLS in a thread of its own, which also collects garbage, and the kubeconfig for it."""
    store = store or fresh_store()
    loop = asyncio.new_event_loop()
    certificate = make_certificate()
    path = directory / "kubeconfig"

    async def tidy() -> None:
        while True:
            await asyncio.sleep(0.05)
            store.collect_garbage()
            store.settle()

    async def start() -> tuple[Facade, Listener, asyncio.Task[None]]:
        facade = Facade(store, Access(TOKEN))
        listener = Listener(facade, certificate.context())
        _, port = await listener.start("127.0.0.1", 0)
        write_kubeconfig(path, f"https://127.0.0.1:{port}", TOKEN, certificate.certificate)
        return facade, listener, asyncio.create_task(tidy())

    async def stop(facade: Facade, listener: Listener, tidying: asyncio.Task[None]) -> None:
        tidying.cancel()
        facade.close()
        await listener.stop()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        running = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
        try:
            yield path, store
        finally:
            asyncio.run_coroutine_threadsafe(stop(*running), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


def pod(name: str = "p", **spec: Any) -> Obj:
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def config_map(name: str = "cm", **data: str) -> Obj:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data or {"a": "1"}}
