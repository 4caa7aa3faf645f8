"""The webhook's server over real TLS on loopback, and clients of it."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from enbloc.api.writes import WatchEvent
from enbloc.config import parse
from enbloc.units import SECOND
from enbloc.webhook.cache import ObjectCache
from enbloc.webhook.clients import Clients
from enbloc.webhook.server import Server
from support import manifests as m
from support.webhook_api import NAMESPACE, START, FakeApi

DAY = 24 * 3600 * SECOND
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class World:
    """A server, what it knows, and a client that trusts what the webhook configuration says."""

    def __init__(self, ca_file: Path | None = None, *client_names: str) -> None:
        self.now = START
        self.api = FakeApi(lambda: self.now)
        self.api.install()
        self.known = ObjectCache()
        self.server = Server(
            self.api,
            self.known,
            parse(None),
            namespace=NAMESPACE,
            names=("localhost",),
            host="127.0.0.1",
            port=0,
            clients=Clients(ca_file, client_names),
            now=lambda: self.now,
        )

    def sees(self, *names: str) -> None:
        """Queues that exist, and that the process has heard of."""
        for name in names:
            obj = self.api.store.create(m.queue(name))
            self.known.observe(WatchEvent("ADDED", "Queue.scheduling.volcano.sh", obj))
        self.known.listed()

    def client(self, bundle: str | None = None) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.trusting(bundle or self.api.bundle())))

    def trusting(self, bundle: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        # The certificate's clock is the test's, so its dates are not checked here; see test_certificates.
        context.verify_flags |= 0x200000  # X509_V_FLAG_NO_CHECK_TIME
        return context

    def url(self, path: str) -> str:
        assert self.server.address is not None
        return f"https://localhost:{self.server.address[1]}{path}"

    async def slow_client(self, length: int = 100, sent: bytes = b"{") -> Connection:
        """A connection whose request never arrives as a whole."""
        assert self.server.address is not None
        context = self.trusting(self.api.bundle())
        reader, writer = await asyncio.open_connection("localhost", self.server.address[1], ssl=context)
        writer.write(b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length + sent)
        await writer.drain()
        return reader, writer

    async def ask(self, question: dict[str, Any], path: str = "/mutate", bundle: str | None = None) -> dict[str, Any]:
        async with self.client(bundle) as client, client.post(self.url(path), json=question) as answer:
            assert answer.status == 200, await answer.text()
            reported: dict[str, Any] = (await answer.json())["response"]
            return reported


@asynccontextmanager
async def running(world: World) -> AsyncIterator[World]:
    serving = asyncio.create_task(world.server.serve())
    try:
        async with asyncio.timeout(20):
            while world.server.address is None:
                if serving.done():
                    await serving
                await asyncio.sleep(0.005)
        yield world
    finally:
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving


def play(story: Callable[[World], Awaitable[None]], ca_file: Path | None = None, *client_names: str) -> None:
    """`ca_file`, `client_names`: which clients may send reviews."""

    async def played() -> None:
        async with running(World(ca_file, *client_names)) as world:
            await story(world)

    asyncio.run(played())
