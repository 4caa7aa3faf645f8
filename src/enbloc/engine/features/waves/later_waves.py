"""Placing the waves of a whole-job gang (D3, D5): room for later ones is claimed as the first starts, and taken then;
members that an earlier wave lost are replaced one by one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from enbloc.engine.core.claims.placeholders import is_placeholder
from enbloc.engine.core.claims.room import take_reserved
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature, Tried
from enbloc.engine.core.placement.attempt import attempt, one_by_one
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import PlacementRequest, replacements, request_of
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.waves.later_room import LaterRoom
from enbloc.engine.features.waves.waves import Waves
from enbloc.listing import plural

Lifted = list[tuple[Task, int]]
"""Tasks of other gangs that left their room for the attempt, and where it is."""


class LaterWaves(Feature):
    def __init__(self, waves: Waves, later_room: LaterRoom) -> None:
        self._waves = waves
        self._later_room = later_room

    def later(self, gang: GangState) -> Sequence[Task]:
        return self._waves.later_tasks(gang) if gang.spec.later else ()

    def pre_bind(self, cycle: Cycle, gangs: Sequence[GangState], transaction: Transaction) -> Diagnosis | None:
        """Room is claimed for the later waves of every gang, or none of them starts (K1)."""
        later: dict[object, list[Task]] = {gang.key: [] for gang in gangs if gang.spec.later}
        if not later:
            return None
        for task in filter(is_placeholder, transaction.placed):
            later[task.gang.key].append(task)
        for gang in [gang for gang in gangs if gang.key in later]:
            failure = self._why_unrecordable(gang, later[gang.key])
            if failure is not None:
                transaction.rollback()
                return msgspec.structs.replace(failure, of_gangs={gang.key: failure}) if len(gangs) > 1 else failure
        for gang in [gang for gang in gangs if gang.key in later]:
            self._claim(cycle, gang, (), later[gang.key])
        return None

    def attempt(self, cycle: Cycle, gang: GangState, constraints: Constraints, *, dry: bool) -> Tried | None:
        """A gang that lost members of an earlier wave, or for the next wave of which room is claimed. One of a unit
        starts its next wave by itself."""
        if not gang.ran and not self._waves.any():
            return None
        has_room = bool(self._waves.of(gang))
        if not (has_room or gang.ran) or not gang.starts or not (has_room or replacements(gang)):
            return None
        unit = cycle.units.of(gang)
        if not unit.is_alone and not (has_room and gang.covered and cycle.obstacles.may_start(unit)):
            return None
        return Tried(None if dry else self._place(cycle, gang, constraints))

    def _place(self, cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
        lost = replacements(gang)
        failure = _replace_lost(cycle, gang, lost, constraints) if lost else None
        if gang.need.missing:
            return diagnosis.not_enough_members(gang)
        request = request_of(gang)
        if not lost or request.needed or request.short:
            return self._place_wave(cycle, gang, request, constraints)
        if failure is None:  # the present wave is placed; its Bindings are under way
            cycle.intake.queue(gang)
        return failure

    def _place_wave(
        self, cycle: Cycle, gang: GangState, request: PlacementRequest, constraints: Constraints
    ) -> Diagnosis | None:
        waves, freed = self._waves, cycle.freed([gang])
        lacks_room = bool(freed) and waves.lacks_room(gang)
        transaction = Transaction(cycle.state)
        lifted, taken = self._take_places(cycle, transaction, request)
        later = waves.later_tasks(gang)
        places: dict[str, str] = {}
        if lacks_room and not taken:  # pods that were evicted for it have not left yet
            taken = waves.of(gang)
            places = {task.uid: task.node for task in taken}
            waves.lift_places(transaction, gang)
            later = [*taken, *later]
        asked = [request._replace(later=later)]
        lifted += cycle.take_claimed_room(transaction, gang, later)
        failure = attempt(cycle.placer, asked, transaction, constraints)
        cycle.restore(transaction, lifted)
        if failure is not None and freed and not places:
            lifted, taken = self._take_places(cycle, transaction, request)  # the attempt has undone it
            failure = None if cycle.attempt_where_freed(asked, freed, transaction, constraints) else failure
            cycle.restore(transaction, lifted)
        return failure or self._bind(cycle, gang, transaction, taken, later, places)

    def _take_places(
        self, cycle: Cycle, transaction: Transaction, request: PlacementRequest
    ) -> tuple[Lifted, list[Task]]:
        """Pods of a later wave take the room that is claimed for them (D5). Room that is being freed for others of the
        gang does not count on those nodes. Also returns the placeholders whose places were taken."""
        lifted = cycle.claims.lift(transaction, request.gang) if self._waves.of(request.gang) else []
        return lifted, self._waves.take_places(cycle.placer, transaction, request)

    def _bind(
        self,
        cycle: Cycle,
        gang: GangState,
        transaction: Transaction,
        taken: Sequence[Task],
        later: Sequence[Task],
        places: dict[str, str],
    ) -> Diagnosis | None:
        """`places`: where the placeholders were that moved."""
        failure = self._why_unrecordable(gang, later)
        if failure is not None:
            transaction.rollback()
            return failure
        placed = [task for task in transaction.placed if task.gang is gang]
        self._claim(cycle, gang, taken, later)
        for task in later:
            if places.get(task.uid, task.node) != task.node:
                cycle.state.events.add_room_freed(places[task.uid])
        cycle.bind([gang], placed, commits=True)
        cycle.publish(transaction.planned)
        if not later:
            self._waves.keep(gang, taken, later, cycle.now_ns)
        cycle.intake.queue(gang)
        return None

    def _why_unrecordable(self, gang: GangState, later: Sequence[Task]) -> Diagnosis | None:
        """Why the room that was found for its later pods cannot be claimed."""
        if self._waves.check_record(gang, later):
            return None
        return diagnosis.problem(gang, f"the room of its {plural(len(later), 'later pod')} is too large to be recorded")

    def _claim(self, cycle: Cycle, gang: GangState, taken: Sequence[Task], later: Sequence[Task]) -> None:
        """The claim is written before any Binding relies on it. Others of its namespace may claim less then (S9)."""
        if later:
            self._waves.keep(gang, taken, later, cycle.now_ns)
            for other in self._later_room.outdated():
                cycle.intake.read(other)


def _replace_lost(cycle: Cycle, gang: GangState, lost: list[Task], constraints: Constraints) -> Diagnosis | None:
    """Members that an earlier, satisfied wave lost are replaced one by one (G7, D3), on reserved nodes first (R7)."""
    transaction = Transaction(cycle.state)
    reserved = cycle.claims.closing.of(gang)
    places = {task.uid: reserved[task.uid] for task in lost if task.uid in reserved}
    take_reserved(cycle.placer, transaction, gang, places, ())
    own = cycle.freed([gang])
    lifted = cycle.claims.lift(transaction, gang)
    waiting = [task for task in lost if task.status in WAITS]
    failure = one_by_one(cycle.placer, gang, transaction, waiting, constraints)
    cycle.restore(transaction, [*own, *lifted])  # room that is freed for it stays its own
    if transaction.placed:
        cycle.bind([gang], transaction.placed, commits=False)
    return failure
