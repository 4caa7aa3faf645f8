"""What gangs add to their queues besides their tasks: demand of pods to come, enqueued resources (M6, V4).

Kept gang by gang, so that it can be subtracted again. How much a gang adds is decided in `engine/queueing/demand.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from enbloc.engine.core.tables.queues import Queue, QueueTree
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.events import ClusterEvents, EventKind
from enbloc.gangs.model import GangKey


class Demand(NamedTuple):
    queue: Queue
    to_come: Mapping[int, int]
    """By column: what its pods will request, as long as none of them exists."""
    enqueued: Mapping[int, int]
    """By column: what it was enqueued with, until it is attempted."""


class GangDemand:
    def __init__(self, queues: QueueTree, events: ClusterEvents) -> None:
        self._queues = queues
        self._events = events
        self._of: dict[GangKey, Demand] = {}

    def set(self, gang: GangState, to_come: Mapping[int, int], enqueued: Mapping[int, int]) -> None:
        known = self._of.get(gang.key)
        if known is not None:
            if known.queue.name == gang.spec.queue and known.to_come == to_come and to_come:
                self._set_enqueued(gang, known, enqueued)
                return
            if (known.to_come, known.enqueued, known.queue.name) == (to_come, enqueued, gang.spec.queue):
                return
            self.remove(gang)
        if to_come or enqueued:
            queue = self._queues.get(gang.spec.queue)
            self._queues.add_demand(queue, to_come)
            self._queues.add_enqueued(queue, enqueued)
            self._of[gang.key] = Demand(queue, to_come, enqueued)

    def _set_enqueued(self, gang: GangState, known: Demand, enqueued: Mapping[int, int]) -> None:
        """The demand stays, and with it what queues deserve."""
        if known.enqueued == enqueued:
            return
        self._queues.remove_enqueued(known.queue, known.enqueued)
        if known.enqueued:
            self._events.add(EventKind.QUEUE_USES_LESS)
        self._queues.add_enqueued(known.queue, enqueued)
        self._of[gang.key] = known._replace(enqueued=enqueued)

    def remove(self, gang: GangState) -> None:
        known = self._of.pop(gang.key, None)
        if known is None:
            return
        self._queues.remove_demand(known.queue, known.to_come)
        self._queues.remove_enqueued(known.queue, known.enqueued)
        if known.enqueued:
            self._events.add(EventKind.QUEUE_USES_LESS)

    def enqueued(self, gang: GangState) -> Mapping[int, int]:
        """What the gang was enqueued with, while that counts; empty otherwise."""
        known = self._of.get(gang.key)
        return known.enqueued if known is not None else {}

    def __iter__(self) -> Iterator[Demand]:
        return iter(self._of.values())
