"""The listening socket: one port that serves both `http` and `https`.

kubectl sends its token over TLS only; a browser warns of a self-signed certificate. So the first byte of a connection
decides: a TLS handshake begins with 22, no HTTP request does.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl

from aiohttp import web

from enbloc.cluster.embedded.http.facade import Handler
from enbloc.sockets import Acceptor

FIRST_BYTE_S = 30.0
HEAD_S = 30.0
"""How long a connection may take from its first byte to its first complete request."""
CONNECTIONS = 20_000
LINGER_S = 2.0
STOP_S = 0.5
_TLS = b"\x16"
_silent = logging.getLogger(f"{__name__}.wire")
"""Logger of malformed HTTP, which is answered with 400 and not logged: any client can send it."""
_silent.setLevel(logging.CRITICAL + 1)


class Listener(Acceptor):
    """Accepts connections on one address and passes their requests to a handler."""

    def __init__(self, handler: Handler, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._handler = handler
        self._server = web.Server(
            self._handle,
            handler_cancellation=True,
            auto_decompress=False,
            access_log=None,
            logger=_silent,
            lingering_time=LINGER_S,
            keepalive_timeout=75.0,
            max_field_size=16_384,
            max_line_size=16_384,
        )
        self._tls = tls

    async def stop(self) -> None:
        """Ends all connections, those of watches too."""
        await super().stop()
        await self._server.shutdown(STOP_S)

    def _out_of_files(self) -> None:
        """Connections in use are not closed for new ones."""

    def _accepted(self, connection: socket.socket) -> None:
        if len(self._server.connections) + len(self._tasks) > CONNECTIONS:
            connection.close()
        else:
            self._begin(self._hand_over(connection))

    async def _hand_over(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(FIRST_BYTE_S):
                first = await self._first_byte(connection)
            if not first:
                connection.close()
                return
            tls = self._tls if first == _TLS else None
            transport, protocol = await loop.connect_accepted_socket(
                self._server, connection, ssl=tls, ssl_handshake_timeout=HEAD_S if tls else None
            )
            self._heads[protocol] = loop.call_later(HEAD_S, self._give_up, protocol, transport)
        except (OSError, TimeoutError, ssl.SSLError):
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.request_begins(request.protocol)
        return await self._handler(request)

    async def _first_byte(self, connection: socket.socket) -> bytes:
        """The first bytes, without consuming them."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                return connection.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                readable = asyncio.Event()
                loop.add_reader(connection, readable.set)
                try:
                    await readable.wait()
                finally:
                    loop.remove_reader(connection)
