"""How long a kubelet rests before it starts a container again that keeps ending."""

from __future__ import annotations

import msgspec

from enbloc.units import SECOND


class Backoff(msgspec.Struct, frozen=True):
    """At once the first time, then longer each time. Nanoseconds."""

    first: int = 10 * SECOND
    most: int = 300 * SECOND
    good_run: int = 600 * SECOND
    """A container that ran this long has its past forgotten."""

    def after(self, planned: int, ran: int) -> tuple[int, int]:
        """How long to rest now, and what to plan for the next time, after a run of that length."""
        if not planned or ran >= self.good_run:
            return 0, self.first
        return planned, min(2 * planned, self.most)
