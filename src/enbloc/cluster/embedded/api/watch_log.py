"""The history of events that every watch reads.

Every version of the store is one event and every event one version, so a version is a position in the history and a
watch is a cursor. Objects are shared, never copied. The history is bounded in events, and in the bytes of their
objects: some of it is kept for future watches, more only while an open watch has not read it. For a client's watch a
bounded number of bytes is kept; a watch of this process reads soon, and for it a bounded number of events is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection
from typing import Final
from weakref import WeakSet

import msgspec

from enbloc.api.writes import Refused, WatchEvent

MIB: Final = 2**20


class Bounds(msgspec.Struct, frozen=True):
    """Of the history: events and bytes for future watches, events for watches that have not read them, and bytes that
    are kept for one client's watch."""

    history: int = 10_000
    history_bytes: int = 32 * MIB
    unread: int = 500_000
    client_bytes: int = 128 * MIB


DEFAULT_BOUNDS: Final = Bounds()


class LogWatch:
    """A cursor into the history, over some kinds or all. A watch without references keeps no events."""

    __slots__ = ("__weakref__", "_kinds", "_log", "cursor", "is_client")

    def __init__(self, log: WatchLog, kinds: Collection[str] | None, since: int, *, is_client: bool) -> None:
        self._log = log
        self._kinds = None if kinds is None else frozenset(kinds)
        self.cursor = since
        self.is_client = is_client

    def drain(self) -> list[WatchEvent]:
        """The events since the last call. Raises `Refused` (410) if they are no longer kept."""
        events = self._log.after(self.cursor)
        self.cursor = self._log.version
        kinds = self._kinds
        return events if kinds is None else [event for event in events if event.kind in kinds]

    def take(self, most_bytes: int) -> list[WatchEvent]:
        """As `drain`, but no more events than have about `most_bytes`; empty when all are read."""
        while self.cursor < self._log.version:
            events = self._log.after(self.cursor, most_bytes)
            self.cursor += len(events)
            kinds = self._kinds
            found = events if kinds is None else [event for event in events if event.kind in kinds]
            if found:
                return found
        return []

    def close(self) -> None:
        self._log.forget(self)


class WatchLog:
    """The events after version `base`, without gaps."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._bound = max(bounds.unread, bounds.history)
        self._events: list[WatchEvent] = []
        self._ends: list[int] = []
        """For each event, the bytes of all events up to it since the beginning."""
        self._base = 0
        self._base_bytes = 0
        self._bytes = 0
        self._watches: WeakSet[LogWatch] = WeakSet()
        self._trim_at = 2 * bounds.history + 1
        self._trim_at_bytes = 2 * bounds.history_bytes
        self.version = 0
        self.listeners: list[Callable[[WatchEvent], None]] = []
        """Called with each event during the write: they may record it and do nothing else."""

    def begin(self, version: int) -> None:
        """Starts the history after `version`; earlier events are unknown."""
        assert not self._events, "the history has started already"
        self.version = self._base = version

    def append(self, event: WatchEvent, size: int = 0) -> None:
        """`size`: the bytes of the event's object; 0 where memory is not bounded."""
        self._events.append(event)
        self._bytes += size
        self._ends.append(self._bytes)
        self.version += 1
        for listener in self.listeners:
            listener(event)
        if len(self._events) >= self._trim_at or self._bytes >= self._trim_at_bytes:
            self._trim()

    def after(self, version: int, most_bytes: int | None = None) -> list[WatchEvent]:
        """The events after `version`: all, or the first ones of about `most_bytes`, at least one."""
        if version < self._base:
            raise Refused(410, "Expired", f"too old resource version: {version} ({self._base})")
        if version > self.version:
            raise Refused(504, "Timeout", f"Too large resource version: {version}, current: {self.version}")
        begin = version - self._base
        if most_bytes is None:
            return self._events[begin:]
        before = self._ends[begin - 1] if begin else self._base_bytes
        end = bisect_right(self._ends, before + most_bytes, begin)
        return self._events[begin : max(end, begin + 1)]

    def open(self, kinds: Collection[str] | None, since: int, *, is_client: bool = False) -> LogWatch:
        if not self._base <= since <= self.version:
            self.after(since)  # raises the matching refusal
        watch = LogWatch(self, kinds, since, is_client=is_client)
        self._watches.add(watch)
        return watch

    def forget(self, watch: LogWatch) -> None:
        self._watches.discard(watch)

    def _first_within(self, size: int) -> int:
        """The earliest version after which the events have at most `size` bytes."""
        if self._bytes - self._base_bytes <= size:
            return self._base
        return self._base + bisect_left(self._ends, self._bytes - size) + 1

    def _trim(self) -> None:
        """Drops events that no watch needs: many at a time, so that the cost per event stays constant."""
        bounds = self._bounds
        keep_after = max(self.version - bounds.history, self._first_within(bounds.history_bytes))
        for_clients = self._first_within(bounds.client_bytes)
        for watch in self._watches:
            keep_after = min(keep_after, max(watch.cursor, for_clients) if watch.is_client else watch.cursor)
        keep_after = max(keep_after, self.version - self._bound)
        dropped = keep_after - self._base
        if dropped > 0:
            self._base_bytes = self._ends[dropped - 1]
            del self._events[:dropped]
            del self._ends[:dropped]
            self._base = keep_after
        self._trim_at = len(self._events) + max(bounds.history, len(self._events) // 2, 1)
        self._trim_at = min(self._trim_at, max(self._bound + bounds.history, len(self._events)) + 1)
        kept_bytes = self._bytes - self._base_bytes
        self._trim_at_bytes = self._bytes + max(bounds.history_bytes, kept_bytes // 2, 1)
