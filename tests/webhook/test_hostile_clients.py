"""Clients that reach the webhook's port and are no API server: they delay no review (findings W1 to W4)."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509 as certificates
from cryptography.x509.oid import ExtendedKeyUsageOID

from enbloc import x509
from enbloc.api.writes import Refused
from enbloc.webhook import bodies, listener, server
from enbloc.webhook.certificate_rotation import CertificateRotation
from enbloc.webhook.certificates import Content
from support.webhook_api import FakeApi, job, review
from support.webhook_server import DAY, Connection, World, play

SLOW_CLIENTS = 400
Signer = tuple[certificates.Name, x509.Key]


async def hanging(world: World, count: int, length: int = 100, sent: bytes = b"{") -> list[Connection]:
    return [await world.slow_client(length, sent) for _ in range(count)]


def leave(clients: list[Connection]) -> None:
    for _, writer in clients:
        writer.close()


def test_w1_reviews_are_answered_while_400_slow_clients_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow clients are never given up here, so a review that waited for one of them would never be answered."""
    monkeypatch.setattr(bodies, "READ_S", 3600.0)

    async def story(world: World) -> None:
        world.sees("default")
        slow = await hanging(world, SLOW_CLIENTS)
        for path in ("/mutate", "/validate", "/warn"):
            assert (await world.ask(review("CREATE", job()), path))["allowed"]
        assert not any(reader.at_eof() for reader, _ in slow), "all of them still hang"
        leave(slow)

    play(story)


def test_w1_a_slow_client_is_given_up_after_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "READ_S", 0.1)

    async def story(world: World) -> None:
        slow = await hanging(world, 3)
        for reader, _ in slow:
            assert b" 408 " in await reader.readline()
        leave(slow)

    play(story)


def test_w1_a_client_that_sends_no_request_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_S", 0.3)

    async def story(world: World) -> None:
        assert world.server.address is not None
        port, context = world.server.address[1], world.trusting(world.api.bundle())
        for tls, first in ((None, b""), (None, b"\x16\x03"), (context, b""), (context, b"POST /mutate HTTP/1.1\r\n")):
            reader, writer = await asyncio.open_connection("localhost", port, ssl=tls)
            writer.write(first)
            async with asyncio.timeout(20):
                await asyncio.gather(reader.read(), return_exceptions=True)  # to the end, or until it is reset
            writer.close()

    play(story)


def test_w1_with_too_many_connections_the_one_without_a_request_for_longest_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "CONNECTIONS", 10)

    async def story(world: World) -> None:
        world.sees("default")
        async with world.client() as api_server:
            slow = await hanging(world, 8)
            async with api_server.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 200
            more = await hanging(world, 5)
            async with asyncio.timeout(20):
                for reader, _ in slow[:4]:
                    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                        await reader.readexactly(1)
            async with api_server.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                assert answer.status == 200, "its connection was used later than theirs"
            assert not any(reader.at_eof() for reader, _ in more)
            leave(slow + more)

    play(story)


