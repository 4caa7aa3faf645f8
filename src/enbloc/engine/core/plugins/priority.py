"""Higher priority first (G8)."""

from __future__ import annotations

from enbloc.engine.core.tables.tasks import GangState


class Priority:
    def gang_order(self, gang: GangState) -> tuple[int, ...]:
        return (-gang.priority,)
