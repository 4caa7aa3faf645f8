"""What has come back from the API: versions by UID, and the echoes that somebody waits for.

A controller computes what to write from what it has seen. Asked again before its own writes have come back, it would
write them again. So whoever wrote waits for the echo of each write, and not for ever.
"""

from __future__ import annotations

from enbloc.api.meta import Obj, is_terminating, uid_of
from enbloc.api.writes import WatchEvent


def version_of(obj: Obj) -> str:
    version: str = obj["metadata"].get("resourceVersion") or ""
    return version


def is_as_new(version: str, other: str) -> bool:
    """Whether an object of that version is not older than another of the same object. Versions are numbers that grow;
    of those that are none only equality is known."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


class Expectations:
    """The newest version that was seen of each object, and of which it is known that it goes."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._going: set[str] = set()

    def observe(self, event: WatchEvent) -> None:
        uid = uid_of(event.obj)
        if event.type == "DELETED":
            self._versions.pop(uid, None)
            self._going.discard(uid)
            return
        self._versions[uid] = version_of(event.obj)
        if is_terminating(event.obj):
            self._going.add(uid)

    def has(self, uid: str, version: str) -> bool:
        """Whether this version of an object, or a newer one, was seen."""
        known = self._versions.get(uid)
        return known is not None and is_as_new(known, version)

    def is_going(self, uid: str) -> bool:
        """Whether an object is gone, or was seen about to go."""
        return uid in self._going or uid not in self._versions


class Echo:
    """One write that has to come back: a version of an object, or its going."""

    __slots__ = ("_created", "_going", "_version", "uid")

    def __init__(self, uid: str, version: str = "", *, created: bool = False, going: bool = False) -> None:
        self.uid = uid
        self._version = version
        self._created = created
        self._going = going

    def is_back(self, seen: Expectations) -> bool:
        if self._going:
            return seen.is_going(self.uid)
        if not self._created and seen.is_going(self.uid):
            return True
        return seen.has(self.uid, self._version)
