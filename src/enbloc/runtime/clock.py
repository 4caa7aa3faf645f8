"""The live clock: the wall clock at the start of the process, plus the time since by a monotonic clock.

Wall clocks jump when they are set or synchronised. A jump must not fire every timer, nor delay them all for hours. So
durations are measured by a monotonic clock that also counts while the machine is suspended; the wall clock is read
once. A process that started under a wrong clock keeps it until it is restarted; `skew_s` is the difference.
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
