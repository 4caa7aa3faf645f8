"""Reading gangs whose facts changed: each is put into the queue where it waits, or says why it is in none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from enbloc.api.reasons import PendingReason
from enbloc.config import Config
from enbloc.engine.core.commits import Commits
from enbloc.engine.core.faults import GangsFailed
from enbloc.engine.core.feature import Feature, Features
from enbloc.engine.core.obstacles import Obstacles
from enbloc.engine.core.ordering import Band, GangOrder
from enbloc.engine.core.placement.request import is_surplus, replacements, request_of
from enbloc.engine.core.queueing import signature
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.core.queueing.scheduling_queues import SchedulingQueues
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Unit, Units
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.reporter import Reporter, is_pending, is_reportable
from enbloc.engine.decisions import Decision, Enqueue
from enbloc.gangs.model import GangKey

_HELD = frozenset({PendingReason.UNSUPPORTED_CONSTRAINT, PendingReason.INTERNAL_ERROR})
"""Reasons of gangs that are not in line: no gang waits for their pods (G8, N1, S8)."""


class Intake(Feature):
    def __init__(
        self,
        config: Config,
        state: State,
        units: Units,
        order: GangOrder,
        queues: SchedulingQueues,
        obstacles: Obstacles,
        commits: Commits,
        reporter: Reporter,
        features: Features,
        decide: Callable[[Decision], None],
    ) -> None:
        self._backfills = any(action.name == "backfill" for action in config.actions)
        self._state = state
        self._units = units
        self._order = order
        self._queues = queues
        self._obstacles = obstacles
        self._commits = commits
        self._reporter = reporter
        self._features = features
        self._decide = decide
        self._now_ns = 0
        self._units_to_read: dict[int, Unit] = {}

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns

    # ---- reading gangs whose facts changed

    def read_all(self) -> None:
        """Reads all gangs whose facts changed, then the units they are in. Units are settled again: gangs may have
        been touched since the cycle began, by features or by a time-out."""
        for complaint in self._units.settle(self._state.dirty.values()):
            self._decide(complaint)
        dirty = list(self._state.dirty.values())
        self._state.dirty.clear()
        failed: list[tuple[GangKey, Exception]] = []
        for gang in dirty:
            if gang.key in self._state.gangs:
                try:
                    self.read(gang)
                except Exception as failure:
                    self._read_in_vain(gang, failure, failed)
        self._read_units()
        if failed:
            raise GangsFailed(failed)

    def _read_in_vain(self, gang: GangState, failure: Exception, failed: list[tuple[GangKey, Exception]]) -> None:
        """S8: of a gang that is held already nothing but that is said."""
        if not gang.spec.fault:
            failed.append((gang.key, failure))
            return
        with suppress(Exception):
            self._queues.hold_back(gang, diagnosis.internal_error(gang))

    def _read_units(self) -> None:
        while self._units_to_read:  # gangs that are enqueued meanwhile have their unit read once more
            units, self._units_to_read = self._units_to_read, {}
            for unit in units.values():
                self._read_unit(unit)

    def read(self, gang: GangState) -> None:
        """Puts a gang into the queue where it belongs, or reports why it is in none."""
        unit = self._units.of(gang)
        self._commits.update(gang)
        self._features.gang_read(gang)
        is_over = gang.status.finished or (unit.is_alone and self._obstacles.lacks_nothing(gang))
        if is_over and not gang.total_pending:
            self._take_out(gang)
        elif not gang.satisfied and not unit.is_alone:
            self._units_to_read[id(unit)] = unit
        else:
            why = self._obstacles.of(gang)
            if why is None and not gang.status.enqueued:
                self._ask_for_admission(gang)
            else:
                self._queue_unless(why, gang)

    def _take_out(self, gang: GangState) -> None:
        """Nothing waits of a gang, and nothing is said of it."""
        self._queues.remove(gang)
        self._reporter.withdraw(gang)

    def _queue_unless(self, obstacle: Diagnosis | None, gang: GangState) -> None:
        if obstacle is None:
            self.queue(gang)
            return
        if obstacle.reason in _HELD:
            self._features.held_back(gang)
        self._queues.hold_back(gang, obstacle)

    def _read_unit(self, unit: Unit) -> None:
        """Queues the first gang in order for the whole unit, unless one of its gangs cannot start (K7)."""
        obstacles, starting = self._obstacles.of_each(unit), unit.to_start(self._order)
        self._features.unit_judged(unit, obstacles)
        if obstacles or unit.unsatisfied:
            self._read_incomplete(unit, obstacles)
        elif starting:
            self._read_complete(unit, starting)
        else:
            for gang in unit.gangs:
                self.queue(gang)

    def _read_complete(self, unit: Unit, starting: Sequence[GangState]) -> None:
        """The first in order is queued for all that start. Surplus of a gang that was satisfied before needs no other,
        surplus of others waits until all have started."""
        others = [gang for gang in unit.gangs if not gang.starts]
        for gang in others:
            if gang.satisfied:
                self.queue(gang)
        behind = [gang for gang in others if not gang.satisfied]
        for gang in (*behind, *starting):
            self._stand_back(gang)
        self._queue_unit(starting, [gang for gang in behind if is_reportable(gang)], unit.holds)

    def _stand_back(self, gang: GangState) -> None:
        """It is in no queue itself; what it says stays while it waits."""
        self._queues.remove(gang)
        if not is_reportable(gang):
            self._reporter.withdraw(gang)

    def _read_incomplete(self, unit: Unit, obstacles: Mapping[GangKey, Diagnosis]) -> None:
        """A gang of the unit cannot start, or one that it names is not satisfied: complete ones may be attempted apart
        (K6)."""
        why_not, apart = self._obstacles.why_not_started(unit), self._features.attempted_apart(unit)
        for gang in unit.gangs:
            own = obstacles.get(gang.key)
            if own is None and not is_reportable(gang):
                self._take_out(gang)
            elif own is not None and own.not_enqueued:
                self._ask_for_admission(gang)
            elif not gang.satisfied and gang not in apart[:1]:
                self._queue_unless(why_not[gang.key], gang)
        if apart:
            self._queue_unit(apart, [], "apart")

    # ---- queueing

    def queue(self, gang: GangState) -> None:
        """Queues a gang for what it still needs, or removes it from its queue if it needs nothing."""
        waiting = pending_tasks(gang)
        why = self._why_held_back(gang, waiting)
        if why is not None:
            self._queues.hold_back(gang, why)
        elif waiting:
            self._queue_tasks(gang, waiting)
        else:
            self._queues.remove(gang)
            if gang.need.ready or gang.satisfied:
                self._reporter.withdraw(gang)

    def _why_held_back(self, gang: GangState, waiting: Sequence[Task]) -> Diagnosis | None:
        if waiting:  # K9: of those that waited some were placed, and too few are left
            return self._obstacles.of(gang) if gang.only_waiting else None
        if is_pending(gang) and any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values()):
            return diagnosis.timed_out(gang)  # with a minimum of 0 no member is missing
        return None

    def _queue_tasks(self, gang: GangState, waiting: Sequence[Task]) -> None:
        request = request_of(gang, waiting)
        for_surplus = is_surplus(gang, request)
        if for_surplus and gang.spec.more_waves:  # D4: room that a later wave needs is not for surplus
            self._take_out(gang)
            return
        rest = request.rest if request.short else ()
        wanted = waiting if for_surplus else [*replacements(gang), *request.needed, *rest]
        if not wanted:
            self._queues.remove(gang)
            return
        best_effort = self._backfills and all(task.cls.best_effort for task in wanted)
        queue = self._queues.best_effort if best_effort else self._queues.placement
        whatever = wanted if gang.spec.tree is None else waiting  # T0: of any choice
        alike = signature.of_gang(self._state, request, wanted, whatever, self._features)
        band = Band.SURPLUS if for_surplus else Band.MINIMA
        equivalence = self._queues.put(queue, gang, self._order(gang, band), alike)
        if self._queues.share_diagnosis(gang, equivalence, of_gang=not for_surplus):
            self._features.attempted(gang)

    def _queue_unit(self, gangs: Sequence[GangState], others: Sequence[GangState], holds: bool | str) -> None:
        """`others`: gangs of the unit that need nothing; what waits of them waits for the rest. `holds`: whether, or
        how, pods are held."""
        alike = signature.of_unit(self._state, gangs, holds, self._features)
        self._queues.put_unit(gangs, others, self._order(gangs[0]), alike)
        self._features.unit_read(gangs)

    def queue_units_anew(self) -> bool:
        """Gangs that start together stand where the first of them does, which may be another one now. Whether any
        does."""
        moved = False
        for unit in self._units.several():
            gangs = unit.to_start(self._order)
            queued = [gang for gang in gangs if self._queues.equivalence_of(gang) is not None]
            if queued and queued[0] is not gangs[0] and self._obstacles.may_start(unit):
                self._state.touch(gangs[0])
                moved = True
        return moved

    def requeue_if_unlike(self, gang: GangState) -> EquivalenceClass | None:
        """If other pods' placements have come to matter to a gang that shares an equivalence class (the others may
        carry other labels), queues it by itself and returns its own class."""
        equivalence = self._queues.equivalence_of(gang)
        if equivalence is None or not equivalence.shared:
            return None
        stateful, classes = self._state.stateful, self._state.classes.by_id
        if not stateful.has_terms and all(classes[ident].plain for ident in equivalence.classes):
            return None
        if not any(stateful.applies(task) for task in pending_tasks(gang)):
            return None
        self.queue(gang)
        own = self._queues.equivalence_of(gang)
        return own if own is not equivalence else None

    # ---- admission

    def _ask_for_admission(self, gang: GangState) -> None:
        started = gang.total_occupied > 0  # it was enqueued once, though its object may be a new one (V5)
        if started or not self._features.gates(gang):
            self._let_in(gang)
            return
        alike = signature.at_admission(self._state, gang, self._features.sign_at_admission(gang))
        equivalence = self._queues.put(self._queues.admission, gang, self._order(gang), alike)
        self._queues.share_diagnosis(gang, equivalence, of_gang=True)

    def enqueue(self, gang: GangState, reason: str = "Enqueued") -> None:
        """M6: from now on its pods are created and attempted."""
        self._let_in(gang, reason)
        self._read_units()

    def _let_in(self, gang: GangState, reason: str = "Enqueued") -> None:
        self._queues.remove(gang)
        self._reporter.withdraw(gang)
        gang.assume(enqueued=True, enqueued_at_ns=self._now_ns, enqueued_by=reason)
        self._decide(Enqueue(gang.key, reason))
        self._features.enqueued(gang)
        if gang.need.missing:
            self._state.touch(gang)  # its pods are created now: it is read when they exist
        else:
            self.read(gang)
