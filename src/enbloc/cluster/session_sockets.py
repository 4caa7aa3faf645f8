"""The sockets of an HTTP session, so that all of them are closed when the session is.

When a request is cancelled, aiohttp closes its connection with TLS' closing handshake, which waits up to 30 s for the
server. Such a connection is not the session's any more, so that closing the session does not end it.
"""

from __future__ import annotations

import asyncio
import socket
import weakref
from contextlib import suppress

from aiohttp import AddrInfoType

CLOSE_S = 1.0
"""How long the transports of sockets that were shut down may take to close them: mostly one turn of the event loop."""


class SessionSockets:
    """Those that were made for a session and are open."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def make(self, address: AddrInfoType) -> socket.socket:
        """A socket for an address as `getaddrinfo` returns it."""
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """Shuts the open ones down; their transports then read the end of the stream and close them."""
        for one in self._open():
            with suppress(OSError):  # it is not connected, or the server has closed it
                one.shutdown(socket.SHUT_RDWR)
        until_s = asyncio.get_running_loop().time() + CLOSE_S
        while self._open() and asyncio.get_running_loop().time() < until_s:
            await asyncio.sleep(0.001)

    def _open(self) -> list[socket.socket]:
        return [one for one in self._made if one.fileno() >= 0]
