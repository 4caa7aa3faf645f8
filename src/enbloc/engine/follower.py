"""What the parts of the engine that keep facts between cycles have in common.

Every follower is called at the same four moments, in the order of `Parts.followers` (`cycle.py`). A part overrides the
moments that concern it. Actions change a part by methods of its own, not by these.
"""

from __future__ import annotations

from enbloc.engine.tables.tasks import GangState


class Follower:
    def cycle_begins(self, now_ns: int) -> None:
        """In `Engine.begin`, before gangs are woken and read: time has passed, objects have changed."""

    def gang_read(self, gang: GangState) -> None:
        """`Intake.read` reads a gang, since facts of it changed. Whether it is satisfied is known (G7)."""

    def gang_gone(self, gang: GangState) -> None:
        """Nothing is left of a gang: a gang that comes later under its name is another one."""

    def due(self) -> int | None:
        """When a cycle is needed though nothing happens, in nanoseconds; `None`: never."""
        return None
