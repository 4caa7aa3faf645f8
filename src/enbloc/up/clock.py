"""The wall clock in whole milliseconds: timestamps stay short and keep their order."""

from __future__ import annotations

import time

from enbloc.units import SECOND

_MILLISECOND = SECOND // 1_000


def now_ns() -> int:
    """Nanoseconds since the epoch."""
    return time.time_ns() // _MILLISECOND * _MILLISECOND


class StopWatch:
    """The time since it was created, for a timeline."""

    def __init__(self) -> None:
        self.begin_ns = now_ns()

    @property
    def elapsed_ns(self) -> int:
        return now_ns() - self.begin_ns

    @property
    def elapsed_s(self) -> float:
        return self.elapsed_ns / SECOND
