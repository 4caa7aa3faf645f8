"""Gangs that start together: all minima of a group, or nothing (K5, K7); NonStrict ones hold what they get (K6).

Groups whose claims are in each other's way are left to `deadlocks` (K12).
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from enbloc.engine.core.claims.placeholders import is_placeholder
from enbloc.engine.core.cycle import Cycle, FailedGroup
from enbloc.engine.core.min_resources import min_resources, shortage
from enbloc.engine.core.placement.attempt import attempt, one_by_one
from enbloc.engine.core.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.state.groups import Group
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, Task, held_tasks, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.groups.holds import Holds
from enbloc.engine.features.waves import later_waves
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.model import GangKey


def start_whole(cycle: Cycle, group: Group, constraints: Constraints) -> Diagnosis | None:
    """Attempts a whole group once, and holds nothing; returns why it failed."""
    unit = cycle.intake.unit(group)
    failure = _beyond_cluster(cycle, unit) or too_little_free(cycle, group)
    if failure is not None:
        return failure
    transaction = Transaction(cycle.state)
    failure = place_unit(cycle, unit, transaction, constraints)
    if failure is None or (group.holds and _try_without_holds(cycle, unit, transaction, constraints)):
        failure = _claim_later(cycle, unit, transaction)
        if failure is None:
            _bind(cycle, group, unit, [task for task in transaction.placed if not is_placeholder(task)])
            cycle.publish(transaction.planned)
    return failure


def _claim_later(cycle: Cycle, unit: list[GangState], transaction: Transaction) -> Diagnosis | None:
    """D5: room is claimed for the later waves of every gang, or nothing of the group stays placed. Why it is not."""
    later: dict[GangKey, list[Task]] = {gang.key: [] for gang in unit}
    for task in transaction.placed:
        if is_placeholder(task):
            later[task.gang.key].append(task)
    for gang in unit:
        failure = later_waves.why_unrecordable(cycle, gang, later[gang.key])
        if failure is not None:
            transaction.rollback()
            return msgspec.structs.replace(failure, of_gangs={gang.key: failure})
    for gang in unit:
        later_waves.claim(cycle, gang, (), later[gang.key])
    return None


def start(cycle: Cycle, group: Group, constraints: Constraints) -> Diagnosis | None:
    """Attempts a whole group once; a NonStrict one holds what fits. Returns why it failed."""
    unit = cycle.intake.unit(group)
    shape, facts = _shape(cycle, group, unit, constraints), cycle.facts()
    known = cycle.failed_groups.get(shape) if shape is not None else None
    if known is not None and known.facts == facts:
        return _of_each(cycle, group, unit, known.failure_of(unit))
    failure = start_whole(cycle, group, constraints)
    if failure is None:
        return None
    if shape is not None and facts == cycle.facts():
        cycle.failed_groups[shape] = FailedGroup(facts, [gang.key for gang in unit], failure)
    if _beyond_cluster(cycle, unit) is None and too_little_free(cycle, group) is None:
        is_awaiting_room = any(cycle.claims.nominated(gang) for gang in unit)
        if group.holds and not is_awaiting_room and not any(map(cycle.intake.claim_obstacle, unit)):
            _hold(cycle, group, unit, constraints)  # with an obstacle the hold would end at once
    return _of_each(cycle, group, unit, failure)


def hold_apart(cycle: Cycle, group: Group, constraints: Constraints) -> Diagnosis:
    """K6: the complete gangs of a group that lacks members hold what fits in free room, and wait."""
    unit = cycle.intake.holds_apart(group)
    _hold(cycle, group, unit, constraints)
    return why_incomplete(cycle, group)


def why_incomplete(cycle: Cycle, group: Group) -> Diagnosis:
    each = cycle.intake.why_not_started(group)
    first = cycle.intake.holds_apart(group)[0]
    return msgspec.structs.replace(each[first.key], of_gangs=each)


def _shape(cycle: Cycle, group: Group, unit: list[GangState], constraints: Constraints) -> Hashable | None:
    """What a NonStrict group asks for. Of two that ask for the same, with no claims and nothing closed to them, the
    second fails like the first, and holds nothing either, if nothing of the first was placed even for a moment.
    `None`: it depends on more than that."""
    if not group.holds or constraints is not UNCONSTRAINED:
        return None
    found: list[Hashable] = []
    for gang in unit:
        spec, pending = gang.spec, pending_tasks(gang)
        if gang.total_held or gang.ran or spec.waves or spec.tree or cycle.claims.has_any(gang):
            return None
        if any(map(cycle.state.stateful.applies, pending)) or PlacementRequest(gang, pending).is_constrained:
            return None
        tasks = tuple((task.role, task.cls.id) for task in pending)
        counts = tuple(sorted(gang.found_by_role().items())), tuple(sorted(gang.minima().items()))
        found.append((spec.queue, spec.minimum, len(gang.tasks), counts, tasks))
    return tuple(found)


def why_not_whole(cycle: Cycle, group: Group, constraints: Constraints) -> Diagnosis | None:
    """Why a whole group does not fit as things are; nothing of it stays placed."""
    unit = cycle.intake.unit(group)
    failure = _beyond_cluster(cycle, unit) or too_little_free(cycle, group)
    if failure is None and unit:
        transaction = Transaction(cycle.state)
        failure = place_unit(cycle, unit, transaction, constraints)
        transaction.rollback()
    return _of_each(cycle, group, unit, failure) if failure is not None else None


def _of_each(cycle: Cycle, group: Group, unit: list[GangState], failure: Diagnosis) -> Diagnosis:
    """What each gang of a group says: what it lacks itself, else which gang of its group does; and how many of its pods
    are held. Those beside the unit have a minimum of 0, or only surplus waits."""
    found: dict[GangKey, Diagnosis] = {}
    lacking = failure.of_gangs or {unit[0].key: failure}
    for_nodes = all(map(diagnosis.nodes_would_help, lacking.values()))
    for gang in cycle.groups.gangs(group):
        why = lacking.get(gang.key)
        if gang not in unit and not gang.total_pending:
            why = diagnosis.timed_out(gang)
        elif why is None and (failure.of_gangs or gang not in unit):
            why = diagnosis.waits_for_others(gang, (), cycle.state.gangs, lacking, cycle.titles)
        why = msgspec.structs.replace(
            why or failure, attempted_with_others=gang in unit, needs_other_than_nodes=not for_nodes
        )
        found[gang.key] = diagnosis.with_held(gang, why)
    return msgspec.structs.replace(failure, of_gangs=found)


def place_unit(
    cycle: Cycle, unit: list[GangState], transaction: Transaction, constraints: Constraints
) -> Diagnosis | None:
    """Places what the gangs still need; if that fails the transaction is as before."""
    others: list[tuple[Task, int]] = []
    requests = [request_of(gang)._replace(later=cycle.features.get(Waves).later_tasks(gang)) for gang in unit]
    for request in requests:
        others += cycle.take_claimed_room(transaction, request.gang, request.later)
    failure = attempt(cycle.placer, requests, transaction, constraints)
    cycle.restore(transaction, others)
    if failure is not None and cycle.attempt_where_freed(requests, cycle.freed(unit), transaction, constraints):
        return None
    return failure


def _try_without_holds(cycle: Cycle, unit: list[GangState], transaction: Transaction, constraints: Constraints) -> bool:
    """Places the gangs with the tasks that they hold placed anew: held tasks may block their own gang. Whether they
    fit."""
    if not any(gang.total_held for gang in unit):
        return False
    for gang in unit:
        for task in held_tasks(gang):
            transaction.lift(task)
    return place_unit(cycle, unit, transaction, constraints) is None


def _bind(cycle: Cycle, group: Group, unit: list[GangState], placed: list[Task]) -> None:
    taken = [task for gang in unit for task in cycle.features.get(Holds).bind_held(gang)]
    if taken or placed:
        cycle.bind(unit, [*taken, *placed], commits=True)
    cycle.features.get(Holds).release(group, "HoldBound", "its pods are bound")
    for gang in cycle.groups.gangs(group):
        cycle.intake.queue(gang)


def _hold(cycle: Cycle, group: Group, unit: list[GangState], constraints: Constraints) -> None:
    """Holds the tasks that fit, of each gang at most as many as its minima require. R8 does not count: a held pod has
    not started, and may not end before a gang that comes first is due."""
    shadow = constraints.shadow
    constraints = cycle.constraints(unit[0], honor_run_times=False, together=False)
    constraints = constraints._replace(shadow=shadow, starts=False)
    for gang in unit:
        transaction = Transaction(cycle.state)
        request = request_of(gang)
        one_by_one(cycle.placer, gang, transaction, request.needed, constraints)
        if request.short:
            one_by_one(cycle.placer, gang, transaction, request.rest, constraints, request.short)
        if transaction.placed:
            cycle.features.get(Holds).hold(group, gang, transaction.placed, cycle.now_ns)


def _beyond_cluster(cycle: Cycle, unit: list[GangState]) -> Diagnosis | None:
    found = {gang.key: why for gang in unit if (why := cycle.intake.beyond_cluster(gang)) is not None}
    return msgspec.structs.replace(next(iter(found.values())), of_gangs=found) if found else None


def too_little_free(cycle: Cycle, group: Group) -> Diagnosis | None:
    """K7: why the minResources of a Strict group are not free in all."""
    lacking = shortage(cycle, group, min_resources(cycle, group))
    if lacking is None:
        return None
    gangs, name = cycle.groups.gangs(group), cycle.state.resources.names[lacking.column]
    each = {gang.key: diagnosis.too_little_free(gang, name, lacking.asked, lacking.has) for gang in gangs}
    return msgspec.structs.replace(each[gangs[0].key], of_gangs=each)
