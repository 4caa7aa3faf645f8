"""What becomes of requests whose connection ends, stalls or cannot be made, over raw sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization

from cluster.kube.server import QUICK, play, until
from enbloc.cluster.kube.credentials import Credentials
from enbloc.cluster.kube.http import Answer, Api
from enbloc.webhook.certificates import new_authority, new_serving

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
PATIENT = msgspec.structs.replace(QUICK, attempt_s=10.0, patience_s=15.0)
Answers = Callable[[int], bytes]
"""From the number of the request on its connection, from 1; empty: it hangs up."""


class Server:
    """Answers each request with what it is given, after the whole request has come."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.requests: list[bytes] = []
        self.port = 0
        self.connections = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.serving: list[asyncio.Task[None] | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        self.serving.append(asyncio.current_task())
        number = 0
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                number += 1
                answer = self._answers(number)
                if not answer:
                    break
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


@asynccontextmanager
async def a_server(
    answers: Answers, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Server]:
    server = Server(answers)
    listening = await asyncio.start_server(server.serve, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in server.writers:
            writer.close()
        await asyncio.gather(*filter(None, server.serving), return_exceptions=True)


@asynccontextmanager
async def an_api(credentials: Credentials | str) -> AsyncIterator[Api]:
    api = Api(Credentials(credentials) if isinstance(credentials, str) else credentials, 8, PATIENT)
    try:
        yield api
    finally:
        await api.close()


async def post(api: Api, body: bytes = b"{}", *, at_most_once: bool = False) -> Answer:
    return await api.write("POST", "/api/v1/pods", body, at_most_once=at_most_once)


def refused(code: int, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Sorry\r\n%sContent-Length: 0\r\n\r\n" % (code, more)


def test_writes_one_after_the_other_share_a_connection_and_those_at_once_have_one_each() -> None:
    async def story() -> None:
        async with a_server(lambda _: OK) as server:
            at = Credentials(f"http://127.0.0.1:{server.port}/behind", token="secret")
            async with an_api(at) as api:
                for _ in range(20):
                    assert (await post(api)).status == 201
                assert server.connections == 1
                await asyncio.gather(*(post(api, b"x" * size) for size in range(1, 6)))
                assert server.connections == 5
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
        first, *headers = head.split(b"\r\n")
        assert first == b"POST /behind/api/v1/pods HTTP/1.1"
        assert set(headers) == {
            b"Host: 127.0.0.1:%d" % server.port,
            b"User-Agent: enbloc",
            b"Accept: application/json",
            b"Accept-Encoding: identity",
            b"Authorization: Bearer secret",
            b"Content-Type: application/json",
            b"Content-Length: 2",
        }
        assert body == b"{}"

    play(story)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"HTTP/1.1 2",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
    ],
    ids=["nothing", "part of a head", "part of a body", "no chunk", "no answer"],
)
def test_a_connection_that_ends_leaves_the_request_on_it_unsure_and_is_not_used_again(broken: bytes) -> None:
    async def story() -> None:
        def answers(number: int) -> bytes:
            if number == 1:
                return OK
            server.writers[-1].write(broken)
            return b""

        async with a_server(answers) as server, an_api(f"http://127.0.0.1:{server.port}") as api:
            assert (await post(api)).status == 201
            lost = await post(api, at_most_once=True)  # the server has read the request: it may have executed it
            assert (lost.status, lost.unsure) == (504, True)
            assert len(server.requests) == 2
            assert (await post(api)).status == 201
            assert await post(api) == Answer(201, b"{}", unsure=True)  # lost once more, and repeated
            assert server.connections == 3

    play(story)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_request_is_repeated_unseen(method: str) -> None:
    """aiohttp repeats those that are idempotent: a DELETE whose answer was lost would be answered by 404."""

    async def story() -> None:
        def answers(_: int) -> bytes:
            return b"" if len(server.requests) == 1 else refused(404)

        async with a_server(answers) as server, an_api(f"http://127.0.0.1:{server.port}") as api:
            assert await api.write(method, "/api/v1/pods/a", b"{}") == Answer(404, b"", unsure=True)
            assert len(server.requests) == 2

    play(story)


def test_an_answer_to_a_cancelled_request_is_nobody_elses() -> None:
    async def story() -> None:
        async with (
            a_server(lambda _: OK if len(server.requests) > 1 else OK[:20]) as server,
            an_api(f"http://127.0.0.1:{server.port}") as api,
        ):
            asked = asyncio.ensure_future(post(api))
            await until(lambda: bool(server.requests))
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert (await post(api)).status == 201
            assert server.connections == 2

    play(story)


def test_requests_under_way_end_when_the_client_is_closed() -> None:
    async def story() -> None:
        async with a_server(lambda _: OK[:20]) as server, an_api(f"http://127.0.0.1:{server.port}") as api:
            asked = asyncio.ensure_future(post(api))
            await until(lambda: bool(server.requests))
            async with asyncio.timeout(2.0):
                await api.close()
                with pytest.raises(RuntimeError):
                    await asked
                with pytest.raises(RuntimeError):
                    await post(api)
            assert server.connections == 1

    play(story)


@pytest.mark.parametrize("is_proxy", [False, True])
def test_a_redirection_of_a_write_is_a_refusal(is_proxy: bool) -> None:
    async def story() -> None:
        async with a_server(lambda _: refused(307, b"Location: http://127.0.0.1:1/x\r\n")) as server:
            at = f"http://127.0.0.1:{server.port}"
            async with an_api(Credentials("http://far.example", proxy=at) if is_proxy else Credentials(at)) as api:
                answer = await post(api)
                assert (answer.status, answer.is_good, len(server.requests)) == (307, False, 1)

    play(story)


@pytest.fixture
def serving(tmp_path: Path) -> tuple[ssl.SSLContext, str]:
    """A server's side of TLS, and the authority that signed it."""
    now = datetime.now(UTC)
    authority = new_authority(now)
    own = new_serving(authority, ["localhost"], now)
    secret = own.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "pem").write_bytes(own.certificate.public_bytes(serialization.Encoding.PEM) + secret)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    return context, authority.certificate.public_bytes(serialization.Encoding.PEM).decode()


