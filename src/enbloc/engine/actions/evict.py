"""What preempt and reclaim have in common: gangs that were tried in vain get room that others leave (P).

The whole is planned before anyone is evicted. Claims of lower priority go first (R5); then a plan is made, the room is
claimed for the gang, and only then the victims are told to leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.actions.allocate import serve
from enbloc.engine.actions.lower_priority_claims import LowerPriorityClaim, lesser_claims
from enbloc.engine.actions.queue_loop import is_behind
from enbloc.engine.engine import Engine
from enbloc.engine.eviction.planner import Plan, Planner, Rules
from enbloc.engine.ordering import Band
from enbloc.engine.placement.attempt import attempt
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import PlacementRequest, replacements, request_of
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState, TaskStatus

RulesOf = Callable[[Engine, Sequence[GangState], Sequence[PlacementRequest]], Rules | None]
"""Who may be evicted for gangs with those needs; `None`: nobody."""


def evict_for_all(engine: Engine, action: str, rules_of: RulesOf, claims_first: bool) -> None:
    """Serves everybody who sleeps on a minimum, in order."""
    equivalences = [
        equivalence
        for equivalence in engine.allocating.equivalences()
        if equivalence.unschedulable and _is_to_try(engine, equivalence, action)
    ]
    for equivalence in sorted(equivalences, key=lambda one: _turn(engine, one)):
        while (head := equivalence.head()) is not None and _serve(engine, head[1], action, rules_of, claims_first):
            pass


def _is_to_try(engine: Engine, equivalence: EquivalenceClass, action: str) -> bool:
    """Whether somebody waits there for a minimum, for whom nobody was looked for in vain yet."""
    head = equivalence.head()
    if head is None or head[0].band is not Band.MINIMA or engine.evictions.is_in_vain(action, head[1]):
        return False
    return not is_behind(engine, head[1])


def _turn(engine: Engine, equivalence: EquivalenceClass) -> tuple[object, ...]:
    head = equivalence.head()
    assert head is not None, "only buckets with somebody in them are served"
    return engine.order.across_queues(head[1])


def _serve(engine: Engine, gang: GangState, action: str, rules_of: RulesOf, claims_first: bool) -> bool:
    """Whether room was made, or found, for the gang."""
    group = engine.groups.of(gang)
    unit = engine.unit(group) if group is not None and not gang.satisfied else [gang]
    if not unit or (group is not None and group.holds and not gang.satisfied):
        return False  # what it gets it holds (K6)
    if engine.evictions.is_in_vain(action, gang):
        return False
    if any(engine.nominations.of(one) or engine.waves.claims.of(one) or one.spec.later for one in unit):
        return False
    if _makes_room(engine, unit, action, rules_of, claims_first):
        return True
    engine.evictions.note_in_vain(action, gang)
    return False


def _makes_room(engine: Engine, unit: Sequence[GangState], action: str, rules_of: RulesOf, claims_first: bool) -> bool:
    needs = _needs(unit)
    if not needs or any(task.never_preempts for need in needs for task in (*need.needed, *need.rest)):
        return False
    if any(gang.spec.never_preempts for gang in unit):
        return False
    lesser = lesser_claims(engine, unit) if claims_first else []
    if lesser and _release_claims(engine, unit, lesser):
        return True
    rules = rules_of(engine, unit, needs)
    if rules is None or not (rules.cells() or lesser):
        return False
    keys = frozenset(key for one in lesser for key in one.keys)
    constraints = engine.constraints(unit[0], keys, honor_run_times=False)
    plan = _plan(engine, unit, rules, needs, lesser, constraints)
    if plan is None and unit[0].satisfied and len(needs[0].needed) > 1:  # what was lost is replaced one by one (G7)
        only = needs[0]._replace(needed=needs[0].needed[:1], rest=(), short=0)
        plan = _plan(engine, unit, rules, [only], lesser, constraints)
    if plan is None or not (plan.victims or _of_use(lesser, plan)):
        return False  # or it fits as soon as those who are leaving have left
    _carry_out(engine, unit, action, plan, lesser)
    return True


def _of_use(lesser: Sequence[LowerPriorityClaim], plan: Plan) -> list[LowerPriorityClaim]:
    """Claims of lower priority on the nodes of a plan."""
    nodes = {node for _, node in plan.places}
    return [one for one in lesser if one.nodes & nodes]


def _needs(unit: Sequence[GangState]) -> list[PlacementRequest]:
    """Minima, and replacements of members that were lost: surplus evicts nobody (P1)."""
    found = []
    for gang in unit:
        lost = replacements(gang)
        request = request_of(gang)
        if gang.satisfied:
            found.append(PlacementRequest(gang, [*lost, *request.minimum]))
        elif gang.missing():
            found.append(PlacementRequest(gang, lost))
        else:
            found.append(request._replace(needed=[*lost, *request.needed]))
    return [need for need in found if need.needed or need.short]


def _plan(
    engine: Engine,
    unit: Sequence[GangState],
    rules: Rules,
    needs: Sequence[PlacementRequest],
    lesser: Sequence[LowerPriorityClaim],
    constraints: Constraints,
) -> Plan | None:
    def prepare(transaction: Transaction) -> None:
        for one in lesser:
            one.lift(transaction)
        for gang in unit:
            engine.take_own_places(transaction, gang)

    planner = Planner(engine.state, engine.placer, engine.evictions, rules, constraints, engine.groups.mates)
    return planner.find(needs, prepare)


def _release_claims(engine: Engine, unit: Sequence[GangState], lesser: Sequence[LowerPriorityClaim]) -> bool:
    """R5: it fits if claims of lower priority are released, no more of them than it takes."""

    def fits(some: Sequence[LowerPriorityClaim]) -> bool:
        constraints = engine.constraints(unit[0], frozenset(key for one in some for key in one.keys))
        transaction = Transaction(engine.state)
        for one in some:
            one.lift(transaction)
        fine = True
        for gang in unit:
            request = request_of(gang)
            engine.take_own_places(transaction, gang)
            if not gang.missing() and attempt(engine.placer, [request], transaction, constraints) is not None:
                fine = False
                break
        transaction.rollback()
        return fine and any(not gang.missing() for gang in unit)

    if not fits(lesser):
        return False
    chosen = list(lesser)
    for one in reversed(lesser):
        others = [other for other in chosen if other is not one]
        if len(chosen) > 1 and fits(others):
            chosen = others
    for one in chosen:
        one.release(f"released for {unit[0].spec.title}, of higher priority")
    told = serve(engine, unit[0], engine.constraints(unit[0]))
    assert told is None, f"{unit[0]} was to start and did not: {told}"
    return True


def _carry_out(
    engine: Engine, unit: Sequence[GangState], action: str, plan: Plan, lesser: Sequence[LowerPriorityClaim]
) -> None:
    """The room is the gang's before anyone leaves it (P3)."""
    for one in _of_use(lesser, plan):
        one.release(f"released for {unit[0].spec.title}, of higher priority")
    titles = sorted({task.gang.spec.title for task in plan.victims})
    whom = f"{', '.join(titles[:5])}{f' and {len(titles) - 5} more' if len(titles) > 5 else ''}"
    count = len(plan.victims)
    message = f"{count} pod{'' if count == 1 else 's'} of {whom} {'is' if count == 1 else 'are'} evicted for it"
    if not count:
        message = "room that others are leaving is for it"
    for gang in unit:
        engine.reservations.end(gang, "ReservationEnded", "room is being made for it")
        places = [(task, node) for task, node in plan.places if task.gang is gang]
        if places:
            engine.nominations.make(gang, places, message)
    verb = "Preempted" if action == "preempt" else "Reclaimed"
    for task in sorted(plan.victims, key=lambda task: (task.gang.key, task.order)):
        assert task.status is TaskStatus.BOUND, f"{task} cannot be evicted"
        engine.evictions.evict(task, unit[0], verb, f"makes room for {unit[0].spec.title}")
