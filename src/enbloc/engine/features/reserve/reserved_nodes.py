"""R5: a gang that fits only on nodes reserved for gangs of lower priority starts there; those are reserved others."""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.queueing.scheduling_queue import SchedulingQueue
from enbloc.engine.core.spine import attempt_unit
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.reserve.plan import ReservationPlan
from enbloc.engine.features.reserve.reservations import Reservations
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey


class ReservedNodes(Feature):
    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        """Its minima, or replacements of lost members, not surplus. Nodes of the lowest priority are tried first."""
        closing = cycle.claims.closing
        if not closing or failure.waits_for_gangs or gang.need.ready or gang.need.missing:
            return False
        unit = cycle.starting(gang)
        below = min((one.priority for one in unit), default=0)
        for level in sorted({one.priority for one in closing.gangs() if unit and one.priority < below}):
            lower = closing.lower_than(level + 1)
            there = cycle.constraints(gang, lower)._replace(shadow=constraints.shadow)
            if attempt_unit(cycle, gang, there) is None:
                _mend(cycle, lower, unit)
                return True
        return False


def _mend(cycle: Cycle, lower: frozenset[GangKey], by: Sequence[GangState]) -> None:
    """Slots on nodes that were taken are given up. Their tasks are reserved for elsewhere at once, or the reservation
    ends."""
    taken = _nodes_of(cycle, by)
    gangs = [cycle.state.gangs[key] for key in lower if key in cycle.state.gangs]
    for gang in sorted(gangs, key=cycle.order.across_queues):
        claim = cycle.claims.of(gang, ClaimKind.RESERVE)
        if claim is None or taken.isdisjoint(claim.nodes) or _move(cycle, claim, taken):
            continue
        for mate in cycle.units.partners(gang):
            title = cycle.titles.of(by[0], mate.key.namespace)
            message = f"its nodes were used by {title}, of higher priority"
            cycle.features.get(Reservations).end(mate, "ReservationEnded", message)


def _nodes_of(cycle: Cycle, by: Sequence[GangState]) -> set[str]:
    """Where these gangs start, and have room for later waves."""
    started = {task.node for gang in by for task in gang.tasks.values() if task.status is TaskStatus.ASSUMED}
    return started | {task.node for gang in by for task in cycle.features.get(Waves).of(gang)}


def _move(cycle: Cycle, claim: Claim, taken: set[str]) -> bool:
    """Whether nodes other than the taken ones were reserved for the tasks there."""
    gang, reservations = claim.gang, cycle.features.get(Reservations)
    if gang.is_constrained:
        return False  # elsewhere may be another domain (T7)
    places = [(slot.task, slot.node) for slot in claim.slots.values() if slot.task is not None]
    kept = [(task, node) for task, node in places if node not in taken]
    plan = ReservationPlan(cycle, frozenset({gang.key}), with_started=False)
    for task, node in kept:
        plan.keep(task, node)
    found = plan.places_of(gang, [task for task, node in places if node in taken])
    if found is None:
        return False
    names = cycle.state.nodes.names
    moved = [*kept, *((task, names[row]) for task, row in found)]
    return reservations.make(reservations.claim(gang, moved, claim.clock_ns))
