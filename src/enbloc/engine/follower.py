"""What the parts of the engine that keep facts between cycles have in common.

The engine calls every follower at the same four moments. A part overrides the moments that concern it.
"""

from __future__ import annotations

from enbloc.engine.tables.tasks import GangState


class Follower:
    def cycle_begins(self, now_ns: int) -> None:
        """Before gangs are woken and read: time has passed, objects have changed."""

    def gang_read(self, gang: GangState) -> None:
        """The facts of a gang changed, or it was placed."""

    def gang_gone(self, gang: GangState) -> None:
        """Nothing is left of a gang: a gang that comes later under its name is another one."""

    def due(self) -> int | None:
        """When a cycle is needed though nothing happens, in nanoseconds; `None`: never."""
        return None
