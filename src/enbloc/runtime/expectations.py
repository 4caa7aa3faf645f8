"""Which writes have come back as watch events: the newest observed version of each object, and expected events.

A controller computes its writes from what it has observed. Run again before its own writes have come back, it would
write them again. So a runner expects the watch event of each write before it runs its controller again, for a bounded
time (client-go calls these expectations).
"""

from __future__ import annotations

from enbloc.api.meta import Obj, is_terminating, uid_of
from enbloc.api.writes import WatchEvent


def version_of(obj: Obj) -> str:
    version: str = obj["metadata"].get("resourceVersion") or ""
    return version


def is_as_new(version: str, other: str) -> bool:
    """Whether a version of an object is not older than another. Versions that are numbers grow; others can only be
    equal."""
    if version.isdecimal() and other.isdecimal():
        return int(version) >= int(other)
    return version == other


class Observed:
    """By UID: the newest version that was observed, and whether the object is being deleted."""

    def __init__(self) -> None:
        self._versions: dict[str, str] = {}
        self._terminating: set[str] = set()

    def observe(self, event: WatchEvent) -> None:
        uid = uid_of(event.obj)
        if event.type == "DELETED":
            self._versions.pop(uid, None)
            self._terminating.discard(uid)
            return
        self._versions[uid] = version_of(event.obj)
        if is_terminating(event.obj):
            self._terminating.add(uid)

    def has(self, uid: str, version: str) -> bool:
        """Whether this version or a newer one was observed."""
        known = self._versions.get(uid)
        return known is not None and is_as_new(known, version)

    def is_gone(self, uid: str) -> bool:
        """Whether an object does not exist or was observed as terminating."""
        return uid in self._terminating or uid not in self._versions


class Expectation:
    """The watch event of one write: a version of an object, or its deletion."""

    __slots__ = ("_created", "_deletes", "_version", "uid")

    def __init__(self, uid: str, version: str = "", *, created: bool = False, deletes: bool = False) -> None:
        self.uid = uid
        self._version = version
        self._created = created
        self._deletes = deletes

    def is_met(self, observed: Observed) -> bool:
        if self._deletes:
            return observed.is_gone(self.uid)
        if not self._created and observed.is_gone(self.uid):
            return True
        return observed.has(self.uid, self._version)
