"""Request bodies: read in bounded time, and bounded in memory, each and all together.

A body stays counted until its request is answered. If the bodies in memory are too many, the one that has been arriving
for longest is given up: an API server sends a body within milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

BODY_BYTES: Final = 8 * 2**20
"""More than an API server can send: an object and the one before it, of at most 3 MiB each."""
IN_MEMORY_BYTES: Final = 64 * 2**20
READ_S: Final = 10.0


class UnreadBody(Exception):
    """The body was not read: the status code of the answer, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Bodies:
    """Reads bodies, at most `bound_bytes` at a time."""

    def __init__(self, bound_bytes: int = IN_MEMORY_BYTES) -> None:
        self._bound_bytes = bound_bytes
        self._held_bytes = 0
        self._arriving: dict[asyncio.Timeout, None] = {}
        """The bodies that are not complete, by their timeouts, oldest first."""

    @asynccontextmanager
    async def read(self, http: web.BaseRequest) -> AsyncIterator[bytes]:
        """The whole body, counted until the block ends. Raises `UnreadBody`."""
        if http.headers.get("Content-Encoding", "identity") != "identity":
            raise UnreadBody(415, "compressed bodies are not supported")
        if (http.content_length or 0) > BODY_BYTES:
            raise _too_large()
        pieces: list[bytes] = []
        try:
            yield await self._read(http, pieces)
        finally:
            self._held_bytes -= sum(map(len, pieces))

    async def _read(self, http: web.BaseRequest, pieces: list[bytes]) -> bytes:
        limit = asyncio.timeout(READ_S)
        size = 0
        try:
            async with limit:
                self._arriving[limit] = None
                while piece := await http.content.readany():
                    pieces.append(piece)
                    self._held_bytes += len(piece)
                    size += len(piece)
                    if size > BODY_BYTES:
                        raise _too_large()
                    if self._held_bytes > self._bound_bytes:
                        self._give_up_oldest()
                    await asyncio.sleep(0)  # the one that was given up ends here
        except TimeoutError:
            raise UnreadBody(408, "the request did not arrive in time") from None
        except (ClientPayloadError, HttpProcessingError, ConnectionError):
            raise UnreadBody(400, "the request did not arrive") from None
        finally:
            self._arriving.pop(limit, None)
        return b"".join(pieces)

    def _give_up_oldest(self) -> None:
        for limit in self._arriving:
            del self._arriving[limit]
            limit.reschedule(0)
            return


def _too_large() -> UnreadBody:
    return UnreadBody(413, f"a body of more than {BODY_BYTES} bytes is not read")
