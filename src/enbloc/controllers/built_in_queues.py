"""The queues that are always there: `root`, above all others, and `default`, for whoever names none (V4).

On a real cluster somebody has to make them, and to make them again if they were taken away past admission. A simulation
starts with them, and lets a story take them away.
"""

from __future__ import annotations

from enbloc.api import volcano
from enbloc.api.meta import Obj, name_of
from enbloc.api.volcano import BUILT_IN_QUEUES
from enbloc.api.writes import Create, Refused, WatchEvent, Write
from enbloc.controllers.retry import Retries


class BuiltInQueues:
    """Makes those that are missing. What is refused (the webhook is not up, say) is tried again, ever less often."""

    kinds = frozenset({volcano.QUEUE})

    def __init__(self) -> None:
        self._missing: dict[str, Obj] = {name_of(queue): queue for queue in BUILT_IN_QUEUES}
        self._retries: Retries[str] = Retries()

    def observe(self, event: WatchEvent) -> None:
        name = name_of(event.obj)
        self._missing.pop(name, None)
        self._retries.forget(name)
        if event.type == "DELETED":
            self._missing.update((name, queue) for queue in BUILT_IN_QUEUES if name_of(queue) == name)

    def reconcile(self, now: int) -> list[Write]:
        wanted = [queue for name, queue in self._missing.items() if not self._retries.waits(name, now)]
        for queue in wanted:
            del self._missing[name_of(queue)]  # its event comes, or a refusal
        return [Create(queue) for queue in wanted]

    def refused(self, write: Write, error: Refused, now: int) -> None:
        if isinstance(write, Create) and error.reason != "AlreadyExists":
            name = name_of(write.obj)
            self._retries.refuse(name, now)
            self._missing[name] = write.obj

    def due(self) -> int | None:
        return self._retries.next()
