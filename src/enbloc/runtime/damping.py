"""How often one object is written, when others may make us write it: a tenant rewrites its own status or forges one of
our records as fast as it likes, and each time what it should say is written again.

So many writes to one object are sent at once, then one in a while. Callers keep the last write that was put off:
nothing is lost, it is late.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

BURST: Final = 20
EVERY_S: Final = 1.0
MOST_KEYS: Final = 10_000
"""Objects whose time is over are forgotten when more are known."""

Key = TypeVar("Key", bound=Hashable)


class Damper(Generic[Key]):
    def __init__(self) -> None:
        self._full_until_s: dict[Key, float] = {}
        """Key → when as many writes may be sent at once as ever."""

    def admit(self, key: Key, now_s: float) -> bool:
        """Whether a write to this object may be sent now. If so, it counts."""
        if self.next_s(key) > now_s:
            return False
        if len(self._full_until_s) >= MOST_KEYS:
            self._full_until_s = {key: until_s for key, until_s in self._full_until_s.items() if until_s > now_s}
        self._full_until_s[key] = max(self._full_until_s.get(key, 0.0), now_s) + EVERY_S
        return True

    def next_s(self, key: Key) -> float:
        """From when on a write to it may be sent; 0: at once."""
        until_s = self._full_until_s.get(key)
        return 0.0 if until_s is None else until_s - (BURST - 1) * EVERY_S

    def forget(self, key: Key) -> None:
        self._full_until_s.pop(key, None)
