"""`/healthz`, `/readyz` and `/metrics`, for kubelets and Prometheus; and the pages of a process that has some."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from enbloc.runtime.metrics import Metrics

Page = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Endpoints:
    """The HTTP server of a process that runs on a cluster."""

    def __init__(
        self,
        metrics: Metrics,
        is_ready: Callable[[], bool],
        measure: Callable[[], None],
        pages: Mapping[str, Page] | None = None,
    ) -> None:
        """`measure` updates the gauges before they are served. `pages`: by path; `/*` matches anything below."""
        self._pages = dict(pages or {})
        self._metrics = metrics
        self._is_ready = is_ready
        self._measure = measure
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        """Raises `OSError` if it cannot listen there. Port 0 means any free port."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        for path, page in self._pages.items():
            app.router.add_get(path.replace("/*", "/{rest:.*}"), page)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, request: web.Request) -> web.Response:
        """A process that answers is alive: an unexpected exception ends it."""
        return web.Response(text="ok\n")

    async def _readyz(self, request: web.Request) -> web.Response:
        """Whether all objects were listed and their watches are open. A standby is ready too."""
        if self._is_ready():
            return web.Response(text="ok\n")
        return web.Response(status=503, text="the cluster is not watched\n")

    async def _show_metrics(self, request: web.Request) -> web.Response:
        self._measure()
        return web.Response(body=generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
