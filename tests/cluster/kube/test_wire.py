from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from cluster.kube.server import QUICK, play
from enbloc.cluster.kube.credentials import Credentials
from enbloc.cluster.kube.http import Api
from enbloc.cluster.kube.wire import Broken, NotSent, NotTrusted, Received, Wire, parse
from enbloc.webhook.certificates import new_authority, new_serving

OK = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
Answers = Callable[[int], bytes]
"""From the number of the request on its connection, from 1."""


class Server:
    """Answers each request with what it is given, after the whole request has come."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.requests: list[bytes] = []
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
                    writer.close()
                    return
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def a_wire(
    answers: Answers,
    tls: ssl.SSLContext | None = None,
    trusted: ssl.SSLContext | None = None,
    base: str = "",
    host: str = "127.0.0.1",
) -> AsyncIterator[tuple[Server, Wire]]:
    server = Server(answers)
    listening = await asyncio.start_server(server.serve, host, 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    wire = Wire(f"{'https' if tls else 'http'}://{at}{base}", trusted, "localhost" if tls else None, 2.0)
    try:
        yield server, wire
    finally:
        wire.close()
        listening.close()
        for writer in server.writers:
            writer.close()
        await asyncio.gather(*filter(None, server.serving), return_exceptions=True)


def post(wire: Wire, path: str = "/api/v1/pods", body: bytes = b"{}", within_s: float = 5.0) -> Awaitable[Received]:
    return wire.request("POST", path, body, "application/json", within_s)


def test_writes_one_after_the_other_share_a_connection_and_those_at_once_have_one_each() -> None:
    async def story() -> None:
        async with a_wire(lambda _: OK, base="/behind") as (server, wire):
            wire.authorize("Bearer secret")
            for _ in range(20):
                assert (await post(wire)).status == 201
            assert server.connections == 1
            await asyncio.gather(*(post(wire, body=b"x" * size) for size in range(5)))
            assert server.connections == 5
            head, _, body = server.requests[0].partition(b"\r\n\r\n")
            assert head.split(b"\r\n") == [
                b"POST /behind/api/v1/pods HTTP/1.1",
                b"Host: 127.0.0.1:%d" % wire._port,
                b"User-Agent: enbloc",
                b"Accept: application/json",
                b"Accept-Encoding: identity",
                b"Authorization: Bearer secret",
                b"Content-Type: application/json",
                b"Content-Length: 2",
            ]
            assert body == b"{}"

    play(story)


def test_a_large_write_is_sent_in_as_many_pieces_as_it_takes() -> None:
    async def story() -> None:
        async with a_wire(lambda _: OK) as (server, wire):
            body = b"0123456789" * 2_000_000
            assert (await post(wire, body=body, within_s=30.0)).status == 201
            assert server.requests[0].endswith(b"\r\n\r\n" + body)

    play(story)


WHOLE = [
    (OK, Received(201, b"{}", None, False)),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, Received(201, b"{}", None, False)),
    (b"HTTP/1.1 204 No Content\r\n\r\n", Received(204, b"", None, False)),
    (
        b"HTTP/1.1 429 Too Many\r\nRETRY-AFTER:  7 \r\nConnection: Close\r\nContent-Length: 0\r\n\r\n",
        Received(429, b"", "7", True),
    ),
    (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        Received(200, b"abc0123456789", None, False),
    ),
    (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nDate: x\r\ncontent-length: 2\r\n\r\nab",
        Received(200, b"ab", None, False),
    ),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", Received(200, b"x", None, True)),
    (b"HTTP/1.1 503\r\nContent-Length: 0\r\n\r\n", Received(503, b"", None, False)),
]


@pytest.mark.parametrize("data, wanted", WHOLE)
def test_an_answer_is_read_whole_however_it_is_cut(data: bytes, wanted: Received) -> None:
    for cut in range(len(data)):
        begun = bytearray(data[:cut])
        assert parse(begun) is None, cut
        assert parse(begun + data[cut:]) == wanted, cut  # an interim answer may have been dropped from what was begun


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    data = bytearray(b"HTTP/1.1 502 Bad Gateway\r\n\r\n<html>")
    assert parse(data) is None
    assert parse(data, ended=True) == Received(502, b"<html>", None, True)
    assert parse(bytearray(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), ended=True) is None


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 70_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
        b"x" * 70_000,
        OK + OK,
    ],
    ids=lambda data: data[-60:].decode("ascii").strip(),
)
def test_what_is_no_answer_breaks_the_connection(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse(bytearray(data))

    async def story() -> None:
        async with a_wire(lambda _: data) as (_, wire):
            with pytest.raises(Broken):
                await post(wire)
            assert not wire._open
            assert not wire._idle

    play(story)


def test_a_connection_that_ends_is_not_used_again_and_a_request_on_it_is_unsure() -> None:
    async def story() -> None:
        async with a_wire(lambda number: OK if number == 1 else b"") as (server, wire):
            await post(wire)
            with pytest.raises(Broken):  # the server has read the request: it may have executed it
                await post(wire)
            await post(wire)
            server.writers[-1].close()  # while it is idle
            for _ in range(100):
                if not wire._open:
                    break
                await asyncio.sleep(0.01)
            await post(wire)
            assert server.connections == 3

    play(story)


def test_an_answer_that_comes_too_late_or_to_a_cancelled_request_is_nobody_elses() -> None:
    async def story() -> None:
        async with a_wire(lambda number: b"HTTP/1.1 1") as (server, wire):  # and the rest never comes
            with pytest.raises(TimeoutError):
                await post(wire, within_s=0.05)
            assert not wire._open
            asked = asyncio.ensure_future(post(wire))
            while len(server.requests) < 2:
                await asyncio.sleep(0.001)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert not wire._open
            assert not wire._idle

    play(story)


def test_nothing_was_sent_where_there_is_no_server_and_where_the_path_is_none() -> None:
    async def story() -> None:
        async with a_wire(lambda _: OK) as (server, wire):
            for path in ("/a b", "/a\r\nX: y", "/ä"):
                with pytest.raises(NotSent):
                    await post(wire, path)
            assert not server.connections
            port = wire._port
        gone = Wire(f"http://127.0.0.1:{port}", None, None, 2.0)
        with pytest.raises(NotSent):
            await post(gone)

    play(story)


def test_tls_is_checked_and_many_answers_come_through_it(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    authority = new_authority(now)
    own = new_serving(authority, ["localhost"], now)
    secret = own.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "pem").write_bytes(own.certificate.public_bytes(serialization.Encoding.PEM) + secret)
    root = authority.certificate.public_bytes(serialization.Encoding.PEM).decode()

    async def story() -> None:
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(tmp_path / "pem")
        trusting = ssl.create_default_context(cadata=root)
        body = b"y" * 200_000
        long = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + body
        async with a_wire(lambda number: long if number % 2 else OK, serving, trusting) as (server, wire):
            for number in range(6):
                assert (await post(wire, body=b"x" * 300_000)).body == (b"{}" if number % 2 else body)
            assert server.connections == 1
        async with a_wire(lambda _: OK, serving, ssl.create_default_context()) as (server, wire):
            with pytest.raises(NotTrusted):
                await post(wire)
            assert not server.requests

    play(story)


def test_requests_under_way_break_when_it_is_closed_and_no_connection_is_made_after_that() -> None:
    async def story() -> None:
        async with a_wire(lambda _: b"HTTP/1.1 1") as (server, wire):
            asked = asyncio.ensure_future(post(wire, within_s=60.0))
            while not server.requests:
                await asyncio.sleep(0.001)
            connecting = asyncio.ensure_future(post(wire, within_s=60.0))
            await asyncio.sleep(0)
            wire.close()
            async with asyncio.timeout(1.0):
                with pytest.raises(Broken):
                    await asked
                with pytest.raises(RuntimeError):
                    await connecting
                with pytest.raises(RuntimeError):
                    await post(wire)
            assert not wire._open

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
        async with a_wire(lambda _: OK) as (server, wire):
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            addresses = [(*kind, full.getsockname()), (*kind, ("127.0.0.1", wire._port))]

            async def resolve(*_: object, **__: object) -> list[object]:
                return list(addresses)

            asyncio.get_running_loop().getaddrinfo = resolve  # type: ignore[method-assign, assignment]
            began_s = time.monotonic()
            assert (await post(wire)).status == 201
            assert time.monotonic() - began_s > 0.5  # it was tried
            wire.renew()
            began_s = time.monotonic()
            assert (await post(wire)).status == 201
            assert time.monotonic() - began_s < 0.5  # the one that answers is first
            assert server.connections == 2
        for one in (full, *waiting):
            one.close()

    play(story)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 here")
def test_an_ipv6_address_is_taken_as_it_stands_in_urls() -> None:
    async def story() -> None:
        async with a_wire(lambda _: OK, host="::1") as (server, wire):
            assert (await post(wire)).status == 201
            assert b"\r\nHost: [::1]:%d\r\n" % wire._port in server.requests[0]

    play(story)


def test_a_token_with_a_line_end_is_no_header() -> None:
    wire = Wire("http://127.0.0.1:1", None, None, 2.0)
    for token in ("Bearer a\r\nX: y", "Bearer a\nb", "Bearer \0"):
        with pytest.raises(ValueError):
            wire.authorize(token)


def _refused(code: int, more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d Sorry\r\n%sContent-Length: 0\r\n\r\n" % (code, more)


def test_after_a_401_the_write_goes_over_a_new_connection_with_the_new_certificate() -> None:
    async def story() -> None:
        async with a_wire(lambda number: OK if number < 3 else _refused(401)) as (server, wire):
            api = Api(Credentials(f"http://127.0.0.1:{wire._port}"), 4, QUICK)
            for _ in range(3):
                assert (await api.write("POST", "/api/v1/pods", b"{}")).status == 201
            assert server.connections == 2
            assert len(server.requests) == 4
            await api.close()

    play(story)


@pytest.mark.parametrize("is_proxy", [False, True])
def test_a_redirection_of_a_write_is_a_refusal(is_proxy: bool) -> None:
    async def story() -> None:
        async with a_wire(lambda _: _refused(307, b"Location: http://127.0.0.1:1/x\r\n")) as (server, wire):
            at = f"http://127.0.0.1:{wire._port}"
            credentials = Credentials("http://far.example", proxy=at) if is_proxy else Credentials(at)
            api = Api(credentials, 4, QUICK)
            answer = await api.write("POST", "/api/v1/pods", b"{}")
            assert (answer.status, answer.is_good, len(server.requests)) == (307, False, 1)
            await api.close()

    play(story)
