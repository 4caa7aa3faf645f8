"""Follows one kind: lists it, watches it, and makes one gapless story of it whatever happens to the connection.

What an observer may rely on: of each UID it hears ADDED, any number of MODIFIED, DELETED, in this order and nothing
twice. After a cut the watch goes on where it stopped. If the server no longer knows what happened since (410), the kind
is listed again and the difference is told. A half line is dropped: its event comes again.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import quote

import aiohttp
import msgspec

from enbloc.api.meta import Obj, uid_of
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.kube.discovery import Resource
from enbloc.cluster.kube.http import Api, backoff_s, refusal
from enbloc.cluster.kube.objects import pruned, read_page

log = logging.getLogger(__name__)

LINE_MOST = 32 * 2**20
"""No object is larger by far; a longer line is a server gone wrong."""
_LISTS_MOST = 3
_CUTS_MOST = 3
"""Lines that cannot be read, one after the other, before the kind is listed anew."""
_FAILURES_TOLD = 5
"""Connections that broke at once, one after the other: then something is wrong that a user should hear of."""
_SHORT_S = 1.0
"""A watch that lasted longer was a good one: the next attempt follows at once."""


class _Line(msgspec.Struct):
    type: str
    object: dict[str, Any]


_line_decoder = msgspec.json.Decoder(_Line)


class Cut(Exception):
    """The stream ended where it should not, or said what cannot be read."""


class Informer:
    """One kind of one cluster, kept in step."""

    def __init__(
        self,
        api: Api,
        resource: Resource,
        observe: Callable[[WatchEvent], None],
        find: Callable[[], Awaitable[Resource | None]],
    ) -> None:
        """`find` asks the cluster anew where it serves this kind."""
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
        """The object as it was told last."""
        return self._objects.get((namespace, name))

    def is_fresh(self, now_s: float) -> bool:
        """Whether the watch is connected or was a moment ago."""
        return self._connected or now_s - self._last_connected_s <= self._api.bounds.fresh_s

    async def fetch(self) -> tuple[list[Obj], str]:
        """Everything there is, and the version at which it was so. Raises `Refused`."""
        return await list_all(self._api, self.resource)

    def take(self, items: list[Obj], version: str) -> None:
        """Tells what in a list is different from what was told before, and goes on from there."""
        self._tell_difference(items)
        self._version = version
        self._cuts = 0
        self._last_connected_s = asyncio.get_running_loop().time()

    async def follow(self) -> None:
        """Watches for as long as the cluster serves the kind; then tells that all its objects are gone and returns."""
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
                    self._tell_difference([])
                    return
            except (aiohttp.ClientError, Cut, TimeoutError, OSError) as why:
                told = logging.WARNING if failures == _FAILURES_TOLD else logging.DEBUG
                log.log(told, "watch of %s was cut: %s", self.resource.kind, why)
                self._cuts += isinstance(why, Cut)
                if self._cuts >= _CUTS_MOST:
                    self._version = ""
            finally:
                if self._connected:
                    self._last_connected_s = loop.time()
                    self._connected = False
            failures = 0 if loop.time() - began_s > _SHORT_S else failures + 1
            if failures:
                await asyncio.sleep(backoff_s(self._api.bounds, failures, self._api.bounds.reconnect_most_s))

    async def _is_gone(self) -> bool:
        """Whether the cluster has said for a while that it does not serve the kind: one that is just starting says so
        too, and its objects are still there."""
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
                    if len(rest) > LINE_MOST:
                        raise Cut(f"a line of more than {LINE_MOST} bytes")
                    continue
                for line in (rest + head).split(b"\n"):
                    if line:
                        self._take(line)
                rest = tail

    def _take(self, text: bytes) -> None:
        try:
            line = _line_decoder.decode(text)
            obj = line.object
            if line.type == "ERROR":
                raise _error(obj)
            metadata = obj["metadata"]
            version: str = metadata["resourceVersion"]
            if line.type != "BOOKMARK":
                metadata["name"], metadata["uid"]
        except (msgspec.DecodeError, KeyError, TypeError) as why:
            raise Cut(f"a line that is no event: {why!r}") from None
        if line.type != "BOOKMARK":
            self._tell(pruned(obj), gone=line.type == "DELETED")
        self._version = version
        self._cuts = 0

    # -- telling

    def _tell(self, obj: Obj, *, gone: bool) -> None:
        """Something was said about one object; makes it fit what was told before."""
        key = _key(obj)
        known = self._objects.get(key)
        kind = self.resource.kind
        if known is not None and uid_of(known) != uid_of(obj):
            if gone:
                return  # of one whose end was told already
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

    def _tell_difference(self, items: list[Obj]) -> None:
        """What must have happened since the last event, if this is all there is now."""
        now = {_key(obj): obj for obj in items}
        for key in [key for key in self._objects if key not in now]:  # first: it is they who make room
            self._tell(self._objects[key], gone=True)
        for key, obj in now.items():
            known = self._objects.get(key)
            if known is None or known["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion"):
                self._tell(obj, gone=False)


def _key(obj: Obj) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


async def list_all(api: Api, resource: Resource, namespace: str | None = None) -> tuple[list[Obj], str]:
    """All objects of a kind and the version at which that was so, page by page. Raises `Refused`."""
    base = f"{resource.collection(namespace)}?limit={api.bounds.page}"
    for _ in range(_LISTS_MOST):
        items: list[Obj] = []
        path = base
        while True:
            answer = await api.read(path, is_page=True)
            if not answer.is_good:
                break
            page = read_page(answer.body, resource)
            items += page.items or ()
            if not page.metadata.continue_:
                return items, page.metadata.resource_version
            path = f"{base}&continue={quote(page.metadata.continue_, safe='')}"
        if answer.status != 410:
            raise refusal(answer)
        base = resource.collection(namespace)  # the pages took longer than the server remembers: all at once
    raise refusal(answer)


def _error(status: Obj) -> Refused:
    """The server cannot go on from here, whatever its reason: that is what 410 means to us."""
    return Refused(410, str(status.get("reason")), str(status.get("message")))
