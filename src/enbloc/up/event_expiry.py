"""Events of a local cluster expire an hour after they were last written, as a Kubernetes API server has it."""

from __future__ import annotations

from typing import Final

from enbloc.api.meta import Obj, Ref, name_of, namespace_of
from enbloc.api.writes import WatchEvent
from enbloc.cluster.embedded.api.store import Store
from enbloc.cluster.events import EVENT
from enbloc.units import SECOND, parse_timestamp

KEPT_NS: Final = 3600 * SECOND
MOST_AT_ONCE: Final = 500
"""So many are deleted before other work goes on."""


class EventExpiry:
    def __init__(self, store: Store) -> None:
        """`store`: with the Events of an earlier run, if it has any."""
        self._store = store
        known = sorted((_written_ns(event), *_key(event)) for event in store.list(EVENT)[0])
        self._written_ns = {(namespace, name): at_ns for at_ns, namespace, name in known}
        """Namespace and name → when it was last written, in that order."""
        store.listeners.append(self._note)

    def _note(self, event: WatchEvent) -> None:
        if event.kind == EVENT:
            self._written_ns.pop(_key(event.obj), None)
            if event.type != "DELETED":
                self._written_ns[_key(event.obj)] = self._store.now()

    def due(self) -> int | None:
        return next((at_ns + KEPT_NS for at_ns in self._written_ns.values()), None)

    def run(self, now_ns: int) -> None:
        for _ in range(MOST_AT_ONCE):
            due_ns = self.due()
            if due_ns is None or due_ns > now_ns:
                return
            namespace, name = next(iter(self._written_ns))
            self._written_ns.pop((namespace, name))
            if self._store.get(EVENT, namespace, name) is not None:
                self._store.delete(Ref(EVENT, namespace, name))


def _key(event: Obj) -> tuple[str, str]:
    return namespace_of(event), name_of(event)


def _written_ns(event: Obj) -> int:
    """Of an Event of an earlier run; 0: it does not say."""
    series = event.get("series") or {}
    for at in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        try:
            return parse_timestamp(at)
        except (ValueError, TypeError):
            continue
    return parse_timestamp(event["metadata"]["creationTimestamp"])
