"""`kubectl port-forward`: connections to a pod's ports, as streams of SPDY within one WebSocket.

For each connection the client opens two streams of one request id: `error`, for a message in words, and `data`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from aiohttp import WSMsgType, web

from enbloc.cluster.embedded.http.spdy import FRAME_BYTES, BadFrame, Connection, Event
from enbloc.cluster.embedded.http.status import refusal

PROTOCOL: Final = "SPDY/3.1+portforward.k8s.io"
CONNECT_S: Final = 10.0
CHUNK_BYTES: Final = 32 * 1024
STREAMS: Final = 2_000
"""Streams that are open at once, at most."""


async def serve_port_forward(request: web.BaseRequest, address: str) -> web.StreamResponse:
    """Forwards until the client goes. Raises `Refused` if it does not speak this protocol."""
    socket = web.WebSocketResponse(protocols=(PROTOCOL,), max_msg_size=2 * FRAME_BYTES, autoping=True)
    if not socket.can_prepare(request).ok or PROTOCOL not in request.headers.get("Sec-WebSocket-Protocol", ""):
        raise refusal(400, f"port-forward needs a WebSocket with {PROTOCOL}: kubectl 1.31 and newer have it")
    await socket.prepare(request)
    forwarding = _Forwarding(socket, address)
    try:
        async for message in socket:
            if message.type is not WSMsgType.BINARY:
                break
            await forwarding.receive(message.data)
    except (BadFrame, ConnectionError):
        pass
    finally:
        await forwarding.close()
        with contextlib.suppress(ConnectionError):
            await socket.close()
    return socket


class _Forwarding:
    """The streams of one client."""

    def __init__(self, socket: web.WebSocketResponse, address: str) -> None:
        self._socket = socket
        self._address = address
        self._spdy = Connection()
        self._errors: dict[str, int] = {}
        """Request id -> the stream for its error."""
        self._inputs: dict[int, asyncio.Queue[bytes | None]] = {}
        """Of each data stream: what the client sent; `None` is the end."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def receive(self, data: bytes) -> None:
        events = self._spdy.receive(data)
        for answer in self._spdy.answers:
            await self._socket.send_bytes(answer)
        self._spdy.answers.clear()
        for event in events:
            await self._handle(event)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _handle(self, event: Event) -> None:
        match event.what:
            case "open":
                await self._open(event)
            case "data" | "reset" if event.stream in self._inputs:
                inputs = self._inputs[event.stream]
                if event.data:
                    await inputs.put(event.data)
                if event.is_last:
                    await inputs.put(None)

    async def _open(self, event: Event) -> None:
        if len(self._inputs) + len(self._errors) >= STREAMS:
            await self._socket.send_bytes(self._spdy.reset(event.stream))
            return
        await self._socket.send_bytes(self._spdy.accept(event.stream))
        request = event.headers.get("requestid", "")
        if event.headers.get("streamtype") == "error":
            self._errors[request] = event.stream
            return
        inputs: asyncio.Queue[bytes | None] = asyncio.Queue(64)
        self._inputs[event.stream] = inputs
        port = event.headers.get("port", "")
        task = asyncio.get_running_loop().create_task(self._forward(event.stream, port, request, inputs))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, stream: int, port: str, request: str, inputs: asyncio.Queue[bytes | None]) -> None:
        failure = ""
        try:
            failure = await self._copy(stream, port, inputs)
            error = self._errors.get(request)
            if error is not None:
                await self._socket.send_bytes(self._spdy.data(error, failure.encode(), is_last=True))
            await self._socket.send_bytes(self._spdy.data(stream, b"", is_last=True))
        except ConnectionError:
            pass
        finally:
            self._errors.pop(request, None)
            self._inputs.pop(stream, None)

    async def _copy(self, stream: int, port: str, inputs: asyncio.Queue[bytes | None]) -> str:
        """Connects and copies both ways; why it failed, or nothing."""
        if not port.isdecimal() or not 0 < int(port) < 65_536:
            return f"{port[:20]!r} is not a port"
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(self._address, int(port))
        except (OSError, TimeoutError) as why:
            return (
                f"nothing answers at {self._address}:{port} ({why}): the pod must listen on its own address "
                "(status.podIP) or on all addresses"
            )
        sending = asyncio.get_running_loop().create_task(_send(inputs, writer))
        try:
            while data := await reader.read(CHUNK_BYTES):
                await self._socket.send_bytes(self._spdy.data(stream, data))
        except ConnectionResetError:
            return "the pod closed the connection"
        finally:
            sending.cancel()
            writer.close()
            await asyncio.gather(sending, return_exceptions=True)
        return ""


async def _send(inputs: asyncio.Queue[bytes | None], writer: asyncio.StreamWriter) -> None:
    while (data := await inputs.get()) is not None:
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
