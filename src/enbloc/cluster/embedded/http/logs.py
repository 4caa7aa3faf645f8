"""The log subresource of pods. Reading the output is left to the node runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing

from aiohttp import web

from enbloc.cluster.embedded.http.queries import flag, number
from enbloc.cluster.embedded.http.status import refusal
from enbloc.cluster.embedded.http.streaming import Unsent, streaming
from enbloc.cluster.embedded.nodes.runtime import LogQuery, LogReader
from enbloc.units import SECOND, parse_timestamp

FOLLOW_S = 0.1

LogSource = Callable[[str, str, str, LogQuery], LogReader]
"""Namespace, pod, container, and the part of its log. Raises `Refused` if there is none."""


def log_query(query: Mapping[str, str], now_ns: int) -> LogQuery:
    since_s, since = number(query, "sinceSeconds"), query.get("sinceTime")
    since_ns = None if since_s is None else now_ns - since_s * SECOND
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


async def serve_log(request: web.BaseRequest, reader: LogReader, unsent: Unsent, *, follow: bool) -> web.StreamResponse:
    """Sends the log, and with `follow` also new output until the container exits."""
    with closing(reader):
        async with streaming(request, {"Content-Type": "text/plain"}, unsent) as stream:
            while True:
                ended = reader.ended
                chunk = reader.read()
                if chunk:
                    await stream.write(chunk)
                elif ended or not follow:
                    break
                else:
                    await asyncio.sleep(FOLLOW_S)
        return stream.response
