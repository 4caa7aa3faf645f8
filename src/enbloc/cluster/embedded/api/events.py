"""An index of the stored Events, so that a repeated Event is counted and not stored again.

The number of Events is bounded, per object and in total; those not repeated for longest are dropped first. Storing them
is left to the store.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from enbloc.api.meta import Obj
from enbloc.cluster.events import EventKey

EVENTS_PER_OBJECT = 64
EVENTS_IN_TOTAL = 50_000


class EventIndex:
    """Which Event object belongs to which key, and which Events are dropped for a new one."""

    def __init__(self, per_object: int = EVENTS_PER_OBJECT, in_total: int = EVENTS_IN_TOTAL) -> None:
        self._per_object = per_object
        self._in_total = in_total
        self._names: OrderedDict[EventKey, tuple[str, str]] = OrderedDict()  # oldest first
        self._about: dict[str, deque[EventKey]] = {}
        self._count = 0

    def continue_after(self, count: int) -> None:
        """Continues the numbering of Event names after a restart: `count` or fewer names were given."""
        self._count = count

    def restore(self, event: Obj) -> None:
        """Indexes an Event object that was stored before a restart."""
        key = _key_of(event)
        if key not in self._names:
            self._names[key] = (event["metadata"].get("namespace") or "", event["metadata"]["name"])
            self._about.setdefault(key.about, deque()).append(key)

    def removed(self, event: Obj) -> None:
        """An Event object was deleted."""
        key = _key_of(event)
        if self._names.get(key) == (event["metadata"].get("namespace") or "", event["metadata"]["name"]):
            self.forget(key)

    def find(self, key: EventKey) -> tuple[str, str] | None:
        return self._names.get(key)

    def add(self, key: EventKey, namespace: str, object_name: str) -> tuple[str, list[tuple[str, str]]]:
        """The new Event's name, and the (namespace, name) of the Events dropped for it."""
        self._count += 1
        name = f"{object_name[:200]}.{self._count:016x}"
        dropped = []
        about = self._about.setdefault(key.about, deque())
        if len(about) >= self._per_object:
            dropped.append(self._names.pop(about.popleft()))
        if len(self._names) >= self._in_total:
            oldest, named = self._names.popitem(last=False)
            dropped.append(named)
            others = self._about[oldest.about]
            others.remove(oldest)
            if not others and oldest.about != key.about:
                del self._about[oldest.about]
        about.append(key)
        self._names[key] = (namespace, name)
        return name, dropped

    def forget(self, key: EventKey) -> None:
        """The Event object was deleted through the API."""
        if self._names.pop(key, None) is not None:
            others = self._about[key.about]
            others.remove(key)
            if not others:
                del self._about[key.about]


def _key_of(event: Obj) -> EventKey:
    """The key of a stored Event."""
    involved = event.get("involvedObject") or {}
    group = involved.get("apiVersion", "").rpartition("/")[0]
    kind = f"{involved.get('kind', '')}.{group}" if group else involved.get("kind", "")
    about = involved.get("uid") or f"{kind}/{involved.get('namespace', '')}/{involved.get('name', '')}"
    parts = [str(event.get(field) or "") for field in ("type", "reason", "message", "reportingComponent")]
    return EventKey(about, *parts)
