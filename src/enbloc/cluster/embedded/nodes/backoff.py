"""The delay before a kubelet restarts a container that keeps exiting."""

from __future__ import annotations

import msgspec

from enbloc.units import SECOND


class Backoff(msgspec.Struct, frozen=True):
    """No delay the first time, then a longer one each time."""

    first_ns: int = 10 * SECOND
    max_ns: int = 300 * SECOND
    reset_after_ns: int = 600 * SECOND
    """A container that ran this long starts again without delay."""

    def after(self, planned_ns: int, ran_ns: int) -> tuple[int, int]:
        """The delay now, and the one to use next, after a run of `ran_ns`."""
        if not planned_ns or ran_ns >= self.reset_after_ns:
            return 0, self.first_ns
        return planned_ns, min(2 * planned_ns, self.max_ns)
