"""The webhook as a part of `enbloc run`: it follows what it needs, waits for an API that is down, and ends well."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable, Collection
from pathlib import Path

import aiohttp
import pytest

from enbloc.api.writes import WatchEvent
from enbloc.config import parse
from enbloc.webhook import component
from enbloc.webhook.cache import ObjectCache
from enbloc.webhook.component import own_namespace, serve_webhook
from enbloc.webhook.server import Server
from support import manifests as m
from support.webhook_api import NAMESPACE, FakeApi, job, review


class FollowedApi(FakeApi):
    """With the list and watch of a live cluster."""

    started = 0

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        self._call("start", "")
        self.started += 1
        for kind in sorted(kinds):
            for obj in self.store.list(kind)[0]:
                observe(WatchEvent("ADDED", kind, obj))


async def answers(api: FollowedApi, port: int) -> int:
    """The status of /readyz, once the server answers."""
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if not api.bundle():
            continue
        context = ssl.create_default_context(cadata=base64.b64decode(api.bundle()).decode())
        context.verify_flags |= 0x200000  # X509_V_FLAG_NO_CHECK_TIME
        client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
        host = "enbloc-webhook.enbloc-system.svc"
        url = f"https://127.0.0.1:{port}"
        try:
            async with client:
                async with client.post(f"{url}/mutate", json=review("CREATE", job()), server_hostname=host) as answer:
                    assert answer.status == 200
                async with client.get(f"{url}/readyz", server_hostname=host) as answer:
                    return answer.status
        except aiohttp.ClientConnectorError:
            continue
    raise AssertionError("the server does not answer")


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.parametrize(("follow", "started"), [(True, 1), (False, 0)])
def test_it_serves_whether_it_follows_or_asks(monkeypatch: pytest.MonkeyPatch, follow: bool, started: int) -> None:
    monkeypatch.setattr("enbloc.webhook.server.RETRY_S", (0.01, 0.02))
    monkeypatch.setattr(component, "RETRY_S", (0.01, 0.02))

    async def story() -> None:
        api = FollowedApi()
        api.install()
        api.store.create(m.queue("default"))
        api.is_down = True
        port = free_port()
        end = await serve_webhook(api, parse(None), follow=follow, namespace=NAMESPACE, port=port)
        await asyncio.sleep(0.05)
        assert api.bundle() == ""
        api.is_down = False
        assert await answers(api, port) == 200
        assert api.started == started
        await end()
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", port)

    asyncio.run(story())


def test_what_another_component_watches_is_used() -> None:
    async def story() -> None:
        api = FollowedApi()
        api.install()
        known = ObjectCache()
        api.store.create(m.queue("default"))
        port = free_port()
        end = await serve_webhook(api, parse(None), known=known, namespace=NAMESPACE, port=port)
        assert await answers(api, port) == 503, "the cache is not complete yet"
        known.observe(WatchEvent("ADDED", "Queue.scheduling.volcano.sh", m.queue("default")))
        known.listed()
        assert await answers(api, port) == 200
        assert api.started == 0
        await end()

    asyncio.run(story())


def test_a_bug_in_looking_after_certificates_does_not_end_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("enbloc.webhook.server.RETRY_S", (0.01, 0.02))
    looks = []

    async def look(self: Server) -> None:
        looks.append(self)
        if len(looks) < 3:
            raise ZeroDivisionError

    monkeypatch.setattr(Server, "renew", look)

    async def story() -> None:
        server = Server(FakeApi(), None, parse(None), namespace=NAMESPACE, host="127.0.0.1", port=0)
        await server._renew_until_done()

    asyncio.run(story())
    assert len(looks) == 3
    assert "bug in renewing certificates" in caplog.text


def test_the_namespace_is_the_pods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ENBLOC_NAMESPACE", raising=False)
    monkeypatch.setattr(component, "NAMESPACE_FILE", tmp_path / "namespace")
    assert own_namespace() == "enbloc-system"
    (tmp_path / "namespace").write_text("mounted\n")
    assert own_namespace() == "mounted"
    monkeypatch.setenv("ENBLOC_NAMESPACE", "given")
    assert own_namespace() == "given"
