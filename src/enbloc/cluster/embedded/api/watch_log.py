"""The history of events that every watch reads.

Every version of the store is one event and every event one version, so a version is a position in the history and a
watch is a cursor. Objects are shared, never copied. The history is bounded: `history` events are kept for future
watches, more only while an open watch has not read them, never more than `bound`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from weakref import WeakSet

from enbloc.api.writes import Refused, WatchEvent


class LogWatch:
    """A cursor into the history, over some kinds or all. A watch without references keeps no events."""

    __slots__ = ("__weakref__", "_kinds", "_log", "cursor")

    def __init__(self, log: WatchLog, kinds: Collection[str] | None, since: int) -> None:
        self._log = log
        self._kinds = None if kinds is None else frozenset(kinds)
        self.cursor = since

    def drain(self) -> list[WatchEvent]:
        """The events since the last call. Raises `Refused` (410) if they are no longer kept."""
        events = self._log.after(self.cursor)
        self.cursor = self._log.version
        kinds = self._kinds
        return events if kinds is None else [event for event in events if event.kind in kinds]

    def close(self) -> None:
        self._log.forget(self)


class WatchLog:
    """The events after version `base`, without gaps."""

    def __init__(self, history: int, bound: int) -> None:
        self._history = history
        self._bound = max(bound, history)
        self._events: list[WatchEvent] = []
        self._base = 0
        self._watches: WeakSet[LogWatch] = WeakSet()
        self._trim_at = 2 * history + 1
        self.version = 0
        self.listeners: list[Callable[[WatchEvent], None]] = []
        """Called with each event during the write: they may record it and do nothing else."""

    def begin(self, version: int) -> None:
        """Starts the history after `version`; earlier events are unknown."""
        assert not self._events, "the history has started already"
        self.version = self._base = version

    def append(self, event: WatchEvent) -> None:
        self._events.append(event)
        self.version += 1
        for listener in self.listeners:
            listener(event)
        if len(self._events) >= self._trim_at:
            self._trim()

    def after(self, version: int) -> list[WatchEvent]:
        if version < self._base:
            raise Refused(410, "Expired", f"too old resource version: {version} ({self._base})")
        if version > self.version:
            raise Refused(504, "Timeout", f"Too large resource version: {version}, current: {self.version}")
        return self._events[version - self._base :]

    def open(self, kinds: Collection[str] | None, since: int) -> LogWatch:
        if not self._base <= since <= self.version:
            self.after(since)  # raises the matching refusal
        watch = LogWatch(self, kinds, since)
        self._watches.add(watch)
        return watch

    def forget(self, watch: LogWatch) -> None:
        self._watches.discard(watch)

    def _trim(self) -> None:
        """Drops events that no watch needs: many at a time, so that the cost per event stays constant."""
        unread = min((watch.cursor for watch in self._watches), default=self.version)
        keep_after = max(min(unread, self.version - self._history), self.version - self._bound)
        if keep_after > self._base:
            del self._events[: keep_after - self._base]
            self._base = keep_after
        self._trim_at = len(self._events) + max(self._history, len(self._events) // 2, 1)
        self._trim_at = min(self._trim_at, max(self._bound + self._history, len(self._events)) + 1)
