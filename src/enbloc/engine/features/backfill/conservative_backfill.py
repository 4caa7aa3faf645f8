"""Conservative backfill: a gang is started early only if that delays none of the gangs before it in its queue (R8).

In the order of the queue each gang that waits is given the earliest time and the rows at which it fits beside what runs
and what was planned before it; all is planned anew in every cycle. A gang starts now if it fits for its whole run time
beside the plans of the gangs before it. A run time that is unknown is endless. Other queues are not restricted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import numpy as np

from enbloc.engine.core.ordering import Order
from enbloc.engine.core.placement.attempt import Placer, attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import request_of
from enbloc.engine.core.run_times import ENDLESS
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Ints, total
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.features.backfill.easy_backfill import releases_of
from enbloc.engine.features.backfill.expected_start import Start
from enbloc.engine.features.backfill.free_profile import FreeProfile
from enbloc.gangs.model import GangKey

PLANNED: Final = 100
"""At most 100 gangs of a queue are planned; those behind them do not start before one of these has."""
SLOTS: Final = 16
"""At most 16 times are tried for a gang; one that fits at none of them is not planned."""


class PlannedQueue:
    """The plans for one queue in one cycle."""

    def __init__(self, backfill: ConservativeBackfill, now_ns: int) -> None:
        state = backfill.state
        nodes = state.nodes
        self._backfill = backfill
        self._now_ns = now_ns
        self._profile = FreeProfile(nodes.free[:, : nodes.count], releases_of(state, now_ns), now_ns)
        self._to_plan: list[tuple[Order, GangState]] = []
        self._known: set[GangKey] = set()
        self.starts: dict[GangKey, Start] = {}

    @property
    def is_full(self) -> bool:
        return len(self.starts) >= PLANNED

    @property
    def is_in_the_way(self) -> bool:
        """Whether a plan keeps room from the gangs behind it."""
        return any(start.shadow_time_ns != ENDLESS for start in self.starts.values())

    def add(self, waiting: Sequence[tuple[Order, GangState]]) -> None:
        """Gangs that wait, and are planned when their turn comes."""
        for order, gang in waiting:
            if gang.key not in self._known:
                self._known.add(gang.key)
                heapq.heappush(self._to_plan, (order, gang))

    def plan_before(self, order: Order | None, constraints_of: Callable[[GangState], Constraints]) -> None:
        """Plans the gangs before this order; `None`: all."""
        while self._to_plan and not self.is_full and (order is None or self._to_plan[0][0] < order):
            gang = heapq.heappop(self._to_plan)[1]
            self.starts[gang.key] = self._plan(gang, constraints_of(gang))

    def shadow(self, run_time_ns: int | None) -> AbstractContextManager[None]:
        """While the context lasts, only what stays free for the whole run time of a task, beside the plans that were
        made so far for this queue, is free."""
        kept = self._profile.free_now() - self._profile.between(self._now_ns, run_time_ns)
        nodes = self._backfill.state.nodes
        # What tasks of this attempt have taken meanwhile stays taken.
        return self._with_free(nodes.free[:, : nodes.count] - kept)

    def note_bound(self, gang: GangState, before: Ints) -> None:
        """A gang of this queue or of another was bound; `before`: what was free then."""
        nodes = self._backfill.state.nodes
        taken = before - nodes.free[:, : nodes.count]
        self._profile.take(self._now_ns, gang.run_time_ns, taken)

    def _plan(self, gang: GangState, constraints: Constraints) -> Start:
        asked = self._asked(gang)
        slots = self._profile.slots(asked, gang.run_time_ns)
        for _, start_ns in zip(range(SLOTS), slots, strict=False):
            if start_ns == self._now_ns:
                continue  # it was tried
            with self._with_free(self._profile.between(start_ns, gang.run_time_ns)):
                used = self._backfill.room_for(gang, constraints)
            if used is not None:
                self._profile.take(start_ns, gang.run_time_ns, used)
                rows = np.flatnonzero(used.any(axis=0)).tolist()
                return Start(start_ns, {row: dict(enumerate(used[:, row].tolist())) for row in rows})
        return Start(ENDLESS, {})

    def _asked(self, gang: GangState) -> Ints:
        asked = np.zeros(len(self._backfill.state.nodes.free), np.int64)
        for column, amount in total(task.cls.request for task in request_of(gang).minimum).items():
            asked[column] = amount
        return asked

    @contextmanager
    def _with_free(self, free: Ints) -> Iterator[None]:
        """Only the caller's rows change: both ways the nodes' version shows it."""
        nodes = self._backfill.state.nodes
        more = free - nodes.free[:, : nodes.count]
        rows = np.flatnonzero(more.any(axis=0))
        _change(self._backfill.state, rows, more, 1)
        try:
            yield
        finally:
            _change(self._backfill.state, rows, more, -1)


class ConservativeBackfill:
    def __init__(
        self, state: State, placer: Placer, take_claimed_room: Callable[[Transaction, GangState], object]
    ) -> None:
        self.state = state
        self._placer = placer
        self._take_claimed_room = take_claimed_room

    def room_for(self, gang: GangState, constraints: Constraints) -> Ints | None:
        """What the minima of a gang would use, column by row; `None`: they do not fit."""
        nodes = self.state.nodes
        transaction = Transaction(self.state)
        request = request_of(gang)
        request = request._replace(short=min(request.short, len(request.rest)))  # lost members may not exist again (G7)
        try:
            self._take_claimed_room(transaction, gang)
            if attempt(self._placer, [request], transaction, constraints, keep=True) is not None:
                return None
            used = np.zeros_like(nodes.free[:, : nodes.count])
            for task in transaction.placed:
                for column, amount in task.cls.request:
                    used[column, nodes.rows[task.node]] += amount
            return used
        finally:
            transaction.rollback()


def heads(queues: Mapping[str, PlannedQueue]) -> dict[str, tuple[GangKey, Start]]:
    """All plans, by queue and number, as they are published."""
    return {
        f"{name}/{number}": plan for name, queue in queues.items() for number, plan in enumerate(queue.starts.items())
    }


def _change(state: State, rows: Ints, more: Ints, by: int) -> None:
    nodes = state.nodes
    nodes.free[:, rows] += by * more[:, rows]
    nodes.version += 1
    nodes.stamp[rows] = nodes.version
