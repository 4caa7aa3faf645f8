"""Partial allocations: what a gang got that could not get enough goes to no other gang within that cycle (A2).

Only gangs that ask for it keep a partial allocation, and only where `backfill` does not run. The room is taken by a
transaction that stays open while other gangs are placed; preempt, reclaim and reserve run after it was rolled back.
Such a gang is attempted whenever any other gang is, or its room would go to the next one in order; when it keeps
nothing any more, the gangs that it kept out are woken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.events import EventKind
from enbloc.engine.follower import Follower
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import Bools, Ints
from enbloc.engine.tables.tasks import GangState, Task
from enbloc.gangs.model import GangKey


class PartialAllocations(Follower):
    def __init__(self, state: State, backfills: bool) -> None:
        self._state = state
        self._backfills = backfills
        self._open: list[tuple[GangState, Transaction, Diagnosis]] = []
        """The allocations of the cycle that is under way."""
        self._gangs: dict[GangKey, GangState] = {}
        """Gangs that kept one when they were last attempted."""

    def applies_to(self, gang: GangState) -> bool:
        return gang.spec.keep_partial_allocation and not self._backfills

    def gangs(self) -> list[GangState]:
        """Those that kept one when they were last attempted."""
        return list(self._gangs.values())

    def cycle_begins(self, now_ns: int) -> None:
        """A gang that changed or went may keep nothing any more."""
        for key, gang in list(self._gangs.items()):
            if self._state.gangs.get(key) is not gang or key in self._state.dirty:
                self.release(gang)

    def wake_gangs(self, queue: SchedulingQueue) -> None:
        """If any gang is attempted, so are the gangs that kept a partial allocation."""
        if self._gangs and queue.active():
            queue.wake(self._keeps)

    def _keeps(self, equivalence: EquivalenceClass) -> bool:
        head = equivalence.head()
        return head is not None and head.gang.key in self._gangs

    def keep(self, gang: GangState, transaction: Transaction, why: Diagnosis) -> None:
        self._open.append((gang, transaction, why))
        self._gangs[gang.key] = gang

    def __bool__(self) -> bool:
        """Whether room is kept now."""
        return bool(self._open)

    def set_aside_from(self, task: Task) -> Iterator[tuple[GangState, Bools]]:
        """Gangs that keep room now, and the rows on which a task would fit if they did not."""
        nodes = self._state.nodes
        free = nodes.free[:, : nodes.count]
        left = ~_fits(task, free)
        for gang, transaction, _ in self._open:
            kept = np.zeros_like(free)
            for one in transaction.placed if gang is not task.gang else ():
                for column, amount in one.cls.request:
                    kept[column, nodes.rows[one.node]] += amount
            free = free + kept
            rows = left & _fits(task, free) & kept.any(axis=0)
            left &= ~rows
            if rows.any():
                yield gang, rows

    def suspend(self, gang: GangState) -> bool:
        """Gives back what the gang kept by the attempt that just failed, since it is attempted in another way. Whether
        it kept anything."""
        if not self._open or self._open[-1][0] is not gang:
            return False
        _, transaction, _ = self._open.pop()
        transaction.rollback()
        return True

    def release(self, gang: GangState) -> None:
        """It got enough, or waits for something else."""
        if self._gangs.pop(gang.key, None) is not None:
            self._state.events.add(EventKind.NODES_REOPENED)

    def roll_back(self) -> list[tuple[GangState, Diagnosis]]:
        """All gangs were attempted. Returns the gangs whose tasks wait again, and why."""
        kept, self._open = self._open, []
        for _, transaction, _ in reversed(kept):
            transaction.rollback()
        return [(gang, why) for gang, _, why in kept]


def _fits(task: Task, free: Ints) -> Bools:
    found = np.ones(free.shape[1], np.bool_)
    for column, amount in task.cls.request:
        found &= free[column] >= amount
    return found
