"""reserve: reserves nodes for starving gangs, on which resources become free until the gang can start (R1, R3).

No gang of higher order may have been scheduled in the same cycle; reservations of lower priority give way.
"""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.queue_loop import is_blocked
from enbloc.engine.core.tables.tasks import GangState, Task, pending_tasks
from enbloc.engine.events import EventKind
from enbloc.engine.features.awaited.awaited_pods import AwaitedPods
from enbloc.engine.features.backfill.expected_start import ExpectedStarts
from enbloc.engine.features.reserve.plan import ReservationPlan
from enbloc.engine.features.reserve.reservations import Reservations
from enbloc.engine.features.reserve.starvation import Starvation
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey


def run(cycle: Cycle) -> None:
    for unit in _starving(cycle):
        with Turn(cycle, unit[0]):
            if not _is_settled(cycle, unit):
                _serve(cycle, unit)
    cycle.features.get(ExpectedStarts).forecast()


def _serve(cycle: Cycle, unit: Sequence[GangState]) -> None:
    """Reserves nodes for gangs that start together, if no gang of higher order was scheduled."""
    if _higher_order_was_scheduled(cycle, unit[0]):
        cycle.state.events.add(EventKind.RESERVE_DEFERRED)
        return
    if cycle.features.get(AwaitedPods).above(unit[0].priority):
        return  # pods of a gang of higher priority are being created; a cycle follows when they exist
    lower = cycle.claims.closing.lower_than(min(gang.priority for gang in unit))
    plan = ReservationPlan(cycle, lower)
    places = plan.places(unit)
    claims = _claims_to_make(cycle, unit, places or [])
    if places is None or not cycle.claims.records.fit(claims):
        cycle.features.get(Starvation).note_failed(unit[0], _facts(cycle, unit))
        too_long = "no nodes are reserved for it: the record of its pods is too long for one object"
        _report(cycle, unit, _why_not(cycle, unit) if places is None else too_long)
        return
    _report(cycle, unit, "")
    _end_those_taken_over(cycle, plan, lower, unit[0])
    for claim in claims:
        cycle.features.get(Reservations).make(claim)


def _claims_to_make(cycle: Cycle, unit: Sequence[GangState], places: Sequence[tuple[Task, int]]) -> list[Claim]:
    """One for each gang of the unit that has tasks to place."""
    names, found = cycle.state.nodes.names, []
    for gang in unit:
        of_gang = [(task, names[row]) for task, row in places if task.gang.key == gang.key]
        if of_gang:
            found.append(cycle.features.get(Reservations).claim(gang, of_gang, cycle.now_ns))
    return found


def _why_not(cycle: Cycle, unit: Sequence[GangState]) -> str:
    """R6: what gangs say that need more nodes than may be reserved; empty: something else keeps them waiting."""
    everyone = frozenset(gang.key for gang in cycle.claims.closing.gangs())
    bounded, unbounded = ReservationPlan(cycle, everyone), ReservationPlan(cycle, everyone, percent=100)
    if bounded.places(unit) is not None or unbounded.places(unit) is None:
        return ""
    share = f"{bounded.limit} of {unbounded.limit} nodes, which may be reserved at once"
    return f"no nodes are reserved for it: it needs more than {share} (reservedNodePercent)"


def _report(cycle: Cycle, unit: Sequence[GangState], note: str) -> None:
    """Reports why no nodes are reserved for gangs; an empty note ends what was reported before."""
    for gang in unit:
        why = cycle.queues.why(gang)
        if cycle.claims.note(gang, ClaimKind.RESERVE, note) and note and why is not None:
            cycle.reporter.report(gang, why, of_gang=True)


def _end_those_taken_over(cycle: Cycle, plan: ReservationPlan, lower: frozenset[GangKey], by: GangState) -> None:
    """R3: reservations of lower priority that no longer fit beside a planned one end, before it is made. The first in
    order are kept."""
    reviewed: set[GangKey] = set()
    for gang in sorted((cycle.state.gangs[key] for key in lower), key=cycle.order.across_queues):
        mates = cycle.units.partners(gang)
        if gang.key in reviewed:
            continue
        reviewed |= {mate.key for mate in mates}
        if not plan.try_keeping(mates):
            for mate in mates:
                message = f"its nodes are reserved for {cycle.titles.of(by, mate.key.namespace)}, of higher priority"
                cycle.features.get(Reservations).end(mate, "ReservationEnded", message)


def _starving(cycle: Cycle) -> list[list[GangState]]:
    """Starving units whose attempt failed, the highest in order first; gangs that start together are one unit. Settled
    ones are among them if another is not: once nodes are taken over for that one they may be so no longer (R3)."""
    found: dict[int, list[GangState]] = {}
    for gang in cycle.features.get(Starvation).gangs.values():
        unit = cycle.starting(gang)
        equivalence = cycle.queues.equivalence_of(unit[0]) if unit else None
        if equivalence is not None and equivalence.unschedulable and cycle.queues.placement.holds(equivalence):
            found[id(unit[0])] = unit
    if all(_is_settled(cycle, unit) for unit in found.values()):
        return []
    units = [unit for unit in found.values() if _may_reserve(cycle, unit)]
    return sorted(units, key=lambda unit: cycle.order.across_queues(unit[0]))


def _is_settled(cycle: Cycle, unit: Sequence[GangState]) -> bool:
    """Whether nodes are reserved for all that the unit needs, or could not be and no fact that bears on it changed."""
    if cycle.features.get(Starvation).has_failed(unit[0], _facts(cycle, unit)):
        return True
    return all(cycle.features.get(Reservations).condition_ready(gang) for gang in unit)


def _may_reserve(cycle: Cycle, unit: Sequence[GangState]) -> bool:
    if not unit[0].may_claim or any(cycle.claims.nominated(gang) for gang in unit):
        return False  # victims are being evicted for it already
    return not is_blocked(cycle, unit[0]) and not any(cycle.obstacles.of_claim(gang) for gang in unit)


def _higher_order_was_scheduled(cycle: Cycle, gang: GangState) -> bool:
    """R3: whether a gang of higher order was scheduled in this cycle."""
    queues, totals = cycle.state.queues, cycle.state.foreign_room.shared()
    own, order = gang.spec.queue, cycle.order(gang)
    turn = queues.order(queues.get(own), totals)
    return any(
        other_order < order if queue == own else queues.order(queues.get(queue), totals) < turn
        for queue, other_order in cycle.served
    )


def _facts(cycle: Cycle, unit: Sequence[GangState]) -> object:
    """What decides whether nodes could be reserved for gangs: a failed plan is not retried while it is equal (G9)."""
    state = cycle.state
    later = cycle.features.get(Waves).later_tasks  # nodes are reserved for them, too (D5)
    tasks = [task for gang in unit for task in (*pending_tasks(gang), *later(gang))]
    limited = state.queues.guarantees or any(place.limits for gang in unit for place in state.queue_of(gang).ancestors)
    by_use = limited or any(map(state.stateful.applies, tasks)) or _depends_on_use(cycle, tasks)
    return (state.nodes.static_version, cycle.claims.closing.version, state.nodes.version if by_use else 0)


def _depends_on_use(cycle: Cycle, tasks: Sequence[Task]) -> bool:
    """Whether which nodes can be reserved depends on what is free: which are the nearest ones does, where tasks
    differ also which ones are left, and beside reservations what started since counts."""
    ranked = cycle.config.reserve.node_percent < 100 or len({task.cls.id for task in tasks}) > 1
    return ranked or any(True for _ in cycle.claims.every())
