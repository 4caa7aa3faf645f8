"""sla: gangs by their deadline, the earliest first; gangs without one come last (C).

A gang's deadline is its creation plus its own `sla-waiting-time`, or the plugin's default argument. What happens when
it has passed is left to `queueing.deadlines`.
"""

from __future__ import annotations

from enbloc.engine.core.tables.tasks import GangState


class Sla:
    def __init__(self, default_ns: int | None) -> None:
        self._default_ns = default_ns

    def deadline_ns(self, gang: GangState) -> int | None:
        waiting_ns = gang.sla_waiting_ns
        if waiting_ns is None:
            waiting_ns = self._default_ns
        return None if waiting_ns is None else gang.spec.created_ns + waiting_ns

    def gang_order(self, gang: GangState) -> tuple[int, ...]:
        deadline_ns = self.deadline_ns(gang)
        return (1, 0) if deadline_ns is None else (0, deadline_ns)
