"""The pages of a running cluster: `/`, `/api/…` and `/metrics`. Read-only."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

import msgspec
from aiohttp import web

from enbloc.config import Config
from enbloc.inspect.gangs import FINISHED, RUNNING, WAITING, Objects
from enbloc.inspect.overview import Overview, explain, gangs_json, nodes_json, queues_json, read_overview, shown

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
FRESH_S: Final = 0.5
"""The maximum age of an answer; if reading takes long, ten times that long."""
SLOW_S: Final = 0.25
STALE_S: Final = 30.0
"""If reading takes longer than `SLOW_S`, an answer may be this much older while a new one is computed."""
ANSWERS: Final = 8
"""At most this many answers of different `?limit=` are cached."""


class Pages:
    """Serves an overview that is recomputed when it is too old."""

    def __init__(
        self, objects: Callable[[], Objects], figures: Callable[[], dict[str, float]], config: Config | None = None
    ) -> None:
        self._objects = objects
        self._config = config
        self._figures = figures
        self._known: Overview | None = None
        self._until_s = 0.0
        self._took_s = 0.0
        self._making: asyncio.Task[Overview] | None = None
        self._page = files("enbloc.web").joinpath("page.html").read_text(encoding="utf-8")

    def handlers(self) -> dict[str, Handler]:
        """By path; `/*` matches anything below."""
        return {
            "/": self._index,
            "/api/overview": self._json(shown),
            "/api/gangs": self._json(lambda overview, limit: {"gangs": gangs_json(overview, limit)}),
            "/api/queues": self._json(lambda overview, limit: {"queues": queues_json(overview, limit)}),
            "/api/nodes": self._json(lambda overview, limit: {"nodes": nodes_json(overview, limit)}),
            "/api/explain/*": self._explain,
            "/metrics": self._metrics,
        }

    async def overview(self) -> Overview:
        """The cluster as it was a moment ago."""
        if self._known is not None and time.monotonic() < self._until_s:
            return self._known
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._make())
        if self._known is not None and self._took_s > SLOW_S and time.monotonic() < self._until_s + STALE_S:
            return self._known  # the next one is computed in the background
        return await asyncio.shield(self._making)

    async def _make(self) -> Overview:
        """Objects never change in place, so a thread may read them while the cluster goes on."""
        begin_s = time.monotonic()
        made = await asyncio.to_thread(read_overview, self._objects(), self._config)
        end_s = time.monotonic()
        self._took_s = end_s - begin_s
        self._known, self._until_s = made, end_s + max(FRESH_S, 10 * self._took_s)
        return made

    async def _index(self, request: web.BaseRequest) -> web.Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; connect-src 'self'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
        return web.Response(text=self._page.replace("NONCE", nonce), content_type="text/html", headers=headers)

    def _json(self, show: Callable[[Overview, int | None], Any]) -> Handler:
        """Answers with rows, at most `?limit=` of each kind. Each answer is encoded once per overview, on a thread:
        there may be many rows."""
        made_of: Overview | None = None
        known: dict[int | None, asyncio.Task[bytes]] = {}

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal made_of
            asked = request.query.get("limit", "")
            limit = int(asked) if asked.isdecimal() and len(asked) < 10 else None
            overview = await self.overview()
            if made_of is not overview or (limit not in known and len(known) >= ANSWERS):
                known.clear()
                made_of = overview
            if limit not in known:
                known[limit] = asyncio.create_task(
                    asyncio.to_thread(lambda: msgspec.json.encode(show(overview, limit)))
                )
            return _answer(await asyncio.shield(known[limit]))

        return handle

    async def _explain(self, request: web.BaseRequest) -> web.Response:
        name = request.path.removeprefix("/api/explain/")
        explanation = explain(await self.overview(), name)
        if explanation is None:
            return _answer({"message": f"there is no gang {name[:200]}"}, 404)
        return _answer(explanation)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest

        registry = CollectorRegistry()
        overview = await self.overview()
        gangs = Gauge("enbloc_gangs", "Gangs by state.", ["state"], registry=registry)
        for state in (WAITING, RUNNING, FINISHED):
            gangs.labels(state.lower()).set(sum(1 for gang in overview.gangs if gang.state == state))
        pods = Gauge("enbloc_pods", "Pods by state.", ["state"], registry=registry)
        for state in ("waiting", "starting", "running", "succeeded", "failed", "leaving"):
            pods.labels(state).set(sum(gang.pods.get(state, 0) for gang in overview.gangs))
        Gauge("enbloc_nodes", "Nodes.", registry=registry).set(len(overview.nodes))
        for name, figure in self._figures().items():
            Gauge(f"enbloc_{name}", name.replace("_", " "), registry=registry).set(figure)
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _answer(body: Any, code: int = 200) -> web.Response:
    """`body` is a value, or bytes that are encoded already."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return web.Response(
        body=body if isinstance(body, bytes) else msgspec.json.encode(body), status=code, headers=headers
    )
