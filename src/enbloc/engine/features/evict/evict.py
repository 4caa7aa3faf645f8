"""What preempt and reclaim have in common: gangs that did not fit get room that other pods are evicted from (P).

The whole is planned before any pod is evicted. Claims of lower priority are released first (R5); then a plan is made,
the room is claimed for the gang, and only then the victims are evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.domain_choices import domain_choices
from enbloc.engine.core.placement.request import PlacementRequest, replacements, request_of
from enbloc.engine.core.queue_loop import is_blocked
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.core.spine import attempt_unit
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, held_tasks
from enbloc.engine.core.why.diagnosis import RESERVED
from enbloc.engine.features.admission.awaited_pods import puts_off
from enbloc.engine.features.evict.evicted_gangs import EvictedGangs
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.lower_priority import LowerPriorityClaim, lower_priority_claims
from enbloc.engine.features.evict.nominations import Nominations
from enbloc.engine.features.evict.planner import Plan, Planner
from enbloc.engine.features.evict.rules import Rules
from enbloc.engine.features.groups.min_resources import min_resources, shortage
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind

DOMAINS_TRIED: Final = 32
"""At most 32 domains are planned for a gang whose pods must be together, those with the most room first."""

RulesOf = Callable[[Cycle, Sequence[GangState], Sequence[PlacementRequest]], Rules | None]
"""Which tasks may be evicted for gangs with these requests; `None`: none."""


def evict_for_all(
    cycle: Cycle, action: str, rules_of: RulesOf, have_victims: Callable[[GangState], bool], releases_claims: bool
) -> None:
    """Serves all gangs whose minima did not fit, in order. Those for which no plan was found before are tried only once
    pods were evicted, or claims released, for one before them. `have_victims` is a quick test: none without it has a
    plan."""
    fresh: list[EquivalenceClass] = []
    failed: list[EquivalenceClass] = []
    for one in (*cycle.queues.placement.equivalences(), *cycle.queues.best_effort.equivalences()):
        gang = _first_for_minima(one)
        if gang is not None:
            (failed if cycle.features.get(EvictionHistory).has_failed(action, gang) else fresh).append(one)
    if not fresh:
        return
    # By the shares that queues have now: evictions change these.
    queues, totals = cycle.state.queues, cycle.state.foreign_room.shared()
    put_off = puts_off(cycle)
    by_queue = {name: queues.order(queues.get(name), totals) for name in {one.queue for one in (*fresh, *failed)}}

    def in_line(equivalences: Sequence[EquivalenceClass]) -> list[tuple[tuple[object, Order], EquivalenceClass]]:
        heads = ((one, _first_for_minima(one)) for one in equivalences)
        found = [(one, gang) for one, gang in heads if gang is not None and not put_off(gang)]
        tried = [(one, gang) for one, gang in found if have_victims(gang) and not is_blocked(cycle, gang)]
        return [((by_queue[gang.spec.queue], cycle.order(gang)), one) for one, gang in tried]

    line = sorted(in_line(fresh), key=itemgetter(0))
    while line:
        turn, equivalence = line.pop(0)
        if _serve_class(cycle, equivalence, action, rules_of, releases_claims) and failed:
            behind = [entry for entry in in_line(failed) if entry[0] > turn]
            line, failed = sorted([*line, *behind], key=itemgetter(0)), []


def _first_for_minima(equivalence: EquivalenceClass) -> GangState | None:
    """The first gang of a class that waits for its minima in vain."""
    head = equivalence.head() if equivalence.unschedulable else None
    return head.gang if head is not None and head.order.band is Band.MINIMA else None


def _serve_class(
    cycle: Cycle, equivalence: EquivalenceClass, action: str, rules_of: RulesOf, releases_claims: bool
) -> bool:
    """Serves the gangs of a class in order; whether room was found, or is being freed, for one of them."""
    served = False
    for gang in equivalence.in_order():
        if is_blocked(cycle, gang):
            break  # one like it is before it in a FIFO queue (G8)
        with Turn(cycle, gang) as turn:
            if not _serve(cycle, gang, action, rules_of, releases_claims):
                break  # there is no plan for a gang like it either
        served = served or not turn.failed
    return served


def _serve(cycle: Cycle, gang: GangState, action: str, rules_of: RulesOf, releases_claims: bool) -> bool:
    """Whether room was found, or is being freed, for the gang."""
    unit = cycle.starting(gang)
    if not (unit and gang.may_claim) or cycle.features.get(EvictionHistory).has_failed(action, gang):
        return False
    claims = cycle.claims
    if any(claims.nominated(one) for one in unit):
        return False
    if any(cycle.obstacles.of_claim(one) for one in unit):
        return False  # it could not start even with the room (P3)
    requests = _requests(cycle, unit)
    for asked in (requests, _one_lost_member(requests)):
        if _try_evictions(cycle, unit, asked, action, rules_of, releases_claims):
            return True
    cycle.features.get(EvictionHistory).note_failed(action, gang)
    return False


def _one_lost_member(requests: Sequence[PlacementRequest]) -> Sequence[PlacementRequest]:
    """The first lost member alone, if more is asked for: each is replaced by itself, without a later wave (G7, D3)."""
    for request in requests:
        lost = request.needed if request.gang.satisfied else replacements(request.gang)
        if lost:
            alone = [PlacementRequest(request.gang, lost[:1])]
            return alone if alone != requests else ()
    return ()


def _try_evictions(
    cycle: Cycle,
    unit: Sequence[GangState],
    requests: Sequence[PlacementRequest],
    action: str,
    rules_of: RulesOf,
    releases_claims: bool,
) -> bool:
    """Releases claims of lower priority, or evicts pods, if that makes room for the requests; whether it does."""
    if not requests or any(task.never_preempts for one in requests for task in (*one.needed, *one.rest)):
        return False
    if any(gang.spec.never_preempts for gang in unit):
        return False
    lower: list[LowerPriorityClaim] = []
    if releases_claims:
        lower = lower_priority_claims(cycle, unit)
    if lower and _try_releasing_claims(cycle, unit, lower):
        return True
    rules = rules_of(cycle, unit, requests)
    if rules is None or not (rules.cells() or lower):
        return False
    constraints = _constraints(cycle, unit, lower)
    plan = _plan(cycle, unit, rules, requests, lower, constraints)
    if plan is None and not releases_claims and (reserved := _lower_reservations(cycle, unit)):
        lower, constraints = reserved, _constraints(cycle, unit, reserved)
        plan = _plan(cycle, unit, rules, requests, lower, constraints)
    lifts_holds = plan is None and any(gang.total_held for gang in unit)
    if lifts_holds:
        plan = _plan_without_holds(cycle, unit, rules, lower, constraints)
    if plan is None or not (plan.victims or _of_use(lower, plan)):
        return False  # none exists; or the gang fits as soon as terminating pods are gone
    for gang in unit if lifts_holds else ():
        cycle.claims.end(gang, ClaimKind.HOLD, "HoldReleased", "room is being freed for all of its pods")
    return _carry_out(cycle, unit, action, plan, lower)


def _constraints(cycle: Cycle, unit: Sequence[GangState], lower: Sequence[LowerPriorityClaim]) -> Constraints:
    """Nodes that are reserved by the `lower` ones are open; to each task those that are reserved for it, too (R5)."""
    exclude = frozenset(key for one in lower for key in one.keys)
    found, closing = cycle.constraints(unit[0], exclude, honor_run_times=False), cycle.claims.closing
    if found.closed is None or not any(closing.of(gang) for gang in unit):
        return found
    to_others = found.closed

    def closed(task: Task) -> list[tuple[str, Bools]]:
        own = closing.rows_for(task)
        return [(why, rows & ~own if why == RESERVED else rows) for why, rows in to_others(task)]

    return found._replace(closed=closed)


def _lower_reservations(cycle: Cycle, unit: Sequence[GangState]) -> list[LowerPriorityClaim]:
    """R5: a gang is not bound by reservations of lower priority, where it could not start otherwise."""
    lower = lower_priority_claims(cycle, unit)
    return [one for one in lower if one.kind is ClaimKind.RESERVE]


def _plan_without_holds(
    cycle: Cycle,
    unit: Sequence[GangState],
    rules: Rules,
    lower: Sequence[LowerPriorityClaim],
    constraints: Constraints,
) -> Plan | None:
    """A plan that places held pods anew: where they are held they may be in the way of their own group."""
    transaction = Transaction(cycle.state)
    for gang in unit:
        for task in held_tasks(gang):
            transaction.lift(task)
    plan = _plan(cycle, unit, rules, _requests(cycle, unit), lower, constraints)
    transaction.rollback()
    return plan


def _of_use(lower: Sequence[LowerPriorityClaim], plan: Plan) -> list[LowerPriorityClaim]:
    """Claims of lower priority on the nodes of a plan."""
    nodes = {node for _, node in plan.places}
    return [one for one in lower if one.nodes & nodes]


def _requests(cycle: Cycle, unit: Sequence[GangState]) -> list[PlacementRequest]:
    """Minima, with the later waves of a whole-job gang (D5), and replacements of lost members: surplus evicts no pod
    (P1)."""
    found = []
    for gang in unit:
        lost = replacements(gang)
        request = _with_later(cycle, gang)
        if gang.satisfied:
            found.append(PlacementRequest(gang, [*lost, *request.minimum]))
        elif gang.need.missing:
            found.append(PlacementRequest(gang, lost))
        else:
            found.append(request._replace(needed=[*lost, *request.needed]))
    return [request for request in found if request.needed or request.short]


def _with_later(cycle: Cycle, gang: GangState) -> PlacementRequest:
    """What a gang needs and has no room for: its minima, and the later waves that start with it (D5)."""
    request, waves = request_of(gang), cycle.features.get(Waves)
    return request._replace(needed=waves.without_room(gang, request.needed), later=waves.later_tasks(gang))


def _plan(
    cycle: Cycle,
    unit: Sequence[GangState],
    rules: Rules,
    requests: Sequence[PlacementRequest],
    lower: Sequence[LowerPriorityClaim],
    constraints: Constraints,
) -> Plan | None:
    def prepare(transaction: Transaction) -> None:
        for one in lower:
            one.lift(cycle.state, transaction)
        for gang in unit:
            later = [task for request in requests if request.gang is gang for task in request.later]
            cycle.take_claimed_room(transaction, gang, later)

    asked = _min_resources(cycle, unit)
    best: tuple[tuple[int, ...], Plan] | None = None
    for within in domain_choices(cycle.state, requests, constraints, DOMAINS_TRIED):  # T7: a domain is freed
        planner = Planner(cycle.state, cycle.placer, cycle.features.get(EvictionHistory), rules, within, cycle.units)
        plan = planner.find(requests, prepare, (lambda: _reaches(cycle, unit, asked)) if asked else None)
        if plan is not None and (best is None or planner.harm < best[0]):
            best = (planner.harm, plan)
    return best[1] if best is not None else None


def _min_resources(cycle: Cycle, unit: Sequence[GangState]) -> dict[int, int]:
    """What a Strict group that has not started must find free in all, by column (K7)."""
    return min_resources(cycle.state, cycle.units.of(unit[0])) if not unit[0].satisfied else {}


def _reaches(cycle: Cycle, unit: Sequence[GangState], asked: Mapping[int, int]) -> bool:
    """Whether free room, with what a plan frees, reaches minResources: no victim is evicted for those alone (K7)."""
    return shortage(cycle.state, cycle.units.of(unit[0]), asked) is None


def _try_releasing_claims(cycle: Cycle, unit: Sequence[GangState], lower: Sequence[LowerPriorityClaim]) -> bool:
    """R5: if the gang fits once claims of lower priority are released, releases them, no more than it takes, and places
    the gang; whether it does."""
    asked = _min_resources(cycle, unit)

    def fits(released: Sequence[LowerPriorityClaim]) -> bool:
        opened = frozenset(key for one in released if one.kind is ClaimKind.RESERVE for key in one.keys)
        constraints = cycle.constraints(unit[0], opened)
        transaction = Transaction(cycle.state)
        for one in released:
            one.lift(cycle.state, transaction)
        fine = _reaches(cycle, unit, asked)
        for gang in unit if fine else ():
            request = _with_later(cycle, gang)
            cycle.take_claimed_room(transaction, gang, request.later)
            if not gang.need.missing and attempt(cycle.placer, [request], transaction, constraints) is not None:
                fine = False
                break
        transaction.rollback()
        return fine and any(not gang.need.missing for gang in unit)

    if not fits(lower):
        return False
    chosen = list(lower)
    for one in reversed(lower):
        others = [other for other in chosen if other is not one]
        if len(chosen) > 1 and fits(others):
            chosen = others
    for one in chosen:
        one.release(cycle.claims, cycle.titles, unit[0])
    failure = attempt_unit(cycle, unit[0], cycle.constraints(unit[0]))
    assert failure is None, f"{unit[0]} was planned and not placed: {failure}; {unit[0].story}"
    return True


def _carry_out(
    cycle: Cycle, unit: Sequence[GangState], action: str, plan: Plan, lower: Sequence[LowerPriorityClaim]
) -> bool:
    """The room is claimed for all gangs before any pod leaves it (P3), or it cannot be recorded (R1)."""
    victims = sorted({task.gang.key for task in plan.victims})  # each gang may outlive the others
    evicted = [claim for gang in unit if (claim := cycle.features.get(EvictedGangs).claim(gang, victims)) is not None]
    claims = [claim for gang in unit for claim in _claims_to_make(cycle, gang, plan)]
    if not cycle.claims.records.fit([*claims, *evicted], ending={ClaimKind.RESERVE}):
        return False
    for one in _of_use(lower, plan):
        one.release(cycle.claims, cycle.titles, unit[0])
    for gang in unit:
        cycle.claims.end(gang, ClaimKind.RESERVE, "ReservationEnded", "room is being freed for it")
    for claim in claims:
        if claim.kind is ClaimKind.WAVE:
            cycle.features.get(Waves).make_being_freed(claim)
        else:
            cycle.features.get(Nominations).make(claim, _evicted_for(cycle, plan, claim.gang))
    for gang in unit:
        cycle.features.get(EvictedGangs).add(gang, victims)
    reason = "Preempted" if action == "preempt" else "Reclaimed"
    history = cycle.features.get(EvictionHistory)
    for task in sorted(plan.victims, key=lambda task: (task.gang.key, task.order)):
        assert task.status is TaskStatus.BOUND, f"{task} cannot be evicted; {task.gang.story}"
        history.evict(task, unit[0], reason, f"makes room for {cycle.titles.of(unit[0], task.namespace)}")
    return True


def _claims_to_make(cycle: Cycle, gang: GangState, plan: Plan) -> list[Claim]:
    """Room that is freed for a gang, and for its later waves."""
    places = [(task, node) for task, node in plan.places if task.gang is gang]
    later = [(task, node) for task, node in plan.places if task.gang is not gang and task.gang.key == gang.key]
    claims = [cycle.features.get(Waves).being_freed(gang, later, cycle.now_ns)] if later else []
    return [*claims, cycle.features.get(Nominations).claim(gang, places)] if places else claims


def _evicted_for(cycle: Cycle, plan: Plan, gang: GangState) -> str:
    gangs = cycle.titles.listed((task.gang for task in plan.victims), gang.key.namespace)
    count = len(plan.victims)
    if not count:
        return "room that terminating pods leave is for it"
    return f"{count} pod{'' if count == 1 else 's'} of {gangs} {'is' if count == 1 else 'are'} evicted for it"
