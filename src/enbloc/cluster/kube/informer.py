"""Follows one kind: lists it, watches it, and reports gapless events whatever happens to the connection.

Observers may rely on this: for each UID they get ADDED, any number of MODIFIED, DELETED, in this order and without
repeats. After a disconnect the watch resumes where it stopped. If the server's history no longer reaches back (410),
the kind is listed again and the differences are reported. An incomplete line is dropped: its event will come again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from enbloc.api.meta import Obj, uid_of
from enbloc.api.nesting import within_depth
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.kube.discovery import Resource
from enbloc.cluster.kube.http import Api, backoff_s, refusal
from enbloc.cluster.kube.kept import Kept
from enbloc.cluster.kube.objects import decoded, page_token, pruned, read_page

log = logging.getLogger(__name__)

MAX_LINE_BYTES = 32 * 2**20
"""No object is nearly as large; a longer line means that the server is broken."""
_MAX_LISTS = 3
_MAX_CUTS = 3
"""After this many unreadable lines in a row the kind is listed again."""
_WARN_AFTER_FAILURES = 5
"""After this many connections in a row that broke at once, a warning is logged."""
_SHORT_S = 1.0
"""A watch that lasted longer was healthy: the next attempt follows without delay."""


_POD = "Pod"

Keep = Callable[[Obj], Obj]
"""What is kept of an object that was decoded and is not shared yet."""


class _Line(msgspec.Struct):
    type: str
    object: dict[str, Any]


_line_decoder = msgspec.json.Decoder(_Line)


class Cut(Exception):
    """The stream ended unexpectedly or contained an unreadable line."""


class Informer:
    """One kind of one cluster, kept up to date."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        observe: Callable[[WatchEvent], None],
        find: Callable[[], Awaitable[Resource | None]],
    ) -> None:
        """`find` discovers again where the cluster serves this kind. Pods are reduced to what is read (`kept`)."""
        self._keep: Keep = Kept().reduced if resource.kind == _POD else within_depth
        self.resource = resource
        self._api = api
        self._observe = observe
        self._find = find
        self._objects: dict[tuple[str, str], Obj] = {}
        self._version = ""
        self._connected = False
        self._last_connected_s = 0.0
        self._unserved_since_s: float | None = None
        self._cuts = 0

    def get(self, namespace: str, name: str) -> Obj | None:
        """The object as it was last reported."""
        return self._objects.get((namespace, name))

    def objects(self) -> list[Obj]:
        """All objects as they were last reported."""
        return list(self._objects.values())

    def is_fresh(self, now_s: float) -> bool:
        """Whether the watch is connected, or was until a moment ago."""
        return self._connected or now_s - self._last_connected_s <= self._api.bounds.fresh_s

    async def fetch(self) -> tuple[list[Obj], str]:
        """All objects, and the version of that list. Raises `Refused`."""
        return await list_all(self._api, self.resource, keep=self._keep)

    async def begin(self, after: Awaitable[object]) -> None:
        """Lists for the first time. Each page is reported while the server makes the next one; the first is asked for
        at once, and reported when `after` is done. Raises `Refused`."""
        if self._objects:
            await after
            self.take(*await self.fetch())
            return
        pages = _pages(self._api, f"{self.resource.collection()}?limit={self._api.bounds.page}")
        try:
            async with aclosing(pages):
                first = await anext(pages)
                await after
                self._report_all(first)
                async for body in pages:
                    self._report_all(body)
        except Refused as why:
            if why.code != 410:
                raise
            await after
            self.take(*await self.fetch())  # the list expired between pages: what was reported stays, if it is there

    def _report_all(self, body: bytes) -> None:
        page = read_page(body, self.resource)
        for item in page.items or ():
            self._report(self._keep(item), gone=False)
        self._listed(page.metadata.resource_version)

    def take(self, items: list[Obj], version: str) -> None:
        """Reports the differences between a list and the known objects, and continues from the list's version."""
        self._report_differences(items)
        self._listed(version)

    def _listed(self, version: str) -> None:
        self._version = version
        self._cuts = 0
        self._last_connected_s = asyncio.get_running_loop().time()

    async def follow(self) -> None:
        """Watches for as long as the cluster serves the kind; then reports all its objects as DELETED and returns."""
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            began_s = loop.time()
            try:
                if not self._version:
                    self.take(*await self.fetch())
                await self._watch()
            except Refused as why:
                usual = why.code in (404, 410)
                log.log(logging.DEBUG if usual else logging.WARNING, "watching %s: %s", self.resource.kind, why)
                if why.code == 410:
                    self._version = ""
                elif why.code == 404 and await self._is_gone():
                    self._report_differences([])
                    return
            except (aiohttp.ClientError, Cut, TimeoutError, OSError) as why:
                level = logging.WARNING if failures == _WARN_AFTER_FAILURES else logging.DEBUG
                log.log(level, "watch of %s was cut: %s", self.resource.kind, why)
                self._cuts += isinstance(why, Cut)
                if self._cuts >= _MAX_CUTS:
                    self._version = ""
            finally:
                if self._connected:
                    self._last_connected_s = loop.time()
                    self._connected = False
            failures = 0 if loop.time() - began_s > _SHORT_S else failures + 1
            if failures:
                await asyncio.sleep(backoff_s(self._api.bounds, failures, self._api.bounds.max_reconnect_s))

    async def _is_gone(self) -> bool:
        """Whether the cluster has for a while not served the kind: an API server that is starting does not serve it
        either, though its objects still exist."""
        try:
            found = await self._find()
        except Refused:
            return False
        now_s = asyncio.get_running_loop().time()
        if found is None:
            self._unserved_since_s = now_s if self._unserved_since_s is None else self._unserved_since_s
            return now_s - self._unserved_since_s >= self._api.bounds.rediscover_s
        self._unserved_since_s = None
        if found != self.resource:
            self.resource = found
            self._version = ""
        return False

    async def _watch(self) -> None:
        """One connection. Returns when the server ends it, raises when it breaks."""
        lasts_s = max(int(self._api.bounds.watch_s * random.uniform(0.7, 1.3)), 1)
        path = (
            f"{self.resource.collection()}?watch=true&allowWatchBookmarks=true"
            f"&resourceVersion={self._version}&timeoutSeconds={lasts_s}"
        )
        async with self._api.stream(path) as response:
            self._connected = True
            self._unserved_since_s = None
            rest = b""
            async for chunk in response.content.iter_any():
                head, newline, tail = chunk.rpartition(b"\n")
                if not newline:
                    rest += chunk
                    if len(rest) > MAX_LINE_BYTES:
                        raise Cut(f"a line of more than {MAX_LINE_BYTES} bytes")
                    continue
                for line in (rest + head).split(b"\n"):
                    if line:
                        self._take(line)
                rest = tail

    def _take(self, text: bytes) -> None:
        try:
            line = decoded(_line_decoder, text)
            obj = line.object
            if line.type == "ERROR":
                raise _error(obj)
            metadata = obj["metadata"]
            version: str = metadata["resourceVersion"]
            if line.type != "BOOKMARK":
                metadata["name"], metadata["uid"]
        except (msgspec.DecodeError, KeyError, TypeError) as why:
            raise Cut(f"a line that is not an event: {why!r}") from None
        if line.type != "BOOKMARK":
            self._report(self._keep(pruned(obj)), gone=line.type == "DELETED")
        self._version = version
        self._cuts = 0

    # -- reporting

    def _report(self, obj: Obj, *, gone: bool) -> None:
        """Reports one event so that it fits the earlier ones."""
        key = _key(obj)
        known = self._objects.get(key)
        kind = self.resource.kind
        if known is not None and uid_of(known) != uid_of(obj):
            if gone:
                return  # its deletion was reported already
            del self._objects[key]
            self._observe(WatchEvent("DELETED", kind, known))
            known = None
        if gone:
            if known is not None:
                del self._objects[key]
                self._observe(WatchEvent("DELETED", kind, obj))
            return
        self._objects[key] = obj
        self._observe(WatchEvent("ADDED" if known is None else "MODIFIED", kind, obj))

    def _report_differences(self, items: list[Obj]) -> None:
        """Reports the events that must have happened since the last one, given the present list."""
        now = {_key(obj): obj for obj in items}
        for key in [key for key in self._objects if key not in now]:  # deletions first: they free resources
            self._report(self._objects[key], gone=True)
        for key, obj in now.items():
            known = self._objects.get(key)
            if known is None or known["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion"):
                self._report(obj, gone=False)


