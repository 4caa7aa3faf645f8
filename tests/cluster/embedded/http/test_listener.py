"""One port, two tongues: http, https, and what is neither."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path

import pytest

from cluster.embedded.http.serving import MAPS, TOKEN, Api, serve, served_in_background
from enbloc.cluster.embedded.http import listener, request_body
from enbloc.cluster.embedded.http.certificate import load_certificate
from enbloc.cluster.embedded.http.encoding import encode
from enbloc.cluster.embedded.http.kubeconfig import write_kubeconfig

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


async def exchange(port: int, sent: bytes, tls: ssl.SSLContext | None = None, name: str | None = None) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=name)
    try:
        writer.write(sent)
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def test_http_and_https_on_one_port(tmp_path: Path) -> None:
    with served_in_background(tmp_path) as (kubeconfig, _):
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        cluster = json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]
        port = int(cluster["server"].rpartition(":")[2])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        tls = ssl.create_default_context(cadata=authority)

        async def test() -> None:
            assert b"200 OK" in await exchange(port, REQUEST)
            assert b"200 OK" in await exchange(port, REQUEST, tls, "localhost")
            silent = await asyncio.open_connection("127.0.0.1", port)
            assert b" 400 " in await exchange(port, b"\x00\xff nonsense\r\n\r\n")
            await exchange(port, b"\x16\x03\x01garbage that is no handshake" * 10)
            gone = await asyncio.open_connection("127.0.0.1", port)
            gone[1].close()
            assert b"200 OK" in await exchange(port, REQUEST)
            silent[1].close()

        asyncio.run(test())


def test_a_certificate_that_is_kept_is_the_same_again_while_it_is_good(tmp_path: Path) -> None:
    file = tmp_path / "certificate.pem"
    made = load_certificate(file, "127.0.0.1")
    assert file.stat().st_mode & 0o777 == 0o600
    assert load_certificate(file, "127.0.0.1") == made
    other = load_certificate(file, "192.0.2.1")
    assert other != made, "it is for other addresses"
    file.write_bytes(other.certificate)
    whole = load_certificate(file, "192.0.2.1")
    assert whole != other, "its key is gone"
    assert load_certificate(file, "192.0.2.1") == whole


def test_a_kubeconfig_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "state" / "kubeconfig"
    for token in ("one", "two"):
        write_kubeconfig(path, "https://127.0.0.1:1", token, b"pem")
        assert encode({"token": token}) in path.read_bytes().replace(b" ", b"")
    assert list(path.parent.iterdir()) == [path]
    assert path.parent.stat().st_mode & 0o077 == 0


def test_who_never_ends_a_request_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_S", 0.4)
    monkeypatch.setattr(listener, "FIRST_BYTE_S", 0.4)
    monkeypatch.setattr(request_body, "BODY_S", 0.4)
    post = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n".encode()

    async def test(api: Api) -> None:
        assert await exchange(api.port, b"") == b""
        assert await exchange(api.port, b"GET / HTTP/1.1\r\nHost: ") == b""
        assert b" 408 " in (await exchange(api.port, post + b'{"a')).splitlines()[0]
        kept, writer = await asyncio.open_connection("127.0.0.1", api.port)
        for _ in range(3):  # who has sent one request may take the time between two
            writer.write(REQUEST.replace(b"Connection: close\r\n", b""))
            assert b"200 OK" in await kept.readuntil(b"ok")
            await asyncio.sleep(0.3)
        writer.close()

    serve(test)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET " + b"/x" * 50_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(100_000)) + b"\r\n",
        b"\r\n" * 100_000,
    ],
    ids=["path", "header", "version", "method", "length", "both", "headers", "nothing"],
)
def test_what_is_no_request_has_a_short_answer(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEAD_S", 2.0)

    async def test(api: Api) -> None:
        answer = await exchange(api.port, sent)
        assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer[:200]
        assert len(answer) < 20_000
        assert b"Traceback" not in answer
        assert b"200 OK" in await exchange(api.port, REQUEST)

    serve(test)
