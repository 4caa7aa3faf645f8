"""EASY backfill: later gangs of a queue are scheduled if they do not delay the first one that waits (R8).

The shadow time of the first gang is a forecast from known run times, recomputed whenever a task was placed or released:
when the gang would fit, and where. A task that ends by then may use any free resources; any other only what the gang
leaves at that time. Only the shadow time is published, and other queues are not restricted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import numpy as np

from enbloc.engine.claims.reservations import ENDLESS
from enbloc.engine.follower import Follower
from enbloc.engine.forecast.run_times import end_of
from enbloc.engine.placement.attempt import Placer, attempt
from enbloc.engine.placement.constraints import Constraints, Shadow
from enbloc.engine.placement.request import request_of
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import Ints
from enbloc.engine.tables.tasks import GangState, Task
from enbloc.gangs.model import GangKey

Amounts = dict[int, int]


class Start(NamedTuple):
    """When a gang could start, and what it leaves then on the rows it would use."""

    shadow_time_ns: int
    left: dict[int, Amounts]
    """Row → column → what is free there at the shadow time beside the gang (Slurm: extra nodes)."""


class EasyBackfill(Follower):
    """The forecast start of the first gang of each queue."""

    def __init__(
        self, state: State, placer: Placer, take_claimed_room: Callable[[Transaction, GangState], object]
    ) -> None:
        self._state = state
        self._placer = placer
        self._take_claimed_room = take_claimed_room
        self._starts: dict[GangKey, tuple[object, Start]] = {}
        self.heads: dict[str, tuple[GangKey, Start]] = {}
        """Queue → its first gang, and when that could start."""

    def cycle_begins(self, now_ns: int) -> None:
        """The forecasts of the last cycle no longer hold."""
        self._starts = {}

    def shadow(self, head: GangState, constraints: Constraints, now_ns: int, position: object) -> Shadow:
        """What gangs behind `head` may not use; a forecast is reused while `position` is equal: nothing was placed."""
        known = self._starts.get(head.key)
        if known is None or known[0] != position:
            known = self._starts[head.key] = (position, self._forecast(head, constraints, now_ns))
        start = known[1]
        self.heads[head.spec.queue] = (head.key, start)

        def over(task: Task) -> AbstractContextManager[None]:
            run_time_ns = task.run_time_ns
            if start.shadow_time_ns == ENDLESS or (
                run_time_ns is not None and now_ns + run_time_ns <= start.shadow_time_ns
            ):
                return nullcontext()
            return self._taken(start)

        return over

    @contextmanager
    def _taken(self, start: Start) -> Iterator[None]:
        """Reduces the rows of the first gang to what it leaves there, within the context."""
        nodes = self._state.nodes
        taken = []
        for row, left in start.left.items():
            over = tuple((c, int(nodes.free[c, row]) - max(room, 0)) for c, room in left.items())
            request = tuple((column, amount) for column, amount in over if amount > 0)
            if request:
                nodes.allocate(row, request)
                taken.append((row, request))
        try:
            yield
        finally:
            for row, request in taken:
                nodes.release(row, request)

    # ---- the forecast

    def _forecast(self, gang: GangState, constraints: Constraints, now_ns: int) -> Start:
        """The earliest time at which the gang's minima fit if nothing else is placed."""
        ends, rows, amounts = self._ends(now_ns)
        instants = np.unique(ends)
        low, high = 0, len(instants)
        found: Start | None = None
        while low < high:
            middle = (low + high) // 2
            gone = ends <= instants[middle]
            start = self._fits_at(gang, constraints, int(instants[middle]), rows[gone], amounts[:, gone])
            if start is None:
                low = middle + 1
            else:
                found, high = start, middle
        return found or Start(ENDLESS, {})

    def _ends(self, now_ns: int) -> tuple[Ints, Ints, Ints]:
        """Of all tasks with a known end: when, on which row, and what they release, column by task."""
        nodes, stateful = self._state.nodes, self._state.stateful
        found: list[tuple[int, int, Task]] = []
        for name, row in nodes.rows.items():
            for task in stateful.assigned_to(name):
                end = end_of(task, now_ns)
                if end != ENDLESS:
                    found.append((end, row, task))
        amounts = np.zeros((len(nodes.free), len(found)), np.int64)
        for number, (_, _, task) in enumerate(found):
            for column, amount in task.cls.request:
                amounts[column, number] = amount
        ends = np.array([end for end, _, _ in found], np.int64)
        return ends, np.array([row for _, row, _ in found], np.int64), amounts

    def _fits_at(
        self, gang: GangState, constraints: Constraints, at_ns: int, rows: Ints, amounts: Ints
    ) -> Start | None:
        """The start of the gang if it fits once `amounts` are released on `rows`; `None`: it does not."""
        nodes = self._state.nodes
        more = np.zeros_like(nodes.free)
        for column in range(len(more)):
            np.add.at(more[column], rows, amounts[column])
        self._change_free(more, 1)
        transaction = Transaction(self._state)
        request = request_of(gang)
        request = request._replace(short=min(request.short, len(request.rest)))  # lost members may not exist again (G7)
        try:
            self._take_claimed_room(transaction, gang)
            if attempt(self._placer, [request], transaction, constraints) is not None:
                return None
            used = {nodes.rows[task.node] for task in transaction.placed}
            left = {row: dict(enumerate(nodes.free[:, row].tolist())) for row in used}
            return Start(at_ns, left)
        finally:
            transaction.rollback()
            self._change_free(more, -1)

    def _change_free(self, more: Ints, by: int) -> None:
        nodes = self._state.nodes
        rows = np.flatnonzero(more.any(axis=0))
        nodes.free[:, rows] += by * more[:, rows]
        nodes.clock += 1
        nodes.stamp[rows] = nodes.clock
