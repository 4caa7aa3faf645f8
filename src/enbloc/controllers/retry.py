"""Refused writes: which keys may be retried, and when. The delay doubles from 1 s to 5 min; an event ends it early."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from enbloc.api.writes import Refused
from enbloc.units import SECOND

FIRST_DELAY_NS: Final = 1 * SECOND
MAX_DELAY_NS: Final = 300 * SECOND

Key = TypeVar("Key")


def is_superseded(error: Refused) -> bool:
    """Whether a write was refused because its object is gone or newer: a watch event follows, and no retry is due."""
    return error.reason in ("NotFound", "Conflict")


class _Wait(msgspec.Struct):
    attempts: int
    refused_at_ns: int
    until_ns: int
    """0: it may be retried."""


class Retries(Generic[Key]):
    """Keys whose last write was refused."""

    def __init__(self) -> None:
        self._waits: dict[Key, _Wait] = {}

    def refuse(self, key: Key, now_ns: int) -> bool:
        """Records a refusal. Several at one instant count once; returns whether this was the first of them."""
        wait = self._waits.get(key)
        if wait is not None and wait.refused_at_ns == now_ns:
            wait.until_ns = max(wait.until_ns, now_ns + FIRST_DELAY_NS)  # also after an event in between
            return False
        attempts = wait.attempts + 1 if wait else 1
        delay = min(FIRST_DELAY_NS << min(attempts - 1, 30), MAX_DELAY_NS)
        self._waits[key] = _Wait(attempts, now_ns, now_ns + delay)
        return True

    def waits(self, key: Key, now_ns: int) -> bool:
        wait = self._waits.get(key)
        return wait is not None and now_ns < wait.until_ns

    def end_delay(self, key: Key) -> bool:
        """An event may have removed the cause. The number of attempts is kept; returns whether the key was known."""
        wait = self._waits.get(key)
        if wait is None:
            return False
        wait.until_ns = 0
        return True

    def keys(self) -> list[Key]:
        return list(self._waits)

    def forget(self, key: Key) -> None:
        self._waits.pop(key, None)

    def take_due(self, now_ns: int) -> list[Key]:
        """The keys whose delay is over; each is returned once."""
        due = [key for key, wait in self._waits.items() if 0 < wait.until_ns <= now_ns]
        for key in due:
            self._waits[key].until_ns = 0
        return due

    def next(self) -> int | None:
        return min((wait.until_ns for wait in self._waits.values() if wait.until_ns), default=None)
