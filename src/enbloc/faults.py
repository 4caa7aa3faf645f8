"""What raised, by the key whose objects were looked at, and when each key is tried again (S8).

A key is held from its fault until it is tried again: when its objects change, or after a pause that doubles from 10 s
to 5 min. Nothing is logged here: `take_new` gives the runtime what is to be logged and counted.
"""

from __future__ import annotations

import traceback
from typing import Final, Generic, TypeVar

import msgspec

from enbloc.units import SECOND

FIRST_PAUSE_NS: Final = 10 * SECOND
LONGEST_PAUSE_NS: Final = 300 * SECOND
AFTER_CHANGE_NS: Final = 1 * SECOND
"""A key whose objects change all the time is tried at most this often."""
MOST_TEXT: Final = 300

Key = TypeVar("Key")


class _Fault(msgspec.Struct):
    text: str
    tries: int
    failed_ns: int | None = None
    """`None`: since the last call of `take_due`."""
    held: bool = True
    changed: bool = False
    """Whether its objects changed since it failed."""
    seen: object = None
    """What was written in its object when it failed."""

    @property
    def due_ns(self) -> int:
        pause_ns = min(FIRST_PAUSE_NS << min(self.tries - 1, 30), LONGEST_PAUSE_NS)
        return (self.failed_ns or 0) + (AFTER_CHANGE_NS if self.changed else pause_ns)


class Faults(Generic[Key]):
    def __init__(self) -> None:
        self._found: dict[Key, _Fault] = {}
        self._new: list[tuple[Key, BaseException, bool]] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, key: Key, failure: BaseException, seen: object = None) -> None:
        """Something raised while the objects of a key were looked at: it is held. `seen`: see `see`."""
        known, text = self._found.get(key), last_line(failure)
        if known is not None and known.held:  # of one attempt only the first fault counts
            return
        self._new.append((key, failure, known is None or known.text != text))
        self._found[key] = _Fault(text, known.tries + 1 if known is not None else 1, seen=seen)

    def take_new(self) -> list[tuple[Key, BaseException, bool]]:
        """What was added since the last call, and whether it is the first of its kind for its key."""
        new, self._new = self._new, []
        return new

    def text(self, key: Key) -> str:
        """Why a key is held; empty: it is not."""
        known = self._found.get(key)
        return known.text if known is not None and known.held else ""

    def changed(self, key: Key) -> None:
        """Objects of the key changed: it is tried again soon."""
        known = self._found.get(key)
        if known is not None:
            known.changed = True

    def see(self, key: Key, seen: object) -> None:
        """What is written in the object of a held key by now."""
        known = self._found.get(key)
        if known is not None and known.seen != seen:
            known.seen, known.changed = seen, True

    def forget(self, key: Key) -> None:
        self._found.pop(key, None)

    def take_due(self, now_ns: int) -> list[Key]:
        """The keys that are tried again now. Those that held out for long after that are forgotten."""
        due = []
        for key, known in list(self._found.items()):
            if known.failed_ns is None:
                known.failed_ns = now_ns
            if known.held and known.due_ns <= now_ns:
                known.held = False
                known.failed_ns = now_ns
                due.append(key)
            elif not known.held and now_ns - known.failed_ns > LONGEST_PAUSE_NS:
                del self._found[key]
        return due

    def due(self) -> int | None:
        """When the next key is tried again."""
        return min((known.due_ns for known in self._found.values() if known.held), default=None)


def last_line(failure: BaseException) -> str:
    """The last line of a traceback, cut to a length that fits a condition."""
    lines = "".join(traceback.format_exception_only(failure)).split()
    text = " ".join(lines)
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…"
