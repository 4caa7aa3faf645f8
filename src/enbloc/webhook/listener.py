"""The webhook's listening socket: TLS connections, bounded in number and in the time to their first request.

An API server sends its request at once and keeps the connection. So when there are too many connections, the one that
has been without a complete request for longest is closed. What a request says is left to `server`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final

from aiohttp import web

from enbloc.sockets import listen

CONNECTIONS: Final = 1_000
HEAD_S: Final = 10.0
"""How long a connection may take from its start to its first request, with the TLS handshake and without the body."""
GOODBYE_S: Final = 2.0
"""How long a client may take to close a TLS connection."""
_OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Listener:
    """Accepts connections on one address and passes them to `server`."""

    def __init__(self, server: web.Server, tls: ssl.SSLContext) -> None:
        self._server = server
        self._tls = tls
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._unused: dict[object, Callable[[], object]] = {}
        """How to close each connection that has no complete request, the one without for longest first."""
        self._heads: dict[object, asyncio.TimerHandle] = {}

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listens, and returns the address. Raises `OSError` if it is in use."""
        listening = await listen(host, port)
        self._socket = listening
        self._begin(self._accept(listening))
        name = listening.getsockname()
        return name[0], name[1]

    async def stop(self) -> None:
        """Accepts no more connections; those with a request in progress stay."""
        if self._socket is not None:
            self._socket.close()
        for task in list(self._tasks):
            task.cancel()
        for timer in self._heads.values():
            timer.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def request_begins(self, protocol: object) -> None:
        """The first lines of a request have arrived on this connection; its body has not."""
        timer = self._heads.pop(protocol, None)
        if timer is not None:
            timer.cancel()

    @contextlib.contextmanager
    def in_use(self, protocol: object, close: Callable[[], object]) -> Iterator[None]:
        """While a complete request is answered, its connection is not closed for another one."""
        self._unused.pop(protocol, None)
        try:
            yield
        finally:
            self._unused[protocol] = close

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as why:
                if why.errno == errno.ECONNABORTED:
                    continue
                if why.errno in _OUT_OF_FILES:
                    self._close_one()
                    await asyncio.sleep(0.1)
                    continue
                return
            if self._open_count() >= CONNECTIONS:
                self._close_one()
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            task = self._begin(self._hand_over(connection))
            self._unused[task] = task.cancel
            if len(self._unused) > 2 * CONNECTIONS:
                self._forget_closed()
            await asyncio.sleep(0)  # requests in progress go on between two handshakes

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
        del self._heads[protocol]
        self._unused.pop(protocol, None)
        transport.abort()

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
