"""The queues of the scheduler: gangs that wait for admission, for placement, and BestEffort gangs.

Each holds equivalence classes of gangs that are active (attempted in the next cycle) or unschedulable (asleep until an
event could help them, G9).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.diagnosis.reporter import Reporter
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.state.groups import Groups
from enbloc.engine.state.state import State
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.tasks import GangState

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
        """Called for every gang that was attempted in vain for the first time; set by intake."""

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
        for gang in fresh:
            if gang.equivalence is equivalence:
                self.after_attempt(gang)
        first = equivalence.first(REPORTED_OF_A_CLASS)
        reported = {gang.key: gang for gang in [*first, *fresh] if gang.equivalence is equivalence}
        for gang in reported.values():
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
        events, state = self._state.events, self._state
        # A queue that comes to use its guarantee keeps less of the free room from others (V4).
        of_queues = events.less_used or state.queues.guarantees
        rows = [state.nodes.rows[name] for name in sorted(events.rows) if name in state.nodes.rows]
        helped: dict[int, bool] = {}

        def helps_class(ident: int) -> bool:
            if ident not in helped:
                keys = state.candidates(self._class(ident)).keys()
                helped[ident] = any(keys[row] >= 0 for row in rows)
            return helped[ident]

        def could_help(equivalence: EquivalenceClass) -> bool:
            if events.everything or equivalence.volatile:
                return True
            if (events.volumes or events.claims) and any(map(self._volumes_help, equivalence.classes)):
                return True
            if of_queues and equivalence.diagnosis is not None and equivalence.diagnosis.of_queue:
                return True
            return bool(rows) and any(helps_class(ident) for ident in equivalence.classes)

        self.placement.wake(could_help)
        self.best_effort.wake(could_help)
        if events.everything or of_queues or self._evicts:
            self.admission.wake(lambda equivalence: True)

    def _volumes_help(self, ident: int) -> bool:
        """Whether the changes of volumes could help a class of tasks."""
        cls, events = self._class(ident), self._state.events
        if not cls.spec.volumes or events.volumes:
            return bool(cls.spec.volumes)
        return any((cls.namespace, name) in events.claims for name in self._state.volumes.claims_of(cls))

    def _class(self, ident: int) -> TaskClass:
        return self._state.classes.by_id[ident]
