"""What preempt and reclaim do: gangs that did not fit get room that other pods are evicted from.

The whole is planned before any pod is evicted. Claims of lower priority are released first; then a plan is made, the
room is claimed for the gang, and only then the victims are evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import itemgetter
from typing import Final, NamedTuple

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.domain_choices import domain_choices
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.queue_loop import is_blocked
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, held_tasks
from enbloc.engine.core.why.diagnosis import RESERVED
from enbloc.engine.features.awaited.awaited_pods import puts_off
from enbloc.engine.features.evict import preempt_by_order
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.lower_priority import LowerPriorityClaim, lower_priority_claims, start_without
from enbloc.engine.features.evict.nominations import EvictedGangs, Nominations
from enbloc.engine.features.evict.planner import Plan, Planner
from enbloc.engine.features.evict.requests import never_preempts, one_lost_member, reaches_min_resources, requests_of
from enbloc.engine.features.evict.rules import ByPriority, ByShare, Rules
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.listing import plural

DOMAINS_TRIED: Final = 32
"""At most 32 domains are planned for a gang whose pods must be together, those with the most room first."""

HaveVictims = Callable[[GangState], bool]
"""A quick test: a gang for which it fails has no plan."""


# ---- the actions


def preempt(cycle: Cycle) -> None:
    """Inside a queue, gangs of higher priority get room that gangs of lower priority are evicted from."""
    if cycle.config.preempt.by == "order":
        preempt_by_order.run(cycle)
    # With one priority no gang is of lower priority than another; `enablePreemptable: false` switches priority off (C).
    elif len(cycle.state.gang_table.priorities) > 1 and cycle.config.enabled("priority", "preemptable"):
        _evict_for_all(cycle, ByPriority, _lower_priority_test(cycle))


def reclaim(cycle: Cycle) -> None:
    """Queues within their share get back what other queues use beyond theirs."""
    using = [queue for queue in cycle.state.queues.queues.values() if not queue.children and queue.demand.any()]
    if len(using) > 1:  # else there is no queue to reclaim from
        _evict_for_all(cycle, ByShare, lambda gang: True)


def _lower_priority_test(cycle: Cycle) -> HaveVictims:
    """Whether any pod or claim in the cluster is of lower priority than a gang in its queue."""
    if any(True for _ in cycle.claims.every()):
        return lambda gang: True

    @cache
    def lowest() -> dict[str, int]:
        found: dict[str, int] = {}
        for queue, priority in cycle.features.get(EvictionHistory).evictable.cells():
            found[queue] = min(priority, found.get(queue, priority))
        return found

    return lambda gang: gang.priority > lowest().get(gang.spec.queue, gang.priority)


# ---- all gangs


def _evict_for_all(cycle: Cycle, by: type[Rules], have_victims: HaveVictims) -> None:
    """Serves all gangs whose minima did not fit, in order. Those for which no plan was found before are tried only once
    pods were evicted, or claims released, for one before them."""
    history, queues = cycle.features.get(EvictionHistory), cycle.queues
    fresh: list[EquivalenceClass] = []
    failed: list[EquivalenceClass] = []
    for one in (*queues.placement.equivalences(), *queues.best_effort.equivalences()):
        gang = _first_for_minima(one)
        if gang is not None:
            (failed if history.has_failed(by.action, gang) else fresh).append(one)
    if not fresh:
        return
    in_line = _line_of(cycle, {one.queue for one in (*fresh, *failed)}, have_victims)
    line = in_line(fresh)
    while line:
        turn, equivalence = line.pop(0)
        if _serve_class(cycle, equivalence, by) and failed:
            behind = [entry for entry in in_line(failed) if entry[0] > turn]
            line, failed = sorted([*line, *behind], key=itemgetter(0)), []


_Line = list[tuple[tuple[object, Order], EquivalenceClass]]


def _line_of(cycle: Cycle, names: set[str], have_victims: HaveVictims) -> Callable[[Sequence[EquivalenceClass]], _Line]:
    """Puts classes into a line, by the shares that queues of these names have now: evictions change these."""
    queues, totals = cycle.state.queues, cycle.state.foreign_room.shared()
    put_off = puts_off(cycle)
    by_queue = {name: queues.order(queues.get(name), totals) for name in names}

    def in_line(equivalences: Sequence[EquivalenceClass]) -> _Line:
        heads = ((one, _first_for_minima(one)) for one in equivalences)
        found = [(one, gang) for one, gang in heads if gang is not None and not put_off(gang)]
        tried = [(one, gang) for one, gang in found if have_victims(gang) and not is_blocked(cycle, gang)]
        line = [((by_queue[gang.spec.queue], cycle.order(gang)), one) for one, gang in tried]
        return sorted(line, key=itemgetter(0))

    return in_line


def _first_for_minima(equivalence: EquivalenceClass) -> GangState | None:
    """The first gang of a class that waits for its minima in vain."""
    head = equivalence.head() if equivalence.unschedulable else None
    return head.gang if head is not None and head.order.band is Band.MINIMA else None


def _serve_class(cycle: Cycle, equivalence: EquivalenceClass, by: type[Rules]) -> bool:
    """Serves the gangs of a class in order; whether room was found, or is being freed, for one of them."""
    served = False
    for gang in equivalence.in_order():
        if is_blocked(cycle, gang):
            break  # one like it is before it in a FIFO queue
        with Turn(cycle, gang) as turn:
            if not _serve(cycle, gang, by):
                break  # there is no plan for a gang like it either
        served = served or not turn.failed
    return served


def _serve(cycle: Cycle, gang: GangState, by: type[Rules]) -> bool:
    """Whether room was found, or is being freed, for the gang."""
    unit, history = cycle.starting(gang), cycle.features.get(EvictionHistory)
    if not (unit and gang.may_claim) or history.has_failed(by.action, gang):
        return False
    if any(map(cycle.claims.nominated, unit)):
        return False
    if any(map(cycle.obstacles.of_claim, unit)):
        return False  # it could not start even with the room
    requests = requests_of(cycle, unit)
    if any(_try_evictions(cycle, unit, asked, by) for asked in (requests, one_lost_member(requests))):
        return True
    history.note_failed(by.action, gang)
    return False


# ---- one gang, or gangs that start together


class _Search(NamedTuple):
    """What a plan is looked for."""

    cycle: Cycle
    unit: Sequence[GangState]
    requests: Sequence[PlacementRequest]
    rules: Rules
    lower: Sequence[LowerPriorityClaim]
    """Claims that are released with it, on the nodes that it uses."""


class _Found(NamedTuple):
    plan: Plan
    lower: Sequence[LowerPriorityClaim]
    """Those of the claims that are released."""
    ends_holds: bool = False
    """Whether held pods of the gangs themselves are placed anew."""


def _try_evictions(
    cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest], by: type[Rules]
) -> bool:
    """Releases claims of lower priority, or evicts pods, if that makes room for the requests; whether it does."""
    if not requests or never_preempts(unit, requests):
        return False
    lower = lower_priority_claims(cycle, unit) if by.releases_claims else []
    if start_without(cycle, unit, lower):
        return True
    rules = by.of(cycle, unit, requests)
    if not rules.cells() and not lower:
        return False
    search = _Search(cycle, unit, requests, rules, lower)
    found = next((found for way in WAYS if (found := way(search)) is not None), None)
    if found is None or not (found.plan.victims or found.lower):
        return False  # none exists; or the gang fits as soon as terminating pods are gone
    return _carry_out(search, found)


def _as_it_is(search: _Search) -> _Found | None:
    return _find(search)


def _on_reserved_nodes(search: _Search) -> _Found | None:
    """A gang is not bound by reservations of lower priority, where it could not start otherwise (R5)."""
    lower = _last_resort(search)
    return _find(search._replace(lower=lower)) if lower else None


def _with_held_pods_anew(search: _Search) -> _Found | None:
    """Where pods are held they may be in the way of their own group."""
    held = [task for gang in search.unit for task in held_tasks(gang)]
    if not held:
        return None
    transaction = Transaction(search.cycle.state)
    for task in held:
        transaction.lift(task)
    requests = requests_of(search.cycle, search.unit)
    found = _find(search._replace(requests=requests, lower=search.lower or _last_resort(search)))
    transaction.rollback()
    return found._replace(ends_holds=True) if found is not None else None


WAYS: Final = (_as_it_is, _on_reserved_nodes, _with_held_pods_anew)
"""The attempts for one gang, in order: the first one that has a plan counts."""


def _last_resort(search: _Search) -> list[LowerPriorityClaim]:
    if search.rules.releases_claims:
        return []
    return [one for one in lower_priority_claims(search.cycle, search.unit) if one.kind is ClaimKind.RESERVE]


def _find(search: _Search) -> _Found | None:
    """The plan that costs least, of those for each domain where pods must be together (T7)."""
    cycle, requests = search.cycle, search.requests
    prepare, reaches = partial(_prepare, search), reaches_min_resources(cycle, search.unit)
    best: tuple[tuple[int, ...], Plan] | None = None
    for within in domain_choices(cycle.state, requests, _constraints(search), DOMAINS_TRIED):
        planner = Planner(cycle, search.rules, within)
        plan = planner.find(requests, prepare, reaches)
        if plan is not None and (best is None or planner.harm < best[0]):
            best = (planner.harm, plan)
    if best is None:
        return None
    nodes = {node for _, node in best[1].places}
    return _Found(best[1], [one for one in search.lower if one.nodes & nodes])


def _prepare(search: _Search, transaction: Transaction) -> None:
    """Room that the gangs claim, and that of claims which are released with the plan, is theirs."""
    for one in search.lower:
        one.lift(search.cycle.state, transaction)
    for gang in search.unit:
        later = [task for request in search.requests if request.gang is gang for task in request.later]
        search.cycle.take_claimed_room(transaction, gang, later)


def _constraints(search: _Search) -> Constraints:
    """Nodes that claims of lower priority reserve are open; to each task those that are reserved for it, too (R5)."""
    cycle, unit = search.cycle, search.unit
    exclude = frozenset(key for one in search.lower for key in one.keys)
    found, closing = cycle.constraints(unit[0], exclude, honor_run_times=False), cycle.claims.closing
    if found.closed is None or not any(closing.of(gang) for gang in unit):
        return found
    to_others = found.closed

    def closed(task: Task) -> list[tuple[str, Bools]]:
        own = closing.rows_for(task)
        return [(why, rows & ~own if why == RESERVED else rows) for why, rows in to_others(task)]

    return found._replace(closed=closed)


def _carry_out(search: _Search, found: _Found) -> bool:
    """The room is claimed for all gangs before any pod leaves it, or it cannot be recorded."""
    cycle, unit, plan = search.cycle, search.unit, found.plan
    for gang in unit if found.ends_holds else ():
        cycle.claims.end(gang, ClaimKind.HOLD, "HoldReleased", "room is being freed for all of its pods")
    victims = sorted({task.gang.key for task in plan.victims})  # each gang may outlive the others
    claims = [claim for gang in unit for claim in _claims_to_make(cycle, gang, plan)]
    claims += filter(None, (cycle.features.get(EvictedGangs).claim(gang, victims) for gang in unit))
    if not cycle.claims.records.fit(claims, ending={ClaimKind.RESERVE}):
        return False
    for one in found.lower:
        one.release(cycle, unit[0])
    for gang in unit:
        cycle.claims.end(gang, ClaimKind.RESERVE, "ReservationEnded", "room is being freed for it")
    for claim in claims:
        _make(cycle, plan, claim)
    _evict(search, plan)
    return True


def _make(cycle: Cycle, plan: Plan, claim: Claim) -> None:
    if claim.kind is ClaimKind.WAVE:
        cycle.features.get(Waves).make_being_freed(claim)
    elif claim.kind is ClaimKind.EVICTED:
        cycle.features.get(EvictedGangs).make(claim)
    else:
        cycle.features.get(Nominations).make(claim, _evicted_for(cycle, plan, claim.gang))


def _evict(search: _Search, plan: Plan) -> None:
    history, titles, first = search.cycle.features.get(EvictionHistory), search.cycle.titles, search.unit[0]
    for task in sorted(plan.victims, key=lambda task: (task.gang.key, task.order)):
        assert task.status is TaskStatus.BOUND, f"{task} cannot be evicted; {task.gang.story}"
        history.evict(task, first, search.rules.reason, f"makes room for {titles.of(first, task.namespace)}")


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
    return f"{plural(count, 'pod')} of {gangs} {'is' if count == 1 else 'are'} evicted for it"
