from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization

from cluster.kube.server import QUICK, play
from enbloc.cluster.kube.credentials import Credentials
from enbloc.cluster.kube.http import Api
from enbloc.webhook.certificates import new_authority, new_serving


@contextmanager
def mute_server(folder: Path) -> Iterator[tuple[str, ssl.SSLContext, threading.Semaphore]]:
    """Accepts requests over TLS and never writes a byte: no answer, no end of TLS. The semaphore counts requests."""
    now = datetime.now(UTC)
    authority = new_authority(now)
    own = new_serving(authority, ["localhost"], now)
    key = own.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "pem").write_bytes(own.certificate.public_bytes(serialization.Encoding.PEM) + key)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(folder / "pem")
    asked = threading.Semaphore(0)
    kept: list[ssl.SSLSocket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # the listening socket was shut down
                while True:
                    connection, _ = listening.accept()
                    connection.settimeout(10)
                    kept.append(serving.wrap_socket(connection, server_side=True))
                    kept[-1].recv(65_536)
                    asked.release()

        thread = threading.Thread(target=serve)
        thread.start()
        trusted = ssl.create_default_context(
            cadata=authority.certificate.public_bytes(serialization.Encoding.PEM).decode()
        )
        try:
            yield f"https://127.0.0.1:{listening.getsockname()[1]}", trusted, asked
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in kept:
                one.close()


def test_closing_a_session_closes_the_connections_of_cancelled_requests(tmp_path: Path) -> None:
    with mute_server(tmp_path) as (url, trusted, asked):

        async def story() -> None:
            api = Api(Credentials(url, trusted, "localhost"), 8, QUICK)
            reads = [asyncio.ensure_future(api.read(f"/api/v1/pods/{number}")) for number in range(3)]
            for _ in reads:
                await asyncio.to_thread(asked.acquire, timeout=10)
            for one in reads:
                one.cancel()
            await asyncio.gather(*reads, return_exceptions=True)
            await api.close()

        play(story)
        gc.collect()  # an open transport warns when it is collected, and warnings are errors
