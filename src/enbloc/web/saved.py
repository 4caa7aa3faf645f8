"""The pages of a saved simulation: `enbloc dashboard RUN.json`. The same files as of a live cluster, and no stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from aiohttp import web

from enbloc.api.writes import Refused
from enbloc.cluster.embedded.http.access import Access
from enbloc.web import assets
from enbloc.web.report import report_model

_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class SavedPages:
    """Read-only, on loopback."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        """`answer`: what `enbloc sim -o json` printed. Raises `KeyError`, `TypeError` or `AttributeError` for something
        else."""
        model = report_model(answer)
        self._details: dict[str, Any] = model.pop("details")
        self._model = msgspec.json.encode(model)
        self._access = Access("", loopback_only=True)

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/", self._index)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/static/{name}", self._static)
        app.router.add_get("/api/model", self._show_model)
        app.router.add_get("/api/gang/{name:.*}", self._gang)
        return app

    def _check(self, request: web.Request) -> None:
        try:
            self._access.check_host(request)
        except Refused as why:
            raise web.HTTPForbidden(text=why.message) from None

    async def _index(self, request: web.Request) -> web.Response:
        self._check(request)
        headers = {**_HEADERS, "Content-Security-Policy": assets.POLICY}
        return web.Response(text=assets.read("index.html"), content_type="text/html", headers=headers)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in assets.TYPES:
            raise web.HTTPNotFound
        return web.Response(text=assets.read(name), content_type=assets.TYPES[name], charset="utf-8", headers=_HEADERS)

    async def _show_model(self, request: web.Request) -> web.Response:
        self._check(request)
        return web.Response(body=self._model, content_type="application/json", headers=_HEADERS)

    async def _gang(self, request: web.Request) -> web.Response:
        self._check(request)
        found = self._details.get(unquote(request.match_info["name"]))
        body = msgspec.json.encode(found if found is not None else {"message": "there is no such gang"})
        code = 200 if found is not None else 404
        return web.Response(body=body, status=code, content_type="application/json", headers=_HEADERS)
