"""What containers wrote: the log subresource of pods. The nodes have it; here it is only asked for and passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from aiohttp import web

from enbloc.api.meta import Obj
from enbloc.cluster.embedded.http.queries import flag, number
from enbloc.cluster.embedded.http.status import refusal
from enbloc.cluster.embedded.nodes.runtime import LogQuery, LogReader
from enbloc.units import SECOND, parse_timestamp

FOLLOW_S = 0.1
STALL_S = 20.0


LogSource = Callable[[str, str, str, LogQuery], LogReader]
"""Namespace, pod, container, and which part of its log. Raises `Refused` where there is none."""


def log_query(query: Mapping[str, str], now: int) -> LogQuery:
    since_s, since = number(query, "sinceSeconds"), query.get("sinceTime")
    since_ns = None if since_s is None else now - since_s * SECOND
    if since:
        try:
            since_ns = parse_timestamp(since)
        except ValueError as why:
            raise refusal(400, f"sinceTime: {why}") from None
    return LogQuery(
        tail_lines=number(query, "tailLines"),
        previous=flag(query, "previous"),
        since_ns=since_ns,
        timestamps=flag(query, "timestamps"),
        limit_bytes=number(query, "limitBytes"),
    )


def chosen_container(pod: Obj, asked: str) -> str:
    """The container that is meant; refused (400) where several could be."""
    spec = pod["spec"]
    names = [str(one.get("name") or "") for key in ("containers", "initContainers") for one in spec.get(key) or ()]
    if asked:
        if asked not in names:
            raise refusal(400, f"container {asked[:80]} is not valid for pod {pod['metadata']['name']}")
        return asked
    if len(spec["containers"]) > 1:
        choices = " ".join(names)
        raise refusal(
            400, f"a container name must be specified for pod {pod['metadata']['name']}, choose one of: [{choices}]"
        )
    return names[0]


async def serve_log(request: web.BaseRequest, reader: LogReader, follow: bool) -> web.StreamResponse:
    """Sends what there is, and with `follow` what comes, until the container ended."""
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    try:
        while True:
            ended = reader.ended
            chunk = reader.read()
            if chunk:
                async with asyncio.timeout(STALL_S):
                    await response.write(chunk)
            elif ended or not follow:
                break
            else:
                await asyncio.sleep(FOLLOW_S)
        await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass
    finally:
        reader.close()
    return response