def test_w1_bodies_are_bounded_in_memory_all_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The body that has been arriving for longest is given up, and a review still fits."""
    monkeypatch.setattr(server, "Bodies", lambda: bodies.Bodies(200_000))

    async def story(world: World) -> None:
        world.sees("default")
        slow = await hanging(world, 10, 100_000, b" " * 50_000)
        assert (await world.ask(review("CREATE", job())))["allowed"]
        async with asyncio.timeout(20):
            for reader, _ in slow[:6]:
                assert b" 408 " in await reader.readline()
        leave(slow)

    play(story)


def test_w1_a_compressed_body_is_refused_before_it_is_read() -> None:
    async def story(world: World) -> None:
        headers = {"Content-Encoding": "gzip"}
        client = world.client()
        async with client, client.post(world.url("/mutate"), data=b"\x1f\x8b" * 50, headers=headers) as answer:
            assert answer.status == 415

    play(story)


def signed(authority: Signer | None, name: str, path: Path) -> Signer:
    """A key and certificate in PEM at `path`; without an authority it is one."""
    key, now = x509.new_key(), datetime.datetime.now(datetime.UTC)
    owner = x509.subject(name)
    extensions: list[tuple[certificates.ExtensionType, bool]] = [
        (certificates.BasicConstraints(ca=authority is None, path_length=None), True)
    ]
    if authority is not None:
        extensions.append((certificates.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), False))
    by, by_key = authority or (owner, key)
    made = x509.certificate(owner, key, by, by_key, now, 1, extensions)
    path.write_bytes(x509.key_pem(key) + x509.certificate_pem(made))
    return owner, key


def test_w1_only_clients_with_a_certificate_of_the_named_ca_get_reviews(tmp_path: Path) -> None:
    """`--webhook-client-ca`, `--webhook-client-name`. Probes have no certificate and are answered."""
    authority, stranger = signed(None, "ca", tmp_path / "ca"), signed(None, "other", tmp_path / "other")
    signed(authority, "api-server", tmp_path / "good")
    signed(authority, "a-kubelet", tmp_path / "kubelet")
    signed(stranger, "api-server", tmp_path / "forged")

    async def story(world: World) -> None:
        world.sees("default")

        async def status(certificate: str | None) -> int:
            context = world.trusting(world.api.bundle())
            if certificate is not None:
                context.load_cert_chain(tmp_path / certificate)
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as client:
                async with client.get(world.url("/readyz")) as ready:
                    assert ready.status == 200
                async with client.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                    return answer.status

        assert await status("good") == 200
        assert await status("kubelet") == 403
        assert await status(None) == 403
        with pytest.raises((ssl.SSLError, aiohttp.ClientError, ConnectionError)):
            await status("forged")

    play(story, tmp_path / "ca", "api-server")


def test_w2_it_binds_where_it_says() -> None:
    async def story(world: World) -> None:
        assert world.server.address is not None
        host, port = world.server.address
        assert host == "127.0.0.1"
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.2", port)

    play(story)


def test_w3_a_missing_namespace_is_named() -> None:
    api = FakeApi()
    api.store.auto_namespaces = False
    rotation = CertificateRotation(api, "nowhere", "certificates", ["localhost"], "enbloc")
    with pytest.raises(Refused, match=r"namespace 'nowhere' does not exist: apply the output of `enbloc install`"):
        asyncio.run(rotation.renew(0))


def test_w4_two_objects_of_different_kinds_are_a_400() -> None:
    async def story(world: World) -> None:
        world.sees("default")
        other = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        async with world.client() as client:
            for old in (other, {**job(), "apiVersion": "example.com/v1"}):
                async with client.post(world.url("/mutate"), json=review("UPDATE", job(), old)) as answer:
                    assert answer.status == 400

    play(story)


def test_certificates_rotate_under_a_running_server_and_every_review_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three years of renewals by the server itself, among new and kept connections. Each client trusts the bundle that
    was in the configuration a day before it connects, as an API server that is late would."""
    monkeypatch.setattr(server, "LOOK_EVERY_S", 0.001)
    served: set[bytes] = set()
    looked = asyncio.Event()
    load = server.Server._load

    def loaded(self: server.Server, content: Content) -> None:
        load(self, content)
        served.add(self._loaded)
        looked.set()

    monkeypatch.setattr(server.Server, "_load", loaded)

    async def story(world: World) -> None:
        world.sees("default")
        async with world.client() as kept:
            for _ in range(3 * 365 // 15):
                late = world.api.bundle()
                world.now += 15 * DAY
                looked.clear()
                await looked.wait()  # one that began before the clock moved
                looked.clear()
                await looked.wait()
                assert (await world.ask(review("CREATE", job()), bundle=late))["allowed"]
                async with kept.post(world.url("/mutate"), json=review("CREATE", job())) as answer:
                    assert answer.status == 200

    play(story)
    assert len(served) > 10