def test_tls_is_checked_and_large_bodies_come_through_it(serving: tuple[ssl.SSLContext, str]) -> None:
    own, root = serving
    body = b"y" * 900_000
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n" + body

    async def story() -> None:
        trusting = ssl.create_default_context(cadata=root)
        async with a_server(lambda number: long if number % 2 else OK, own) as server:
            at = f"https://127.0.0.1:{server.port}"
            async with an_api(Credentials(at, trusting, "localhost")) as api:
                for number in range(6):
                    assert (await post(api, b"x" * 900_000)).body == (b"{}" if number % 2 else body)
                assert server.connections == 1
            server.requests.clear()
            async with an_api(Credentials(at, ssl.create_default_context(), "localhost")) as api:
                began_s = time.monotonic()
                answer = await post(api)
                assert (answer.status, answer.unsure, server.requests) == (503, False, [])
                assert time.monotonic() - began_s < 5  # another attempt would end the same
            async with an_api(Credentials(at, trusting, "another")) as api:
                assert (await post(api)).status == 503

    play(story)


def test_a_handshake_that_the_server_ends_is_tried_again(serving: tuple[ssl.SSLContext, str]) -> None:
    """As of a load balancer whose API server is starting."""
    own, root = serving

    async def story() -> None:
        met = 0

        async def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal met
            met += 1
            if met < 3:
                writer.close()
                return
            await writer.start_tls(own)
            await server.serve(_, writer)

        server = Server(lambda _: OK)
        listening = await asyncio.start_server(meet, "127.0.0.1", 0)
        at = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with an_api(Credentials(at, ssl.create_default_context(cadata=root), "localhost")) as api:
            assert await post(api, at_most_once=True) == Answer(201, b"{}", unsure=False)
        assert met == 3
        listening.close()

    play(story)


def test_a_new_certificate_is_used_after_a_401(serving: tuple[ssl.SSLContext, str]) -> None:
    own, root = serving

    class Rotating(Credentials):
        async def authorization(self, *, refused: bool = False) -> str | None:
            if refused or self.tls is None:
                self.tls = ssl.create_default_context(cadata=root)
            return None

    async def story() -> None:
        async with (
            a_server(lambda number: OK if number < 3 else refused(401), own) as server,
            an_api(Rotating(f"https://127.0.0.1:{server.port}", None, "localhost")) as api,
        ):
            for _ in range(3):
                assert (await post(api)).status == 201
            assert server.connections == 2  # the certificate belongs to the handshake
            assert len(server.requests) == 4

    play(story)


def test_an_address_that_drops_packets_does_not_use_up_the_time_of_the_next() -> None:
    async def story() -> None:
        full = socket.socket()
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = []
        for _ in range(4):  # more than it takes: the next one's packets are dropped
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(full.getsockname())
        async with a_server(lambda _: OK) as server:
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            addresses = [(*kind, full.getsockname()), (*kind, ("127.0.0.1", server.port))]

            async def resolve(*_: object, **__: object) -> list[object]:
                return list(addresses)

            asyncio.get_running_loop().getaddrinfo = resolve  # type: ignore[method-assign, assignment]
            async with an_api(f"http://two.example:{server.port}") as api:
                began_s = time.monotonic()
                assert (await post(api)).status == 201
                assert time.monotonic() - began_s < PATIENT.connect_s / 2
        for one in (full, *waiting):
            one.close()

    play(story)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
def test_an_ipv6_address_is_taken_as_it_stands_in_urls() -> None:
    async def story() -> None:
        async with a_server(lambda _: OK, host="::1") as server, an_api(f"http://[::1]:{server.port}") as api:
            assert (await post(api)).status == 201
            assert b"\r\nHost: [::1]:%d\r\n" % server.port in server.requests[0]

    play(story)
