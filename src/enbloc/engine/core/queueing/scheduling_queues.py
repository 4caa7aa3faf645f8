"""The queues of the scheduler: gangs that wait for admission, for placement, and BestEffort gangs.

Each holds equivalence classes of gangs that are active (attempted in the next cycle) or unschedulable (asleep until an
event could help them, G9). All that makes a gang wait comes here: an attempt that failed (`mark_unschedulable`), an
obstacle before any attempt (`hold_back`), a gang before it in a FIFO queue (`hold_behind`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.feature import Feature, Features
from enbloc.engine.core.ordering import Order
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass, QueueEntries, SchedulingQueue, Signature
from enbloc.engine.core.queueing.wake_rules import Wakers, at_admission, at_placement
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.reporter import Reporter, is_reportable
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey

REPORTED_OF_A_CLASS = 16
"""How many gangs of an equivalence class are reported each time that its diagnosis changes; the gangs behind them when
they come near the head."""


_OF_ATTEMPTS = frozenset(
    {
        PendingReason.UNSCHEDULABLE,
        PendingReason.QUEUE_FULL,
        PendingReason.GROUP_NOT_READY,
        PendingReason.BLOCKED_BY_FIFO,
    }
)
"""Reasons of attempts, which are out of date once a gang is not attempted any more."""


class SchedulingQueues(Feature):
    def __init__(self, state: State, units: Units, reporter: Reporter, features: Features, *, evicts: bool) -> None:
        self._state = state
        self._units = units
        self._reporter = reporter
        self._features = features
        self._evicts = evicts
        """Whether preempt or reclaim run: then a pod that was placed may be evicted for a gang at admission (M6)."""
        self._entries = QueueEntries()
        self._why: dict[GangKey, Diagnosis] = {}
        """Why gangs wait to which no diagnosis of an equivalence class applies."""
        self.admission = SchedulingQueue(self._entries)
        """Gangs that are not enqueued yet (M6)."""
        self.placement = SchedulingQueue(self._entries)
        """Gangs that `allocate` serves."""
        self.best_effort = SchedulingQueue(self._entries)
        """Gangs whose tasks request nothing: `backfill` serves them."""

    def all(self) -> tuple[SchedulingQueue, SchedulingQueue, SchedulingQueue]:
        return (self.admission, self.placement, self.best_effort)

    def needed_classes(self) -> list[int]:
        """The classes of tasks that gangs in the queues wait with."""
        queues = (self.placement, self.best_effort)
        return [ident for queue in queues for one in queue.equivalences() for ident in one.classes]

    def equivalence_of(self, gang: GangState) -> EquivalenceClass | None:
        """Its equivalence class, if the gang is queued."""
        entry = self._entries.of(gang)
        return entry.equivalence if entry is not None else None

    def why(self, gang: GangState) -> Diagnosis | None:
        """Why the gang waits; `None`: it was not attempted yet."""
        equivalence, own = self.equivalence_of(gang), self._why.get(gang.key)
        if equivalence is not None and (equivalence.unschedulable or own is None):
            return equivalence.diagnosis.of(gang) if equivalence.diagnosis is not None else None
        return own

    # ---- in and out

    def put(self, queue: SchedulingQueue, gang: GangState, order: Order, signature: Signature) -> EquivalenceClass:
        """Queues a gang in one of the queues, and in no other."""
        self._why.pop(gang.key, None)
        return queue.put(gang, gang.spec.queue, order, signature)

    def put_unit(
        self, unit: Sequence[GangState], others: Sequence[GangState], order: Order, signature: Signature
    ) -> None:
        """Queues the first of gangs that start together, for all of them, and for `others` that wait for them."""
        first, *mates = [*unit, *others]
        equivalence = self.put(self.placement, first, order, signature)
        if equivalence.unschedulable and equivalence.diagnosis is not None:
            self._why.update((mate.key, equivalence.diagnosis.of(mate)) for mate in mates)

    def remove(self, gang: GangState) -> None:
        """The gang is in no queue."""
        self._entries.remove(gang)
        self._why.pop(gang.key, None)

    def gang_gone(self, gang: GangState) -> None:
        self.remove(gang)

    # ---- gangs that wait

    def _wait(self, gang: GangState, why: Diagnosis, of_gang: bool) -> None:
        """Here a gang begins to wait, whatever the cause: it says why (G10)."""
        gang.note("waits:", why.reason)
        self._reporter.report(gang, why, of_gang)

    def hold_back(self, gang: GangState, why: Diagnosis) -> None:
        """An obstacle keeps the gang from being attempted: it is in no queue."""
        self._entries.remove(gang)
        self._why[gang.key] = why
        self._wait(gang, why, of_gang=True)

    def hold_behind(self, gang: GangState, behind: Callable[[GangState], Diagnosis]) -> None:
        """Another gang of its FIFO queue comes first: it stays queued, and is not attempted. So do gangs that it starts
        together with, unless something else keeps them waiting. `behind`: what each of them says."""
        waiting = [gang]
        for mate in self._units.mates(gang) if gang.status.enqueued and not gang.satisfied else ():
            known = self.why(mate)
            if mate is gang or mate.satisfied or not is_reportable(mate):
                continue
            if known is None or known.reason in _OF_ATTEMPTS:
                waiting.append(mate)
        for one in waiting:
            why = self._why[one.key] = behind(one)
            self._wait(one, why, of_gang=True)

    def share_diagnosis(self, gang: GangState, equivalence: EquivalenceClass, of_gang: bool) -> bool:
        """Whether the class of a gang that was just queued is unschedulable: an equal gang failed, and nothing has
        changed since. The gang waits with it."""
        if not equivalence.unschedulable or equivalence.diagnosis is None:
            return False
        self._wait(gang, equivalence.diagnosis.of(gang), of_gang)
        return True

    def mark_unschedulable(
        self, queue: SchedulingQueue, equivalence: EquivalenceClass, diagnosis: Diagnosis, of_gang: bool
    ) -> None:
        """The head of an equivalence class failed: the whole class is unschedulable, and says why."""
        kept_back = self._kept_back(equivalence) if diagnosis.of_queue and queue is not self.admission else None
        fresh = queue.sleep(equivalence, diagnosis, self._helpers(queue, equivalence), kept_back)
        equivalence.wakes_on = self._wakes_on(queue, equivalence)
        for gang in fresh:
            self._features.attempted(gang)
        for gang in {gang.key: gang for gang in [*equivalence.first(REPORTED_OF_A_CLASS), *fresh]}.values():
            self._wait(gang, diagnosis.of(gang), of_gang)
            alone = gang.satisfied or queue is self.admission  # gangs of a group are enqueued one by one
            for mate in self._units.mates(gang) if of_gang and not alone else ():
                if mate is not gang and not mate.satisfied and mate.status.enqueued and is_reportable(mate):
                    self._why[mate.key] = diagnosis.of(mate)
                    self._wait(mate, diagnosis.of(mate), of_gang)

    def diagnose_anew(self, equivalence: EquivalenceClass, diagnosis: Diagnosis) -> None:
        """A class that stays unschedulable has other numbers by now. Nothing is reported."""
        equivalence.diagnosis = diagnosis
        head = equivalence.head()
        for mate in self._units.mates(head.gang) if head is not None and diagnosis.of_gangs else ():
            if mate.key in self._why:
                self._why[mate.key] = diagnosis.of(mate)

    # ---- awake

    def wake_all(self) -> None:
        for queue in self.all():
            queue.wake(lambda equivalence: True)

    def wake(self) -> None:
        """Activates the equivalence classes that the events since the last cycle could help (G9)."""
        wakers = Wakers(self._state)
        for queue in self.all():
            queue.wake(wakers.could_help)
            for equivalence in queue.helped():
                self.wake_in_turn(queue, equivalence)

    def wake_in_turn(self, queue: SchedulingQueue, equivalence: EquivalenceClass) -> bool:
        """Whether pods that were placed since an unschedulable class failed could help it: before its turn in the same
        cycle too (G8, G9). Then it is active."""
        if EventKind.POD_PLACED not in self._state.events.kinds:
            return False
        may_use_more = equivalence.kept_back is not None and equivalence.kept_back != self._kept_back(equivalence)
        if not may_use_more and self._helpers(queue, equivalence) == equivalence.helpers:
            return False
        queue.activate(equivalence)
        return not equivalence.unschedulable

    def _wakes_on(self, queue: SchedulingQueue, equivalence: EquivalenceClass) -> frozenset[EventKind]:
        """The events that can help a class that has just failed."""
        if queue is self.admission:
            return at_admission(self._state, self._evicts)
        gangs, waiting = self._gangs(equivalence), list(self._waiting(equivalence))
        together = any(gang.is_constrained or gang.spec.waves or gang.spec.tree is not None for gang in gangs)
        return at_placement(self._state, equivalence, waiting, together=together)

    def _helpers(self, queue: SchedulingQueue, equivalence: EquivalenceClass) -> int | None:
        return self._state.stateful.helpers(self._waiting(equivalence)) if queue is not self.admission else None

    def _kept_back(self, equivalence: EquivalenceClass) -> bytes | None:
        """What its queue has to leave free for other queues now; `None`: none has a guarantee."""
        queues = self._state.queues
        if not queues.guarantees:
            return None
        return queues.guaranteed_to_others(queues.get(equivalence.queue)).tobytes()

    def _gangs(self, equivalence: EquivalenceClass) -> list[GangState]:
        """The first gang of a class, with those that it starts with."""
        head = equivalence.head()
        return self._units.mates(head.gang) if head is not None else []

    def _waiting(self, equivalence: EquivalenceClass) -> Iterator[Task]:
        """The tasks that its first gang waits with, unless it is monotone: then no filter over other pods counts."""
        gangs = [] if equivalence.monotone else self._gangs(equivalence)
        return (task for gang in gangs for task in gang.tasks.values() if task.status in WAITS)
