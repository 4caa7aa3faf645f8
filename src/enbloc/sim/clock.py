"""Virtual time: nanoseconds since the epoch that move only when the simulation sets them."""

from __future__ import annotations

from typing import Final

from enbloc.units import SECOND, parse_timestamp

EPOCH: Final = parse_timestamp("2026-01-01T00:00:00Z")
"""The instant at which a simulation begins, unless it goes on from a snapshot."""


class Clock:
    """The clock of a simulation. Calling it returns the time."""

    __slots__ = ("begin_ns", "now_ns")

    def __init__(self, begin_ns: int = EPOCH) -> None:
        self.begin_ns = begin_ns
        self.now_ns = begin_ns

    def __call__(self) -> int:
        return self.now_ns

    @property
    def elapsed_ns(self) -> int:
        """Nanoseconds since the simulation began."""
        return self.now_ns - self.begin_ns

    @property
    def elapsed_s(self) -> float:
        return (self.now_ns - self.begin_ns) / SECOND
