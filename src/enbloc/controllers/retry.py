"""Writes that were refused: whose turn it is again, and when. The delay grows, an event cuts it short."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec

from enbloc.api.writes import Refused
from enbloc.units import SECOND

FIRST_DELAY: Final = 1 * SECOND
LONGEST_DELAY: Final = 300 * SECOND

Key = TypeVar("Key")


def watch_tells(error: Refused) -> bool:
    """Whether a change was refused because its object is gone, or is another by now: an event tells of it."""
    return error.reason in ("NotFound", "Conflict")


class _Wait(msgspec.Struct):
    attempts: int
    refused_at: int
    until: int


class Retries(Generic[Key]):
    """Keys that wait before they try again."""

    def __init__(self) -> None:
        self._waits: dict[Key, _Wait] = {}

    def refuse(self, key: Key, now: int) -> bool:
        """Notes a refusal. Many at one instant are one; says whether this was the first of them."""
        wait = self._waits.get(key)
        if wait is not None and wait.refused_at == now:
            wait.until = max(wait.until, now + FIRST_DELAY)  # an event in between does not make it "at once"
            return False
        attempts = wait.attempts + 1 if wait else 1
        delay = min(FIRST_DELAY << min(attempts - 1, 30), LONGEST_DELAY)
        self._waits[key] = _Wait(attempts, now, now + delay)
        return True

    def waits(self, key: Key, now: int) -> bool:
        wait = self._waits.get(key)
        return wait is not None and now < wait.until

    def wake(self, key: Key) -> bool:
        """Something happened that may help. How often it failed is remembered."""
        wait = self._waits.get(key)
        if wait is None:
            return False
        wait.until = 0
        return True

    def keys(self) -> list[Key]:
        return list(self._waits)

    def forget(self, key: Key) -> None:
        self._waits.pop(key, None)

    def take_due(self, now: int) -> list[Key]:
        """The keys whose time has come. Each is told once."""
        due = [key for key, wait in self._waits.items() if 0 < wait.until <= now]
        for key in due:
            self._waits[key].until = 0
        return due

    def next(self) -> int | None:
        return min((wait.until for wait in self._waits.values() if wait.until), default=None)
