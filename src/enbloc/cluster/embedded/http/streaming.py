"""Streamed responses: lists, watches and logs are written in chunks, to clients that may stall or go away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

STALL_S: Final = 20.0
"""A client that does not read for this long is disconnected."""
CHUNK_BYTES: Final = 256 * 1024
"""Chunks are at least this large; other requests are served between two of them."""


class Stream:
    """A chunked response under way."""

    def __init__(self, response: web.StreamResponse) -> None:
        self.response = response

    async def write(self, data: bytes) -> None:
        async with asyncio.timeout(STALL_S):
            await self.response.write(data)


@asynccontextmanager
async def streaming(request: web.BaseRequest, headers: Mapping[str, str]) -> AsyncIterator[Stream]:
    """A response that is complete when the block ends. A client that stalls is disconnected; one that is gone ends the
    block without an error."""
    response = web.StreamResponse(headers=headers)
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        yield Stream(response)
        await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass
