"""One port, two tongues: http, https, and what is neither."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from pathlib import Path

from cluster.embedded.http.serving import served_in_background
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


def test_a_kubeconfig_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "state" / "kubeconfig"
    for token in ("one", "two"):
        write_kubeconfig(path, "https://127.0.0.1:1", token, b"pem")
        assert encode({"token": token}) in path.read_bytes().replace(b" ", b"")
    assert list(path.parent.iterdir()) == [path]
    assert path.parent.stat().st_mode & 0o077 == 0
