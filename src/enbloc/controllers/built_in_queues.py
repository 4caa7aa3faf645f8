"""Creates the queues that always exist: `root`, the parent of all others, and `default`, for gangs without one (V4).

On a real cluster this controller creates them, and creates them again if they were deleted past admission. A simulation
starts with them, and a scenario may delete them.
"""

from __future__ import annotations

from enbloc.api import volcano
from enbloc.api.meta import Obj, name_of
from enbloc.api.volcano import BUILT_IN_QUEUES
from enbloc.api.writes import Create, Refused, WatchEvent, Write
from enbloc.controllers.retry import Retries
from enbloc.faults import Faults


class BuiltInQueues:
    """Creates missing queues; a refused one (the webhook is not up yet, say) is retried with growing delays."""

    kinds = frozenset({volcano.QUEUE})

    def __init__(self) -> None:
        self._missing: dict[str, Obj] = {name_of(queue): queue for queue in BUILT_IN_QUEUES}
        self._retries: Retries[str] = Retries()
        self.faults: Faults[str] = Faults()

    def observe(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        self._missing.pop(name, None)
        self._retries.forget(name)
        if event.type == "DELETED":
            self._missing.update((name, queue) for queue in BUILT_IN_QUEUES if name_of(queue) == name)

    def reconcile(self, now_ns: int) -> list[Write]:
        to_create = [queue for name, queue in self._missing.items() if not self._retries.waits(name, now_ns)]
        for queue in to_create:
            del self._missing[name_of(queue)]  # its event follows, or a refusal
        return [Create(queue) for queue in to_create]

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        if isinstance(write, Create) and error.reason != "AlreadyExists":
            name = name_of(write.obj)
            self._retries.refuse(name, now_ns)
            self._missing[name] = write.obj

    def due(self) -> int | None:
        return self._retries.next()
