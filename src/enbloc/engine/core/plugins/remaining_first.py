"""srtf and srsf: gangs of equal priority with the least remaining time, or the least remaining service, come first.

Service is time multiplied by what the gang requests of the resource that counts: its extended resources (GPUs), cpu for
a gang that requests none. The expected run time of a gang that waits is all that remains of it; of one that runs, the
time that it has run is subtracted. A gang whose run time is unknown comes last.
"""

from __future__ import annotations

from enbloc.engine.core.tables.resources import CPU, Resources, total
from enbloc.engine.core.tables.tasks import GangState, TaskStatus

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
