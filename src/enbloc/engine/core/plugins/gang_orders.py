"""The built-in plugins that order gangs: `priority`, `sla`, `sjf`, `srtf` and `srsf` (G8, C)."""

from __future__ import annotations

from enbloc.engine.core.tables.resources import CPU, Resources, total
from enbloc.engine.core.tables.tasks import GangState, TaskStatus


class Priority:
    """Higher priority first."""

    def gang_order(self, gang: GangState) -> tuple[int, ...]:
        return (-gang.priority,)


_UNKNOWN_NS = 2**63


class ShortestFirst:
    """sjf: by the expected run time; unknown ones last."""

    def gang_order(self, gang: GangState) -> tuple[int, ...]:
        run_time_ns = gang.run_time_ns
        return (_UNKNOWN_NS if run_time_ns is None else run_time_ns,)


class Sla:
    """By deadline, the earliest first: creation plus its own `sla-waiting-time`, or the default. Gangs without one come
    last. What happens once it has passed is left to `features.admission.deadlines`."""

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


_UNKNOWN = 2**127


def remaining_ns(gang: GangState, now_ns: int) -> int | None:
    """The expected run time that is left of a gang that runs; `None`: unknown."""
    run_time_ns = gang.run_time_ns
    if run_time_ns is None:
        return None
    starts = [task.since_ns for task in gang.tasks.values() if task.status is TaskStatus.BOUND]
    began_ns = min((start for start in starts if start is not None), default=now_ns)
    return max(0, run_time_ns - (now_ns - began_ns))


class RemainingFirst:
    """srtf and srsf: the least remaining time, or the least remaining service, first. Service is time multiplied by
    what the gang requests of its extended resources (GPUs), or of cpu. Of a gang that waits all of it remains."""

    def __init__(self, *, by_service: bool) -> None:
        self._by_service = by_service
        self.resources = Resources()
        """The names of the columns; the engine sets its own."""

    def gang_order(self, gang: GangState) -> tuple[int, ...]:
        return self._key(gang, gang.run_time_ns)

    def running_order(self, gang: GangState, now_ns: int) -> tuple[int, ...]:
        return self._key(gang, remaining_ns(gang, now_ns))

    def _key(self, gang: GangState, left_ns: int | None) -> tuple[int, ...]:
        if left_ns is None:
            return (_UNKNOWN,)
        return (left_ns * self._units(gang),) if self._by_service else (left_ns,)

    def _units(self, gang: GangState) -> int:
        """What the tasks of a gang request of the resource that its service is counted in."""
        requested = total(task.cls.request for task in gang.tasks.values())
        names = self.resources.names
        return max((amount for column, amount in requested.items() if "/" in names[column]), default=0) or (
            requested.get(CPU, 0)
        )
