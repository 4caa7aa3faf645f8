"""EASY: the first gang that waits in a queue has a reservation in time; later ones pass if they do not delay it (R8).

The reservation is a forecast from known run times, made anew whenever somebody was placed or left: at what instant the
gang would fit, and where. Whoever ends by then may use any room; whoever does not finds only what the gang leaves.
Nothing of it is written down but the instant, and nothing is kept from those of other queues.
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

    at: int
    left: dict[int, Amounts]
    """Row → column → what is still free there at that instant, when the gang has taken its part."""


class EasyBackfill(Follower):
    """The starts of those who are first, as of now."""

    def __init__(
        self, state: State, placer: Placer, take_own_places: Callable[[Transaction, GangState], object]
    ) -> None:
        self._state = state
        self._placer = placer
        self._take_own_places = take_own_places
        self._starts: dict[GangKey, tuple[object, Start]] = {}
        self.heads: dict[str, tuple[GangKey, Start]] = {}
        """Queue → who is first in it, and when it could start."""

    def cycle_begins(self, now_ns: int) -> None:
        """The forecasts of the last cycle no longer hold."""
        self._starts = {}

    def shadow(self, head: GangState, constraints: Constraints, now: int, at: object) -> Shadow:
        """What others may not use because of the first one; `at` is the same as long as nobody was placed."""
        known = self._starts.get(head.key)
        if known is None or known[0] != at:
            known = self._starts[head.key] = (at, self._foresee(head, constraints, now))
        start = known[1]
        self.heads[head.spec.queue] = (head.key, start)

        def over(task: Task) -> AbstractContextManager[None]:
            run_time = task.run_time
            if start.at == ENDLESS or (run_time is not None and now + run_time <= start.at):
                return nullcontext()
            return self._taken(start)

        return over

    @contextmanager
    def _taken(self, start: Start) -> Iterator[None]:
        """While it lasts, the rows of the first one have no more room than it leaves there."""
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

    def _foresee(self, gang: GangState, constraints: Constraints, now: int) -> Start:
        """The first instant at which the gang's minima fit, if nobody new comes."""
        ends, rows, amounts = self._ends(now)
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

    def _ends(self, now: int) -> tuple[Ints, Ints, Ints]:
        """Of all tasks whose end is known: when, on which row, and what they give back, column by task."""
        nodes, stateful = self._state.nodes, self._state.stateful
        found: list[tuple[int, int, Task]] = []
        for name, row in nodes.rows.items():
            for task in stateful.assigned_to(name):
                end = end_of(task, now)
                if end != ENDLESS:
                    found.append((end, row, task))
        amounts = np.zeros((len(nodes.free), len(found)), np.int64)
        for number, (_, _, task) in enumerate(found):
            for column, amount in task.cls.request:
                amounts[column, number] = amount
        ends = np.array([end for end, _, _ in found], np.int64)
        return ends, np.array([row for _, row, _ in found], np.int64), amounts

    def _fits_at(self, gang: GangState, constraints: Constraints, at: int, rows: Ints, amounts: Ints) -> Start | None:
        """Whether it fits when these have given their room back."""
        nodes = self._state.nodes
        more = np.zeros_like(nodes.free)
        for column in range(len(more)):
            np.add.at(more[column], rows, amounts[column])
        self._give(more, 1)
        transaction = Transaction(self._state)
        request = request_of(gang)
        request = request._replace(short=min(request.short, len(request.rest)))  # lost members may not exist again (G7)
        try:
            self._take_own_places(transaction, gang)
            if attempt(self._placer, [request], transaction, constraints) is not None:
                return None
            used = {nodes.rows[task.node] for task in transaction.placed}
            left = {row: dict(enumerate(nodes.free[:, row].tolist())) for row in used}
            return Start(at, left)
        finally:
            transaction.rollback()
            self._give(more, -1)

    def _give(self, more: Ints, by: int) -> None:
        nodes = self._state.nodes
        rows = np.flatnonzero(more.any(axis=0))
        nodes.free[:, rows] += by * more[:, rows]
        nodes.clock += 1
        nodes.stamp[rows] = nodes.clock
