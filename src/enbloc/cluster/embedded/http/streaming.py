"""Long responses: objects, lists and watches, written in chunks to clients that may stall or go away.

What was written and not yet sent is in memory, so it is bounded for all clients together. Beyond the bound the client
that has not read for longest is disconnected; one that reads is never that client for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

STALL_S: Final = 20.0
"""A client that does not read for this long is disconnected."""
CHUNK_BYTES: Final = 256 * 1024
"""Chunks are at least this large; other requests are served between two of them."""
UNSENT_BYTES: Final = 64 * 1024 * 1024
SMALL_BYTES: Final = 16 * 1024
"""A response up to this size is left to the connection's own buffer."""


class Unsent:
    """The bytes of all responses that wait for their clients to read them."""

    def __init__(self, bound_bytes: int = UNSENT_BYTES) -> None:
        self._bound_bytes = bound_bytes
        self._waiting: dict[asyncio.Timeout, int] = {}
        """Bytes of each write in progress, by its timeout, oldest first."""
        self.bytes = 0

    @contextmanager
    def counted(self, size: int, limit: asyncio.Timeout) -> Iterator[None]:
        """For one write. Ends the oldest writes, by their timeouts, while there are too many bytes."""
        self._waiting[limit] = size
        self.bytes += size
        excess = self.bytes - self._bound_bytes
        for oldest, held in list(self._waiting.items()):
            if excess <= 0 or oldest is limit:
                break
            if not oldest.expired():
                oldest.reschedule(0)
            excess -= held
        try:
            yield
        finally:
            del self._waiting[limit]
            self.bytes -= size


class Stream:
    """A response under way."""

    def __init__(self, response: web.StreamResponse, writer: AbstractStreamWriter, unsent: Unsent) -> None:
        self.response = response
        self._writer = writer
        self._unsent = unsent

    async def write(self, data: bytes) -> None:
        """Returns when all of it was sent."""
        async with asyncio.timeout(STALL_S) as limit:
            with self._unsent.counted(len(data), limit):
                await self.response.write(data)
                await self._writer.drain()


@asynccontextmanager
async def streaming(
    request: web.BaseRequest,
    headers: Mapping[str, str],
    unsent: Unsent,
    *,
    status: int = 200,
    length: int | None = None,
) -> AsyncIterator[Stream]:
    """A response that is complete when the block ends; of unknown length if `length` is `None`. A client that stalls is
    disconnected; one that is gone ends the block without an error."""
    response = web.StreamResponse(status=status, headers=headers)
    if length is None:
        response.enable_chunked_encoding()
    else:
        response.content_length = length
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=1, low=0)  # a write is over when all of it was sent
    writer = await response.prepare(request)
    assert writer is not None
    try:
        yield Stream(response, writer, unsent)
        await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass


async def send(request: web.BaseRequest, response: web.StreamResponse, unsent: Unsent) -> web.StreamResponse:
    """A complete response. A large one is counted until the client has read it."""
    if not isinstance(response, web.Response) or response.prepared or request.method == "HEAD":
        return response
    body = response.body
    if not isinstance(body, bytes) or len(body) <= SMALL_BYTES:
        return response
    async with streaming(request, response.headers, unsent, status=response.status, length=len(body)) as stream:
        await stream.write(body)
    return stream.response
