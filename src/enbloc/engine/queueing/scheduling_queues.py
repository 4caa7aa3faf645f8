"""The queues of the scheduler: gangs that wait for admission, for placement, and BestEffort gangs.

Each holds equivalence classes of gangs that are active (attempted in the next cycle) or unschedulable (asleep until an
event could help them, G9).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.diagnosis.reporter import Reporter
from enbloc.engine.events import EventKind
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.queueing.wake_rules import Wakers, at_admission, at_placement
from enbloc.engine.state.groups import Groups
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import WAITS, GangState

REPORTED_OF_A_CLASS = 16
"""How many gangs of an equivalence class are reported each time that its diagnosis changes; the gangs behind them when
they come near the head."""


class SchedulingQueues:
    def __init__(self, state: State, groups: Groups, reporter: Reporter, *, evicts: bool) -> None:
        self._state = state
        self._groups = groups
        self._reporter = reporter
        self._evicts = evicts
        """Whether preempt or reclaim run: then a pod that was placed may be evicted for a gang at admission (M6)."""
        tickets = count(1)
        self.admission = SchedulingQueue(tickets)
        """Gangs that are not enqueued yet (M6)."""
        self.placement = SchedulingQueue(tickets)
        """Gangs that `allocate` serves."""
        self.best_effort = SchedulingQueue(tickets)
        """Gangs whose tasks request nothing: `backfill` serves them."""
        self.after_attempt: Callable[[GangState], None] = lambda gang: None
        """Called for every gang that was attempted in vain for the first time; set by the engine."""

    def all(self) -> tuple[SchedulingQueue, SchedulingQueue, SchedulingQueue]:
        return (self.admission, self.placement, self.best_effort)

    def needed_classes(self) -> list[int]:
        """The classes of tasks that gangs in the queues wait with."""
        queues = (self.placement, self.best_effort)
        return [ident for queue in queues for one in queue.equivalences() for ident in one.classes]

    def remove(self, gang: GangState) -> None:
        """The gang waits in no queue."""
        SchedulingQueue.take(gang)
        gang.equivalence = gang.why = None

    # ---- asleep and awake

    def mark_unschedulable(
        self, queue: SchedulingQueue, equivalence: EquivalenceClass, diagnosis: Diagnosis, of_gang: bool
    ) -> None:
        """The head of an equivalence class failed: the whole class is unschedulable, and says why."""
        fresh = queue.sleep(equivalence, diagnosis)
        equivalence.wakes_on = self._wakes_on(queue, equivalence)
        for gang in fresh:
            if gang.equivalence is equivalence:
                self.after_attempt(gang)
        first = equivalence.first(REPORTED_OF_A_CLASS)
        reported = {gang.key: gang for gang in [*first, *fresh] if gang.equivalence is equivalence}
        for gang in reported.values():
            gang.note("waits:", diagnosis.reason)
            self._reporter.report(gang, diagnosis, of_gang)
            for mate in self._groups.mates(gang) if of_gang and not gang.satisfied else ():
                if mate is not gang and not mate.satisfied:
                    mate.why = diagnosis
                    self._reporter.report(mate, diagnosis, of_gang)

    def wake_all(self) -> None:
        for queue in self.all():
            queue.wake(lambda equivalence: True)

    def wake(self) -> None:
        """Activates the equivalence classes that the events since the last cycle could help (G9)."""
        wakers = Wakers(self._state)
        for queue in self.all():
            queue.wake(wakers.could_help)

    def _wakes_on(self, queue: SchedulingQueue, equivalence: EquivalenceClass) -> frozenset[EventKind]:
        """The events that can help a class that has just failed."""
        if queue is self.admission:
            return at_admission(self._state, self._evicts)
        head = None if equivalence.monotone else equivalence.head()
        gangs = self._groups.mates(head[1]) if head is not None else ()
        waiting = (task for gang in gangs for task in gang.tasks.values() if task.status in WAITS)
        return at_placement(self._state, equivalence, waiting)
