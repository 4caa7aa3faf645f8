"""The webhook's listening socket: TLS connections, bounded in number and in the time to their first request.

An API server sends its request at once and keeps the connection. So when there are too many connections, the one that
has been without a complete request for longest is closed. What a request says is left to `server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from typing import Final

from aiohttp import web

from enbloc.sockets import Acceptor

CONNECTIONS: Final = 1_000
HEAD_S: Final = 10.0
"""How long a connection may take from its start to its first request, with the TLS handshake and without the body."""
GOODBYE_S: Final = 2.0
"""How long a client may take to close a TLS connection."""


class Listener(Acceptor):
    """Accepts connections on one address and passes them to `server`."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext) -> None:
        super().__init__()
        self._server = server
        self._tls = tls
        self._unused: dict[object, Callable[[], object]] = {}
        """How to close each connection that has no complete request, the one without for longest first."""

    @contextlib.contextmanager
    def in_use(self, protocol: object, close: Callable[[], object]) -> Iterator[None]:
        """While a complete request is answered, its connection is not closed for another one."""
        self._unused.pop(protocol, None)
        try:
            yield
        finally:
            self._unused[protocol] = close

    def _out_of_files(self) -> None:
        self._close_one()

    def _accepted(self, connection: socket.socket) -> None:
        if self._open_count() >= CONNECTIONS:
            self._close_one()
        task = self._begin(self._hand_over(connection))
        self._unused[task] = task.cancel
        if len(self._unused) > 2 * CONNECTIONS:
            self._forget_closed()

    async def _hand_over(self, connection: socket.socket) -> None:
        """The TLS handshake."""
        loop = asyncio.get_running_loop()
        end = loop.time() + HEAD_S
        try:
            transport, protocol = await loop.connect_accepted_socket(
                self._server,
                connection,
                ssl=self._tls,
                ssl_handshake_timeout=HEAD_S,
                ssl_shutdown_timeout=GOODBYE_S,
            )
        except (OSError, ssl.SSLError):
            connection.close()
            return
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            self._unused.pop(asyncio.current_task(), None)
        self._unused[protocol] = transport.abort
        self._heads[protocol] = loop.call_at(end, self._give_up, protocol, transport)

    def _give_up(self, protocol: object, transport: asyncio.Transport) -> None:
        self._unused.pop(protocol, None)
        super()._give_up(protocol, transport)

    def _open_count(self) -> int:
        return len(self._server.connections) + len(self._tasks) - 1

    def _close_one(self) -> None:
        """Closes the connection that has been without a complete request for longest."""
        self._forget_closed()
        if self._unused:
            self._unused.pop(next(iter(self._unused)))()

    def _forget_closed(self) -> None:
        alive: set[object] = {*self._server.connections, *self._tasks}
        self._unused = {key: close for key, close in self._unused.items() if key in alive}
