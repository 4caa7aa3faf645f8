"""`kubectl exec`: a command beside the processes of a container, its streams as channels of one WebSocket.

The first byte of a message is its channel: 0 is input, 1 output, 2 errors, 3 the end as a `Status`, 4 the size of the
terminal. Starting the command is left to the node runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import WSMsgType, web

from enbloc.cluster.embedded.http.queries import flag
from enbloc.cluster.embedded.http.status import refusal
from enbloc.cluster.embedded.nodes.runtime import ExecSession, RunningContainer

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
INPUT, OUTPUT, ERRORS, END, SIZE, CLOSED = 0, 1, 2, 3, 4, 255
MESSAGE_BYTES: Final = 1 << 20


async def serve_exec(request: web.BaseRequest, container: RunningContainer) -> web.StreamResponse:
    """Runs until the command ends or the client goes. Raises `Refused`."""
    query = request.query
    argv = query.getall("command", [])
    if not argv or not argv[0]:
        raise refusal(400, "you must specify at least one command for the container")
    socket = web.WebSocketResponse(protocols=PROTOCOLS, max_msg_size=MESSAGE_BYTES)
    if not socket.can_prepare(request).ok:
        raise refusal(400, "exec needs a WebSocket: kubectl 1.30 and newer have it")
    await socket.prepare(request)
    tty = flag(query, "tty")
    session = await container.start(argv, tty=tty)
    try:
        code = await _converse(socket, session, query, tty=tty)
        if code is not None and not socket.closed:
            await socket.send_bytes(bytes([END]) + json.dumps(_status(code)).encode())
    except ConnectionError:
        pass
    finally:
        await session.close()
        with contextlib.suppress(ConnectionError):
            await socket.close()
    return socket


async def _converse(
    socket: web.WebSocketResponse, session: ExecSession, query: Mapping[str, str], *, tty: bool
) -> int | None:
    """The exit code; `None` if the client has gone."""
    loop = asyncio.get_running_loop()
    outputs = [loop.create_task(_forward(socket, OUTPUT, session.output))]
    if not tty:
        outputs.append(loop.create_task(_forward(socket, ERRORS, session.errors)))
    listening = loop.create_task(_listen(socket, session, wants_input=flag(query, "stdin")))
    ending = loop.create_task(session.wait())
    try:
        await asyncio.wait([listening, ending], return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            return None
        await asyncio.gather(*outputs, return_exceptions=True)
        return ending.result()
    finally:
        for task in (*outputs, listening, ending):
            task.cancel()
        await asyncio.gather(*outputs, listening, ending, return_exceptions=True)


async def _forward(socket: web.WebSocketResponse, channel: int, read: Any) -> None:
    while data := await read():
        await socket.send_bytes(bytes([channel]) + data)


async def _listen(socket: web.WebSocketResponse, session: ExecSession, *, wants_input: bool) -> None:
    """Returns when the client has gone."""
    if not wants_input:
        await session.end_input()
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, data = message.data[0], message.data[1:]
        if channel == INPUT and wants_input:
            await session.write(data)
        elif channel == CLOSED and data[:1] == bytes([INPUT]):
            await session.end_input()
        elif channel == SIZE:
            with contextlib.suppress(ValueError, AttributeError, TypeError):
                size = json.loads(data)
                session.resize(int(size.get("Width")), int(size.get("Height")))


def _status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
