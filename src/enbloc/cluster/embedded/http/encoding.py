"""Encodes objects. One version of an object is encoded once, however many lists and watches return it.

Two caches, both bounded: the present version of each object (`raw`), and the lines of the latest events (`frame`),
which many watches read one after the other.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent

FRAMES_BYTES = 32 * 1024 * 1024
OBJECTS_BYTES = 256 * 1024 * 1024

encode = msgspec.json.Encoder().encode


class Encodings:
    """Cached encodings of objects and of events."""

    def __init__(self, objects_bytes: int = OBJECTS_BYTES, frames_bytes: int = FRAMES_BYTES) -> None:
        self._objects: dict[str, tuple[Obj, bytes]] = {}
        self._objects_size = 0
        self._objects_bytes = objects_bytes
        self._frames: OrderedDict[str, bytes] = OrderedDict()
        self._frames_size = 0
        self._frames_bytes = frames_bytes

    def raw(self, obj: Obj) -> bytes:
        uid = obj["metadata"].get("uid") or ""
        known = self._objects.get(uid)
        if known is not None:
            if known[0] is obj:
                return known[1]
            self._objects_size -= len(known[1])
        made = encode(obj)
        self._objects_size += len(made)
        if self._objects_size > self._objects_bytes:
            self._objects.clear()
            self._objects_size = len(made)
        self._objects[uid] = (obj, made)
        return made

    def frame(self, event: WatchEvent) -> bytes:
        """The line of an event in a watch; every version of the store is one event."""
        version = event.obj["metadata"]["resourceVersion"]
        known = self._frames.get(version)
        if known is not None:
            return known
        present = self._objects.get(event.obj["metadata"].get("uid") or "")
        raw = present[1] if present is not None and present[0] is event.obj else encode(event.obj)
        made = line(event.type, raw)
        self._frames[version] = made
        self._frames_size += len(made)
        while self._frames_size > self._frames_bytes:
            self._frames_size -= len(self._frames.popitem(last=False)[1])
        return made

    def forget(self, obj: Obj) -> None:
        """The object was deleted."""
        known = self._objects.pop(obj["metadata"].get("uid") or "", None)
        if known is not None:
            self._objects_size -= len(known[1])


def line(type_: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), raw)


def event_line(type_: str, obj: dict[str, Any]) -> bytes:
    return line(type_, encode(obj))
