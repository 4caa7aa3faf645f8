"""Listening sockets of the servers."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

BACKLOG: Final = 1_024


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
