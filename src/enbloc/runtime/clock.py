"""The live clock: what the wall said when we began, and what has passed since.

Wall clocks jump: somebody sets them, or a machine finds its time server. A jump must not make every timer fire, nor
none for hours. So durations are counted by the clock that only goes forward, and goes on while a machine sleeps; the
wall is asked once. A process that began under a wrong clock keeps it until it is started again; `skew_s` says by how
much they differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from enbloc.units import SECOND


def _passed() -> int:
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyClock:
    """Nanoseconds since the epoch that never jump."""

    def __init__(self, wall: Callable[[], int] = time.time_ns, passed: Callable[[], int] = _passed) -> None:
        self._wall = wall
        self._passed = passed
        self._offset = wall() - passed()

    def __call__(self) -> int:
        return self._passed() + self._offset

    def skew_s(self) -> float:
        """How far the wall clock is ahead of this one."""
        return (self._wall() - self()) / SECOND
