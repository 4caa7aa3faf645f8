"""Gangs that are held because something raised while their objects were read, attempted or reported (S8).

It outlives the state that is rebuilt after a fault. A gang that still makes the state raise while it is held is read
bare, as a name without values; and if that does not do, it is left out of the state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from enbloc.api.meta import Obj, as_written, uid_of
from enbloc.api.writes import WatchEvent
from enbloc.faults import Faults
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

log = logging.getLogger("enbloc.faults")

CYCLE_PAUSE_NS: Final = 1 * SECOND
LONGEST_CYCLE_PAUSE_NS: Final = 30 * SECOND
BARE, LEFT_OUT = 1, 2


def log_fault(key: object, failure: BaseException, *, is_new: bool = True) -> None:
    """With its traceback the first time, then as one line."""
    named = "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
    if is_new:
        log.error("%s: its objects made this program fail; it is held (S8)", named, exc_info=failure)
    else:
        log.warning("%s: failed again: %r", named, failure)


class Unread(NamedTuple):
    """An object that is not read until its gang is tried again."""

    keys: tuple[GangKey, ...]
    event: WatchEvent
    counts: bool = True
    """Whether a pod is in the state at least bare."""


class HeldGangs:
    def __init__(self, count: Callable[[], None] = lambda: None) -> None:
        """`count` is called for each fault."""
        self._count = count
        self._faults: Faults[GangKey] = Faults()
        self._levels: dict[GangKey, int] = {}
        self._seen: dict[GangKey, dict[str, Any]] = {}
        """By UID: what the author of each object of a held gang wrote. Our own conditions are no change."""
        self.unread: dict[str, Unread] = {}
        """By UID: objects that could not be read."""
        self._cycles_failed = 0
        self._resumes_ns = 0

    def __contains__(self, key: object) -> bool:
        return bool(self._faults) and bool(self._faults.text(key))  # type: ignore[arg-type]

    def text(self, key: GangKey) -> str:
        return self._faults.text(key) if self._faults else ""

    def level(self, key: GangKey) -> int:
        """0: its objects are read as always; `BARE`, `LEFT_OUT`: see above."""
        return self._levels.get(key, 0) if self._levels else 0

    def hold(self, key: GangKey, failure: BaseException, objects: Iterable[Obj] = ()) -> None:
        """`objects`: those of the gang, as they made this program fail."""
        self._faults.add(key, failure)
        self._seen[key] = {uid_of(obj): as_written(obj) for obj in objects}
        self._report()

    def read_bare(self, key: GangKey) -> None:
        """Its values cannot be read."""
        self._levels[key] = max(BARE, self._levels.get(key, 0))

    def hold_more(self, key: GangKey) -> bool:
        """It is held and raises all the same. `False`: it is left out already."""
        level = self._levels[key] = self._levels.get(key, 0) + 1
        return level <= LEFT_OUT

    def _report(self) -> None:
        for key, failure, is_new in self._faults.take_new():
            self._count()
            log_fault(key, failure, is_new=is_new)

    def hear(self, key: GangKey, obj: Obj) -> None:
        """An object of a held gang came or changed."""
        seen = self._seen.setdefault(key, {})
        written = as_written(obj)
        if seen.get(uid_of(obj)) != written:
            seen[uid_of(obj)] = written
            self._faults.changed(key)

    def changed(self, key: GangKey) -> None:
        """An object of a held gang is gone."""
        self._faults.changed(key)

    def take_due(self, now_ns: int) -> list[tuple[GangKey, list[WatchEvent]]]:
        """The gangs that are tried again now, each with the objects that could not be read."""
        if not self._faults:
            return []
        found = []
        for key in self._faults.take_due(now_ns):
            self._levels.pop(key, None)
            self._seen.pop(key, None)
            mine = [uid for uid, unread in self.unread.items() if key in unread.keys]
            found.append((key, [self.unread.pop(uid).event for uid in mine]))
        return found

    def due(self) -> int | None:
        """When a gang is tried again, or a cycle after one that failed."""
        dues = (self._faults.due(), self._resumes_ns or None)
        return min((due for due in dues if due is not None), default=None)

    # ---- cycles that failed outside any one gang's objects

    def pause(self, failure: BaseException, now_ns: int) -> None:
        self._cycles_failed += 1
        self._count()
        log.error("a scheduling cycle failed; it is repeated", exc_info=failure)
        pause_ns = min(CYCLE_PAUSE_NS << min(self._cycles_failed - 1, 30), LONGEST_CYCLE_PAUSE_NS)
        self._resumes_ns = now_ns + pause_ns

    def pauses(self, now_ns: int) -> bool:
        return now_ns < self._resumes_ns

    @property
    def is_paused(self) -> bool:
        """Whether the last cycle failed: the next comes by its timer."""
        return self._resumes_ns > 0

    def resume(self) -> None:
        """A cycle was completed."""
        self._cycles_failed = self._resumes_ns = 0


def bare_pod(pod: Obj) -> Obj:
    """Of a pod that could not be read: who it is, where it runs, and what it requests."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    kept = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "resourceVersion")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {name: spec[name] for name in ("nodeName", "schedulerName", "priority", "containers") if name in spec},
        "status": {"phase": (pod.get("status") or {}).get("phase")},
    }
