"""Partial allocations: what a gang got that could not get enough goes to no other gang within that cycle (A2).

Only gangs that ask for it keep a partial allocation, and only where `backfill` does not run: elsewhere this feature is
absent. A transaction that stays open (`post_filter`) while other gangs are placed takes the room. Preempt, reclaim and
reserve run once it is rolled back (`serving_ends`). Such a gang is attempted whenever any other gang is, or its room
would go to the next one in order (`serving_begins`). When it keeps nothing any more, the gangs that it kept out are
woken.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature, Unsignable
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import request_of
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, Head, SchedulingQueue
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why.diagnosis import SET_ASIDE, Diagnosis
from enbloc.engine.core.why.reporter import next_to_be_attempted
from enbloc.engine.events import EventKind
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.model import GangKey


class PartialAllocations(Feature):
    def __init__(self, state: State) -> None:
        self._state = state
        self._open: list[tuple[GangState, Transaction, Diagnosis]] = []
        """The allocations of the cycle that is under way."""
        self._gangs: dict[GangKey, GangState] = {}
        """Gangs that kept one when they were last attempted."""

    def sign(self, gang: GangState) -> Hashable:
        return Unsignable() if gang.spec.keep_partial_allocation else None

    def cycle_begins(self, now_ns: int) -> None:
        """A gang that changed or went may keep nothing any more."""
        for key, gang in list(self._gangs.items()):
            if self._state.gangs.get(key) is not gang or key in self._state.dirty:
                self.release(gang)

    def serving_begins(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """If any gang is attempted, so are the gangs that kept a partial allocation."""
        if self._gangs and queue.active():
            queue.wake(self._keeps)

    def _keeps(self, equivalence: EquivalenceClass) -> bool:
        head = equivalence.head()
        return head is not None and head.gang.key in self._gangs

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        """It keeps what it can get. Asked last: no other way to start it was found."""
        if gang.spec.keep_partial_allocation and gang.starts and not gang.need.missing:
            if cycle.units.of(gang).is_alone:
                self._open.append((gang, _kept(cycle, gang, constraints), failure))
                self._gangs[gang.key] = gang
        return False

    def pre_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints
    ) -> Constraints:
        """Nodes on which it would fit but for what others keep say so."""
        if not self._open:
            return constraints
        before = constraints.closed

        def closed(task: Task) -> list[tuple[str, Bools]]:
            found = list(before(task)) if before is not None else []
            for other, rows in self._set_aside_from(task):
                found.append((f"{SET_ASIDE}{cycle.titles.of(other, gang.key.namespace)}", rows))
            return found

        return constraints._replace(closed=closed)

    def _set_aside_from(self, task: Task) -> Iterator[tuple[GangState, Bools]]:
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

    def says_later(self, gang: GangState) -> bool:
        return any(one is gang for one, _, _ in self._open)

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        if any(one.reason.startswith(SET_ASIDE) for one in why.reasons):
            for other in self._gangs.values():
                yield other, "cannot get enough, and keeps what it gets (A2)"

    def reserve(self, gangs: Sequence[GangState]) -> None:
        for gang in gangs:
            self.release(gang)

    def release(self, gang: GangState) -> None:
        """It got enough, or waits for something else."""
        if self._gangs.pop(gang.key, None) is not None:
            self._state.events.add(EventKind.NODES_REOPENED)

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        """All gangs were attempted."""
        for gang, why in self._roll_back():
            cycle.reporter.report(gang, why, of_gang=True)

    @contextmanager
    def during_turn(self, cycle: Cycle, head: Head) -> Iterator[None]:
        """What gangs before this one keep to the end of a cycle counts as used (decision 0018)."""
        across_queues, mates = cycle.order.across_queues, {mate.key for mate in cycle.units.mates(head.gang)}
        for other in sorted(self._gangs.values(), key=across_queues):
            if other.key not in mates and across_queues(other) < across_queues(head.gang)._replace(order=head.order):
                self._open.append((other, _kept(cycle, other, cycle.constraints(other)), next_to_be_attempted(other)))
        try:
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> list[tuple[GangState, Diagnosis]]:
        """The tasks of the gangs wait again. Returns the gangs, and why each of them does."""
        kept, self._open = self._open, []
        for _, transaction, _ in reversed(kept):
            transaction.rollback()
        return [(gang, why) for gang, _, why in kept]


def _kept(cycle: Cycle, gang: GangState, constraints: Constraints) -> Transaction:
    """With what a gang can get of its minima."""
    transaction = Transaction(cycle.state)
    lifted = cycle.take_claimed_room(transaction, gang, cycle.features.get(Waves).later_tasks(gang))
    attempt(cycle.placer, [request_of(gang)], transaction, constraints, keep=True)
    cycle.restore(transaction, lifted)
    return transaction


def _fits(task: Task, free: Ints) -> Bools:
    found = np.ones(free.shape[1], np.bool_)
    for column, amount in task.cls.request:
        found &= free[column] >= amount
    return found
