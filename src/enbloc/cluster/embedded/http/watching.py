"""Watches: the events of a collection, one JSON document a line, for as long as the client listens.

A watch is a cursor into the store's history, so a slow client costs the events it has not read and delays no other. A
client that reads nothing for `streaming.STALL_S` is disconnected; so is one that is behind the history. Events are
taken from the history a chunk at a time, so that its bound in bytes holds for what a client has not read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any

from aiohttp import web

from enbloc.api.events import as_version
from enbloc.api.meta import Obj, namespace_of
from enbloc.api.writes import Refused, WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.embedded.api.watch_log import LogWatch
from enbloc.cluster.embedded.http.columns import Column
from enbloc.cluster.embedded.http.encoding import Encodings, event_line, line
from enbloc.cluster.embedded.http.listing import Lists, tests
from enbloc.cluster.embedded.http.notify import Changes
from enbloc.cluster.embedded.http.printer_columns import columns_for
from enbloc.cluster.embedded.http.queries import Form, ListQuery
from enbloc.cluster.embedded.http.resources import Target
from enbloc.cluster.embedded.http.selectors import Test
from enbloc.cluster.embedded.http.status import failure, refusal
from enbloc.cluster.embedded.http.streaming import CHUNK_BYTES, Unsent, streaming
from enbloc.cluster.embedded.http.tables import Included, partial, table

BOOKMARK_S = 60.0
WATCHES = 10_000
_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_KEEP_UP_EVERY = 1_000
INITIAL_END = "k8s.io/initial-events-end"

Write = Callable[[bytes], Awaitable[None]]


class View:
    """What one watch shows: which objects, in which form."""

    def __init__(
        self,
        target: Target,
        asked: ListQuery,
        form: Form,
        include: Included,
        encodings: Encodings,
        columns: Sequence[Column],
    ) -> None:
        self.target = target
        self._columns = columns
        self.form = form
        self._include = include
        self._encodings = encodings
        self._test: Test | None = tests(target, asked)
        self._heads = True
        self._plain = form == "object" and self._test is None

    def line(self, event: WatchEvent, now_ns: int) -> bytes | None:
        """The line for an event; `None` if this watch does not include it."""
        namespace = self.target.namespace
        if namespace and namespace_of(event.obj) != namespace:
            return None
        if self._plain and event.obj["apiVersion"] == self.target.api_version:
            return self._encodings.frame(event)
        type_ = self._type(event)
        return None if type_ is None else self.shown(type_, event.obj, now_ns)

    def _type(self, event: WatchEvent) -> str | None:
        """An object that begins to match is ADDED to this watch; one that ceases to is DELETED from it."""
        test = self._test
        if test is None:
            return event.type
        if event.type == "DELETED":
            return "DELETED" if test(event.obj) else None
        had = event.old is not None and test(event.old)
        if test(event.obj):
            return "MODIFIED" if had else "ADDED"
        return "DELETED" if had else None

    def shown(self, type_: str, obj: Obj, now_ns: int) -> bytes:
        if obj["apiVersion"] != self.target.api_version:
            if self.form == "object":
                return event_line(type_, as_version(obj, self.target.api_version))
        elif self.form == "object":
            return line(type_, self._encodings.raw(obj))
        return event_line(type_, self._formed(obj, now_ns))

    def _formed(self, obj: Obj, now_ns: int) -> dict[str, Any]:
        if self.form == "metadata":
            return partial(obj)
        heads, self._heads = self._heads, False
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return table(self._columns, [obj], now_ns, self._include, metadata, self.target.api_version, heads=heads)

    def bookmark(self, version: int, *, initial_end: bool = False) -> bytes:
        metadata: dict[str, Any] = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {INITIAL_END: "true"}
        obj = {"kind": self.target.kind.name, "apiVersion": self.target.api_version, "metadata": metadata}
        if self.form == "metadata":
            obj = partial(obj)
        elif self.form == "table":
            obj = table(self._columns, [], 0, "None", metadata, self.target.api_version, heads=False)
        return event_line("BOOKMARK", obj)


class Watches:
    """Serves watches on one store."""

    def __init__(self, store: Store, lists: Lists, changes: Changes, encodings: Encodings, unsent: Unsent) -> None:
        self._store = store
        self._unsent = unsent
        self._lists = lists
        self._changes = changes
        self._encodings = encodings
        self._idle: dict[LogWatch, str] = {}
        self._latest: dict[str, int] = {}
        self._closing = asyncio.Event()
        self.count = 0

    def close(self) -> None:
        """Ends every watch, and refuses new ones."""
        self._closing.set()
        for kind in list(self._changes.kinds()):
            self._changes.wake(kind)

    def note(self, event: WatchEvent) -> None:
        """Records an event. Every `_KEEP_UP_EVERY` events the cursors of idle watches on other kinds are moved to the
        present, so that no history is kept for them."""
        version = self._store.version
        self._latest[event.kind] = version
        if version % _KEEP_UP_EVERY == 0:
            for watch, kind in self._idle.items():
                if self._latest.get(kind, 0) <= watch.cursor:
                    watch.cursor = version

    async def serve(
        self, request: web.BaseRequest, target: Target, asked: ListQuery, form: Form, include: Included
    ) -> web.StreamResponse:
        if self.count >= WATCHES:
            raise refusal(429, f"too many watches: at most {WATCHES} are served")
        columns = columns_for(self._store.discovery, target.kind.id, target.version)
        view = View(target, asked, form, include, self._encodings, columns)
        self.count += 1
        try:
            return await self._serve(request, view, asked)
        finally:
            self.count -= 1

    async def _serve(self, request: web.BaseRequest, view: View, asked: ListQuery) -> web.StreamResponse:
        initial, since, refused = self._begin(view.target, asked)
        watch: LogWatch | None = None
        if refused is None:
            try:
                watch = self._store.watch_for_client([view.target.kind.id], since)
            except Refused as why:
                code = 410 if why.code == 504 else why.code  # a version from before a restart: list again
                refused = refusal(code, why.message)
        try:
            async with streaming(request, _HEADERS, self._unsent) as stream:
                if watch is None or refused is not None:
                    await stream.write(event_line("ERROR", failure(refused or refusal(410, "expired"))))
                else:
                    await self._stream(view, watch, asked, initial, since, stream.write)
            return stream.response
        finally:
            if watch is not None:
                self._idle.pop(watch, None)
                watch.close()

    def _begin(self, target: Target, asked: ListQuery) -> tuple[list[Obj] | None, int, Refused | None]:
        """The initial objects (`None`: none are sent), the version to watch from, and the refusal, if any."""
        present = self._store.version
        version = int(asked.version) if asked.version else 0
        if asked.initial_events:
            if version > present:
                return None, present, refusal(410, f"Too large resource version: {version}, current: {present}")
            return self._lists.matching(target, asked), present, None
        if asked.initial_events is False and not version:
            return None, present, None
        if not version:
            return self._lists.matching(target, asked), present, None
        return None, version, None

    async def _stream(
        self, view: View, watch: LogWatch, asked: ListQuery, initial: list[Obj] | None, since: int, write: Write
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + (asked.timeout_s or random.uniform(1800, 3600))
        now_ns = self._store.now()
        await self._write_all((view.shown("ADDED", obj, now_ns) for obj in initial or ()), write)
        if asked.initial_events:
            await write(view.bookmark(since, initial_end=True))
        next_bookmark = loop.time() + BOOKMARK_S if asked.bookmarks else end
        kind = view.target.kind.id
        while not self._closing.is_set():
            try:
                events = watch.take(CHUNK_BYTES)
            except Refused as why:
                await write(event_line("ERROR", failure(why)))
                return
            if events:
                now_ns = self._store.now()
                lines = (made for event in events if (made := view.line(event, now_ns)) is not None)
                await self._write_all(lines, write)
                continue
            at = loop.time()
            if at >= end:
                break
            if at >= next_bookmark:
                await write(view.bookmark(watch.cursor))
                next_bookmark = at + BOOKMARK_S
            self._idle[watch] = kind
            await self._changes.wait(kind, min(end, next_bookmark) - at)
            self._idle.pop(watch, None)
        if asked.bookmarks:
            await write(view.bookmark(watch.cursor))

    async def _write_all(self, lines: Iterable[bytes] | Iterator[bytes], write: Write) -> None:
        piece: list[bytes] = []
        size = 0
        for one in lines:
            piece.append(one)
            size += len(one)
            if size >= CHUNK_BYTES:
                await write(b"".join(piece))
                await asyncio.sleep(0)
                piece, size = [], 0
        if piece:
            await write(b"".join(piece))