def _key(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


async def list_all(
    api: Api, resource: Resource, namespace: str | None = None, keep: Keep = within_depth
) -> tuple[list[Obj], str]:
    """All objects of a kind and the version of the list, page by page; `keep` gets each. Raises `Refused`."""
    base = f"{resource.collection(namespace)}?limit={api.bounds.page}"
    for _ in range(_MAX_LISTS):
        items: list[Obj] = []
        path = base
        while True:
            answer = await api.read(path, is_page=True)
            if not answer.is_good:
                break
            page = read_page(answer.body, resource)
            items += map(keep, page.items or ())
            if not page.metadata.continue_:
                return items, page.metadata.resource_version
            path = f"{base}&continue={quote(page.metadata.continue_, safe='')}"
        if answer.status != 410:
            raise refusal(answer)
        base = resource.collection(namespace)  # the list expired between pages: read it in one piece
    raise refusal(answer)


async def _pages(api: Api, base: str) -> AsyncGenerator[bytes, None]:
    """The bodies of the pages of a list; the next one is asked for before one is returned. Raises `Refused`."""
    asked = asyncio.ensure_future(api.read(base, is_page=True))
    try:
        while True:
            answer = await asked
            if not answer.is_good:
                raise refusal(answer)
            token = page_token(answer.body)
            if token:
                asked = asyncio.ensure_future(api.read(f"{base}&continue={quote(token, safe='')}", is_page=True))
                await asyncio.sleep(0.001)  # so that it is on its way while the caller is busy
            yield answer.body
            if not token:
                return
    finally:
        asked.cancel()


def _error(status: Obj) -> Refused:
    """The server cannot continue the watch, for whatever reason: to us that means 410."""
    return Refused(410, str(status.get("reason")), str(status.get("message")))
