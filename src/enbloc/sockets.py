"""Listening sockets of the servers, and the connections that they accept."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Final

BACKLOG: Final = 1_024
_OUT_OF_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


async def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on one address and does not block. Raises `OSError` if the address is in use."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = infos[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
        listening.setblocking(False)
    except OSError:
        listening.close()
        raise
    return listening


class Acceptor(ABC):
    """Accepts connections on one address. Each has a limited time to its first request."""

    def __init__(self) -> None:
        self._socket: socket.socket | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._heads: dict[object, asyncio.TimerHandle] = {}
        """Connections without a complete request yet, and their timeouts."""

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
                    self._out_of_files()
                    await asyncio.sleep(0.1)
                    continue
                return
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted(connection)
            await asyncio.sleep(0)  # requests in progress go on between two handshakes

    @abstractmethod
    def _out_of_files(self) -> None:
        """The process can open no more connections for now."""

    @abstractmethod
    def _accepted(self, connection: socket.socket) -> None:
        """Takes a connection over, or closes it."""

    def _give_up(self, protocol: object, transport: asyncio.Transport) -> None:
        """The time to the first request is over."""
        del self._heads[protocol]
        transport.abort()
