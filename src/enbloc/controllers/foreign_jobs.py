"""Jobs that name a scheduler that is not ours: they are left alone, and an Event says so once (N5)."""

from __future__ import annotations

from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, uid_of
from enbloc.api.writes import EmitEvent

REASON = "OtherScheduler"


class ForeignJobs:
    """`names`: the scheduler names that are ours; `None`: all are."""

    def __init__(self, names: frozenset[str] | None) -> None:
        self._names = names
        self._known: set[str] = set()
        self._events: list[EmitEvent] = []

    def leaves_alone(self, job: Obj, scheduler_name: str) -> bool:
        """Whether a job is left to another scheduler's controllers."""
        if self._names is None or scheduler_name in self._names:
            return False
        if uid_of(job) not in self._known:
            self._known.add(uid_of(job))
            ours = ", ".join(sorted(self._names))
            text = f"spec.schedulerName is {scheduler_name}, ours are {ours}: enbloc creates no pods of it"
            self._events.append(EmitEvent(ref_of(job), uid_of(job), "Normal", REASON, text))
        return True

    def forget(self, uid: str) -> None:
        self._known.discard(uid)

    def take_events(self) -> list[EmitEvent]:
        events, self._events = self._events, []
        return events
