"""The cluster's objects that admission rules look up, kept by watches.

A cache is always a little behind. So no request is refused because of the cache alone: `RecordingLookup` records what a
review looked up, and before it is refused the server fetches exactly that and reviews again.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Final

from enbloc.admission.lookup import Lookup
from enbloc.api import volcano
from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, Ref
from enbloc.api.writes import WatchEvent
from enbloc.gangs.priority_classes import PRIORITY_CLASS

KINDS_LOOKED_UP: Final = frozenset({volcano.QUEUE, PRIORITY_CLASS, "Namespace"})
"""The kinds that rules look up."""


class ObjectCache:
    """A `Lookup` over what a watch reports."""

    kinds = KINDS_LOOKED_UP

    def __init__(self) -> None:
        self._objects: dict[str, dict[tuple[str, str], Obj]] = {}
        self.is_complete = False

    def listed(self) -> None:
        """Every existing object was observed: from here on a missing object does not exist."""
        self.is_complete = True

    def observe(self, event: WatchEvent) -> None:
        ref = ref_of(event.obj)
        objects = self._objects.setdefault(event.kind, {})
        if event.type == "DELETED":
            objects.pop((ref.namespace, ref.name), None)
        else:
            objects[ref.namespace, ref.name] = event.obj

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        return self._objects.get(kind, {}).get((namespace, name))

    def list(self, kind: str) -> builtins.list[Obj]:
        return [obj for _, obj in sorted(self._objects.get(kind, {}).items(), key=lambda item: item[0])]

    def complete(self, kind: str) -> bool:
        return self.is_complete and kind in KINDS_LOOKED_UP


class RecordingLookup:
    """A `Lookup` over another one that records what was looked up; `fresh` answers take precedence."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.objects: set[Ref] = set()
        self.kinds: set[str] = set()
        self._fresh_objects: dict[Ref, Obj | None] = {}
        self._fresh_lists: dict[str, dict[tuple[str, str], Obj]] = {}

    def learn(self, ref: Ref, obj: Obj | None) -> None:
        self._fresh_objects[ref] = obj

    def learn_all(self, kind: str, objects: Iterable[Obj]) -> None:
        self._fresh_lists[kind] = {(ref.namespace, ref.name): obj for obj in objects for ref in [ref_of(obj)]}

    def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        ref = Ref(kind, namespace, name)
        self.objects.add(ref)
        if kind in self._fresh_lists:
            return self._fresh_lists[kind].get((namespace, name))
        if ref in self._fresh_objects:
            return self._fresh_objects[ref]
        return self._lookup.get(kind, namespace, name)

    def list(self, kind: str) -> builtins.list[Obj]:
        self.kinds.add(kind)
        if kind in self._fresh_lists:
            return [obj for _, obj in sorted(self._fresh_lists[kind].items(), key=lambda item: item[0])]
        return self._lookup.list(kind)

    def complete(self, kind: str) -> bool:
        return kind in self._fresh_lists or self._lookup.complete(kind)
