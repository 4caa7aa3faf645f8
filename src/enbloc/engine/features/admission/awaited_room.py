"""Room for the minima of gangs that were just enqueued, while gangs of lower priority are attempted (G8).

The pods of a Job are created once it is enqueued: they do not exist in the cycle that enqueues it. Until they do, for a
bounded time, its minima are placed from its templates wherever gangs of lower priority are attempted. So no pod is
started and preempted in one instant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from enbloc.engine.core.claims.placeholders import make_placeholders
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Request
from enbloc.engine.core.tables.tasks import GangState

if TYPE_CHECKING:
    from enbloc.engine.features.admission.awaited_pods import AwaitedPods


class AwaitedRoom:
    """Placed in a transaction that is kept while gangs of one priority are attempted, and rolled back after that."""

    def __init__(self, cycle: Cycle, awaited: AwaitedPods) -> None:
        self._cycle = cycle
        self._awaited = awaited
        self._transaction = Transaction(cycle.state)
        self._above: list[GangState] = []
        self._uses: Counter[tuple[str, Request]] = Counter()
        """By queue and request: the number of pods that room is left to."""

    def take_for(self, gang: GangState) -> bool:
        """Takes the room that this gang must leave to others; whether there is any."""
        above = self._awaited.above(gang.priority)
        if above != self._above:
            self._transaction.rollback()
            self._above = above
            for one in above:
                self._place(one)
            self._uses = Counter((task.gang.spec.queue, task.cls.request) for task in self._transaction.placed)
        return bool(self._transaction.checkpoint)

    def _place(self, gang: GangState) -> None:
        """Places its minima, if they fit; if not it will evict, or wait itself."""
        state = self._cycle.state
        tasks = [
            task
            for role, template in gang.spec.first_wave.items()
            for task in make_placeholders(state, gang, role, template, 0, template.count)
        ]
        before = self._transaction.checkpoint
        request, constraints = PlacementRequest(gang, tasks), self._cycle.constraints(gang)
        if attempt(self._cycle.placer, [request], self._transaction, constraints, keep=True) is not None:
            self._transaction.rollback(before)

    def is_left_by(self, gang: GangState) -> bool:
        """Whether this gang must leave room to others. Takes none."""
        is_left = self.take_for(gang)
        self.release()
        return is_left

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """While it lasts, queues do not use the room that is left to awaited pods: it is no part of their share."""
        self._count(-1)
        try:
            yield
        finally:
            self._count(1)

    def _count(self, by: int) -> None:
        queues = self._cycle.state.queues
        for (queue, request), count in self._uses.items():
            queues.allocate(queues.get(queue), request, by * count)

    def release(self) -> None:
        self._transaction.rollback()
        self._above = []
