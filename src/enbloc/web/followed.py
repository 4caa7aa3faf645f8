"""A real cluster behind the pages: `enbloc run --components dashboard`. It watches, and writes nothing.

Beside a scheduler it has watches of its own: a page must not slow the scheduler down, nor depend on its leading.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator
from typing import Final, Protocol

from aiohttp import web

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.http.access import Access, is_loopback
from enbloc.config import Config
from enbloc.inspect.gangs import Objects
from enbloc.inspect.overview import KINDS
from enbloc.sim.snapshot import KINDS as OF_SNAPSHOTS
from enbloc.web.explaining import Explainer
from enbloc.web.pages import Handler, Pages

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0
LEAST_TOKEN: Final = 16
"""Characters of a token that a person chose."""
FOLLOWED: Final = frozenset({*KINDS, *OF_SNAPSHOTS, "Event"})
"""The kinds that are read: what scheduling depends on, and Events. No Secret, no ConfigMap."""

log = logging.getLogger(__name__)


class Api(Protocol):
    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Observes all objects of the kinds, returns when all were reported, and continues to observe."""
        ...

    async def close(self) -> None: ...


class FollowedCluster:
    """The objects of a cluster as its watches report them, and the pages that show them."""

    def __init__(self, config: Config, host: str, token: str = "") -> None:
        """`token`: needed where `host` is no loopback address; one is made if it is empty."""
        self._lists: dict[str, dict[tuple[str, str], Obj]] = {}
        self._version = 0
        self._listed = False
        self.token = "" if is_loopback(host) else token or secrets.token_urlsafe(32)
        self._access = Access(self.token, loopback_only=is_loopback(host))
        self.kinds = FOLLOWED.union(entry.kind for entry in config.group_by_owner.active)
        explainer = Explainer(self._all, lambda: self._version, config)
        self._pages = Pages(
            self._objects, dict, config, lambda: self._of("Event"), lambda: self._version, explainer=explainer
        )

    def is_listed(self) -> bool:
        """Whether all objects were listed: until then there is nothing to show."""
        return self._listed

    def handlers(self) -> dict[str, Handler]:
        """By path. `/metrics` is left to the process that serves them."""
        return {path: self._guarded(one) for path, one in self._pages.handlers().items() if path != "/metrics"}

    async def follow(self, connect: Callable[[], Awaitable[Api]]) -> Callable[[], Awaitable[None]]:
        """Begins to follow the cluster, which may take until its API answers; returns at once what ends it."""
        task = asyncio.create_task(self._follow(connect))

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        return end

    async def _follow(self, connect: Callable[[], Awaitable[Api]]) -> None:
        pause_s = FIRST_PAUSE_S
        while True:
            api: Api | None = None
            try:
                api = await connect()
                await api.start(self.kinds, self.observe)
                self._listed = True
                await asyncio.Event().wait()  # the watches go on until this task is cancelled
            except Refused as why:
                log.warning("the dashboard cannot list the cluster, retrying in %.0f s: %s", pause_s, why)
            finally:
                if api is not None:
                    await api.close()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def observe(self, event: WatchEvent) -> None:
        ref = ref_of(event.obj)
        objects = self._lists.setdefault(event.kind, {})
        if event.type == "DELETED":
            objects.pop((ref.namespace, ref.name), None)
        else:
            objects[ref.namespace, ref.name] = event.obj
        self._version += 1

    def _of(self, kind: str) -> list[Obj]:
        return list(self._lists.get(kind, {}).values())

    def _objects(self) -> Objects:
        return {kind: self._of(kind) for kind in self.kinds if kind != "Event"}

    def _all(self) -> Iterator[Obj]:
        for kind in sorted(self._lists):
            yield from self._of(kind)

    def _guarded(self, page: Handler) -> Handler:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            try:
                self._access.check_page(request)
            except Refused as why:
                return web.json_response({"message": why.message}, status=why.code)
            if not self._listed and request.path.startswith("/api/"):
                return web.json_response({"message": "the cluster is being listed"}, status=503)
            return await page(request)

        return handle


def is_strong(token: str) -> bool:
    return len(token) >= LEAST_TOKEN and token.isprintable() and token.isascii()
