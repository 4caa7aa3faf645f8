"""The pages of a running cluster: `/`, `/static/…`, `/api/…` and `/metrics`. Read-only.

An answer is made from objects that were listed at one instant, and says which (`asOf`). `/api/stream` sends the
browser an event when something changed, and the browser fetches then; it never polls.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from aiohttp import web
from prometheus_client.registry import Collector

from enbloc.api.meta import Obj
from enbloc.config import Config
from enbloc.engine.core.why.cause import Cause
from enbloc.inspect.dashboard import dashboard_model, gang_detail
from enbloc.inspect.gang_states import WAITS
from enbloc.inspect.gangs import Objects, Reading
from enbloc.inspect.overview import Overview, explain, gangs_json, nodes_json, overview_of, queues_json, shown
from enbloc.web import assets
from enbloc.web.explaining import Busy, Explainer
from enbloc.web.history import History

_Deserved = Mapping[str, Mapping[str, float]]
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
FRESH_S: Final = 0.5
"""After this time the cluster is read again."""
OLDEST_S: Final = 2.0
"""The goal: while the cluster is read, the last answer is given up to half this age; then the next is waited for."""
ANSWERS: Final = 8
"""At most this many answers of different `?limit=` are cached."""


STREAM_S: Final = 0.5
"""The shortest time between two events of a stream."""
STREAMS: Final = 100
"""At most this many streams are open at once."""
TICK_S: Final = 5.0
"""Where nothing changes, a tick is sent this often."""


class Known(NamedTuple):
    """The cluster as it was listed at one instant."""

    reading: Reading
    overview: Overview
    as_of_s: float
    listed_s: float
    """The same on the clock that only goes forward."""
    causes: Mapping[str, Cause]
    """What each gang waited for at that instant, by title."""
    deserved: _Deserved
    """What each queue deserved then, by resource."""


class Pages:
    """Serves an overview that is recomputed when it is too old."""

    def __init__(
        self,
        objects: Callable[[], Objects],
        figures: Callable[[], dict[str, float]],
        config: Config | None = None,
        events: Callable[[], Sequence[Obj]] = tuple,
        version: Callable[[], int] | None = None,
        collectors: Sequence[Collector] = (),
        explainer: Explainer | None = None,
        causes: Callable[[], Mapping[str, Cause]] = dict,
        deserved: Callable[[], _Deserved] = dict,
        scheduler: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        """`events`: the API's Events. `version`: a number that changes with every write; without it a browser fetches
        twice a second. `collectors`: further metrics. `explainer`: says what would let a gang start.
        `causes`: what the scheduler of this process knows of gangs that wait, by title. `deserved`: what it computed
        for queues, by name and resource. `scheduler`: whether one runs behind these pages, and its config."""
        self._scheduler = scheduler
        self._explainer = explainer
        self._causes = causes
        self._deserved = deserved
        self._history = History()
        self._objects = objects
        self._events = events
        self._version = version
        self._collectors = collectors
        self._config = config
        self._figures = figures
        self._known: Known | None = None
        self._reading: Reading | None = None
        self._lock = threading.Lock()
        """Around `_reading` and `_known`, which threads use."""
        self._streams = 0
        self._making: asyncio.Task[Known] | None = None

    def handlers(self) -> dict[str, Handler]:
        """By path; `/*` matches anything below."""
        scheduler = self._scheduler
        known = {"/api/scheduler": self._json(lambda *_: scheduler())} if scheduler is not None else {}
        return known | {
            "/": self._index,
            "/static/*": self._static,
            "/api/model": self._json(self._model),
            "/api/gang/*": self._gang,
            "/api/stream": self._stream,
            "/api/overview": self._rows(shown),
            "/api/gangs": self._rows(lambda overview, limit: {"gangs": gangs_json(overview, limit)}),
            "/api/queues": self._rows(lambda overview, limit: {"queues": queues_json(overview, limit)}),
            "/api/nodes": self._rows(lambda overview, limit: {"nodes": nodes_json(overview, limit)}),
            "/api/explain/*": self._explain,
            "/metrics": self._metrics,
        }

    async def overview(self) -> Overview:
        """The cluster as it was a moment ago."""
        return (await self._read()).overview

    async def dated_overview(self) -> tuple[Overview, float]:
        """The overview, and as of when it is, in seconds since the epoch."""
        known = await self._read()
        return known.overview, known.as_of_s

    async def _read(self) -> Known:
        known, age_s = self._known, self._age_s()
        if known is not None and age_s < FRESH_S:
            return known
        if self._making is None or self._making.done():
            self._making = asyncio.create_task(self._make())
        if known is not None and age_s < OLDEST_S / 2:
            return known  # the next one is made in the background, and an answer takes time too
        return await asyncio.shield(self._making)

    def _age_s(self) -> float:
        return time.monotonic() - self._known.listed_s if self._known is not None else 0.0

    async def _make(self) -> Known:
        """Objects never change in place, so a thread may read them while the cluster goes on. Only what differs from
        the last reading is read."""
        listed_s, as_of_s, objects, causes = time.monotonic(), time.time(), self._objects(), self._causes()
        deserved = self._deserved()

        def read() -> Known:
            with self._lock:
                if self._reading is None:
                    self._reading = Reading(objects, self._config)
                else:
                    self._reading.update(objects)
                overview = overview_of(self._reading)
                self._known = Known(self._reading, overview, as_of_s, listed_s, causes, deserved)
                return self._known

        return await asyncio.to_thread(read)

    async def _index(self, request: web.BaseRequest) -> web.Response:
        headers = {"Content-Security-Policy": assets.POLICY, "Cache-Control": "no-store", **_NO_SNIFF}
        return web.Response(text=assets.read("index.html"), content_type="text/html", headers=headers)

    async def _static(self, request: web.BaseRequest) -> web.Response:
        name = request.path.removeprefix("/static/")
        if name not in assets.TYPES:
            return _answer({"message": f"there is no {name[:200]}"}, 404)
        headers = {"Cache-Control": "no-cache", **_NO_SNIFF}
        return web.Response(text=assets.read(name), content_type=assets.TYPES[name], charset="utf-8", headers=headers)

    def _model(self, known: Known, limit: int | None) -> dict[str, Any]:
        model = dashboard_model(known.reading, known.overview, known.as_of_s, known.causes, known.deserved)
        self._history.add(model)
        return {**model, "history": self._history.shown()}

    async def _gang(self, request: web.BaseRequest) -> web.Response:
        name = request.path.removeprefix("/api/gang/")
        await self._read()
        events = self._events()

        def detail() -> dict[str, Any] | None:
            with self._lock:
                known = self._known
                explanation = explain(known.overview, name) if known is not None else None
                if known is None or explanation is None:
                    return None
                found = gang_detail(known.reading, explanation.gang, events)
                return {**msgspec.to_builtins(explanation), **found, "asOf": known.as_of_s}

        found = await asyncio.to_thread(detail)
        return _answer(found) if found else _answer({"message": f"there is no gang {name[:200]}"}, 404)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Server-sent events: `changed` after a write, at most two a second; `tick` while there is none, with the time
        up to which nothing changed."""
        if self._streams >= STREAMS:
            return _answer({"message": f"{STREAMS} browsers follow already; reload the page to see it as it is"}, 503)
        response = web.StreamResponse(headers={"Cache-Control": "no-store", **_NO_SNIFF})
        response.content_type = "text/event-stream"
        await response.prepare(request)
        seen, sent_s = self._changes(), 0.0
        self._streams += 1
        try:
            while True:
                version, now_s = self._changes(), time.time()
                if version != seen or now_s - sent_s >= TICK_S:
                    event = "tick" if version == seen else "changed"
                    seen, sent_s = version, now_s
                    await response.write(f"event: {event}\ndata: {now_s:.3f}\n\n".encode())
                await asyncio.sleep(STREAM_S)
        except ConnectionError:
            return response
        finally:
            self._streams -= 1

    def _changes(self) -> int:
        return self._version() if self._version is not None else int(time.monotonic() / STREAM_S)

    def _rows(self, show: Callable[[Overview, int | None], dict[str, Any]]) -> Handler:
        """Answers with rows of the overview, and as of when they are."""
        return self._json(lambda known, limit: {"asOf": known.as_of_s, **show(known.overview, limit)})

    def _json(self, show: Callable[[Known, int | None], Any]) -> Handler:
        """Answers with rows, at most `?limit=` of each kind. Each answer is encoded once per overview, on a thread:
        there may be many rows."""
        made_of: Known | None = None
        known: dict[int | None, asyncio.Task[bytes]] = {}

        def encoded(limit: int | None) -> bytes:
            with self._lock:
                assert self._known is not None  # what is read only becomes newer
                return msgspec.json.encode(show(self._known, limit))

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            nonlocal made_of
            asked = request.query.get("limit", "")
            limit = int(asked) if asked.isdecimal() and len(asked) < 10 else None
            read = await self._read()
            if made_of is not read or (limit not in known and len(known) >= ANSWERS):
                known.clear()
                made_of = read
            if limit not in known:
                known[limit] = asyncio.create_task(asyncio.to_thread(encoded, limit))
            return _answer(await asyncio.shield(known[limit]))

        return handle

    async def _explain(self, request: web.BaseRequest) -> web.Response:
        """What was reported of a gang; for one that waits also remedies, tried on a copy of the cluster."""
        name = request.path.removeprefix("/api/explain/")
        explanation = explain(await self.overview(), name)
        if explanation is None:
            return _answer({"message": f"there is no gang {name[:200]}"}, 404)
        if self._explainer is None or explanation.state not in WAITS:
            return _answer(explanation)
        try:
            return _answer(await self._explainer.explain(explanation.gang) or explanation)
        except Busy as why:
            return _answer({"message": str(why)}, 503)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest

        registry = CollectorRegistry()
        for collector in self._collectors:
            registry.register(collector)
        overview = await self.overview()
        pods = Gauge("enbloc_pods", "Pods by state.", ["state"], registry=registry)
        for state in ("waiting", "starting", "running", "succeeded", "failed", "leaving"):
            pods.labels(state).set(sum(gang.pods.get(state, 0) for gang in overview.gangs))
        Gauge("enbloc_nodes", "Nodes.", registry=registry).set(len(overview.nodes))
        for name, figure in self._figures().items():
            Gauge(f"enbloc_{name}", name.replace("_", " "), registry=registry).set(figure)
        body = generate_latest(registry)
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


_NO_SNIFF: Final = {"X-Content-Type-Options": "nosniff"}


def _answer(body: Any, code: int = 200) -> web.Response:
    """`body` is a value, or bytes that are encoded already."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store", **_NO_SNIFF}
    return web.Response(
        body=body if isinstance(body, bytes) else msgspec.json.encode(body), status=code, headers=headers
    )
