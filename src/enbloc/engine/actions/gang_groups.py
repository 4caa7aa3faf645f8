"""Gangs that start together: all minima of a group, or nothing (K5, K7); NonStrict ones hold what they get (K6).

Groups that hold resources which each other needs are deadlocked: the lowest in order release their holds, as many of
them as it takes for one group to start at once (K12). One group starts each time, so this terminates.
"""

from __future__ import annotations

import msgspec

from enbloc.api.reasons import PendingReason
from enbloc.engine.cycle import Cycle
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.ordering import Order
from enbloc.engine.placement.attempt import attempt, runs
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import request_of
from enbloc.engine.state.groups import Group
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import PODS
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus

_OWN = frozenset({TaskStatus.BOUND, TaskStatus.ASSUMED, TaskStatus.NOMINATED})
"""Tasks whose room counts as free for the minResources of their own group."""


def start_whole(cycle: Cycle, group: Group, constraints: Constraints) -> Diagnosis | None:
    """Attempts a whole group once, and holds nothing; returns why it failed."""
    unit = cycle.intake.unit(group)
    failure = _beyond_cluster(cycle, unit) or _too_little_free(cycle, group)
    if failure is not None:
        return failure
    transaction = Transaction(cycle.state)
    failure = _place(cycle, unit, transaction, constraints)
    if failure is None or (group.holds and _fits_without_holds(cycle, unit, transaction, constraints)):
        _bind(cycle, group, unit, transaction.placed)
        return None
    return failure


def start(cycle: Cycle, group: Group, constraints: Constraints) -> Diagnosis | None:
    """Attempts a whole group once; a NonStrict one holds what fits. Returns why it failed."""
    unit = cycle.intake.unit(group)
    failure = start_whole(cycle, group, constraints)
    if failure is None:
        return None
    if _beyond_cluster(cycle, unit) is None and _too_little_free(cycle, group) is None:
        is_awaiting_room = any(cycle.claims.nominations.of(gang) for gang in unit)
        if group.holds and not is_awaiting_room and not any(map(cycle.intake.claim_obstacle, unit)):
            _hold(cycle, group, unit, constraints)  # with an obstacle the hold would end at once
    held = sum(gang.total_held for gang in unit)
    cycle.claims.holds.changed = cycle.claims.holds.changed or held > 0
    message = f"{failure.message.removesuffix('.')}; {held} pods are held" if held else failure.message
    return msgspec.structs.replace(failure, message=f"{message}{group.note}")


def _place(cycle: Cycle, unit: list[GangState], transaction: Transaction, constraints: Constraints) -> Diagnosis | None:
    """Places what the gangs still need; if that fails the transaction is as before."""
    others: list[tuple[Task, int]] = []
    requests = [request_of(gang) for gang in unit]
    for gang in unit:
        others += cycle.take_claimed_room(transaction, gang)
    failure = attempt(cycle.placer, requests, transaction, constraints)
    cycle.restore(transaction, others)
    return failure


def _fits_without_holds(
    cycle: Cycle, unit: list[GangState], transaction: Transaction, constraints: Constraints
) -> bool:
    """Whether the gangs fit if the tasks that they hold are placed anew: held tasks may block their own gang."""
    if not any(gang.total_held for gang in unit):
        return False
    for gang in unit:
        for task in cycle.claims.holds.of(gang):
            transaction.lift(task)
    return _place(cycle, unit, transaction, constraints) is None


def _bind(cycle: Cycle, group: Group, unit: list[GangState], placed: list[Task]) -> None:
    taken = [task for gang in unit for task in cycle.claims.holds.take(gang)]
    group.note = ""
    if taken or placed:
        cycle.bind(unit, [*taken, *placed], commits=True)
    cycle.claims.holds.release(group, "HoldBound", "its pods are bound")
    for gang in cycle.groups.gangs(group):
        cycle.intake.queue(gang)


def _hold(cycle: Cycle, group: Group, unit: list[GangState], constraints: Constraints) -> None:
    """Holds the tasks that fit, of each gang at most as many as its minima require."""
    for gang in unit:
        transaction = Transaction(cycle.state)
        _, needed, rest, short, _ = request_of(gang)
        for run in runs(cycle.state, needed):
            cycle.placer.place(transaction, run, len(run), constraints)
        for run in runs(cycle.state, rest):
            short -= cycle.placer.place(transaction, run, min(short, len(run)), constraints) if short else 0
        if transaction.placed:
            cycle.claims.holds.hold(group, gang, transaction.placed, cycle.now_ns)


def _beyond_cluster(cycle: Cycle, unit: list[GangState]) -> Diagnosis | None:
    return next((why for gang in unit if (why := cycle.intake.beyond_cluster(gang)) is not None), None)


def _too_little_free(cycle: Cycle, group: Group) -> Diagnosis | None:
    """K7: compares the minResources of a Strict group with all free resources, plus those of its own members and those
    that are being freed for it. A NonStrict group accumulates all the same."""
    if group.holds:
        return None
    state = cycle.state
    gangs = cycle.groups.gangs(group)
    asked: dict[int, int] = {}
    for gang in gangs:
        for column, amount in state.resources.amounts(gang.spec.min_free_resources).items():
            asked[column] = asked.get(column, 0) + amount
    if not asked:
        return None
    state.nodes.widen()
    free = state.free_total()
    own: dict[int, int] = {}
    for gang in gangs:
        for task in gang.tasks.values():
            if task.status in _OWN:
                for column, amount in task.cls.request:
                    own[column] = own.get(column, 0) + amount
    for column, amount in asked.items():
        has = (int(free[column]) if column < len(free) else 0) + own.get(column, 0)
        if column != PODS and amount > has:
            return diagnosis.too_little_free(gangs[0], state.resources.names[column], amount, has)
    return None


# ---- K12


def resolve_deadlock(cycle: Cycle) -> None:
    """Groups that hold and wait for each other: the lowest in order release their holds so that one can start."""
    holds = cycle.claims.holds
    if not holds.changed:
        return
    holds.changed = False
    stuck = _stuck(cycle, sorted(holds.holders(), key=lambda group: _order_of(cycle, group)))
    if len(stuck) < 2:
        return
    victims, winner = _victims(cycle, stuck)
    for victim in victims:
        held = sum(gang.total_held for gang in cycle.groups.gangs(victim))
        title = cycle.intake.unit(winner)[0].spec.title
        victim.note = f"; it released {held} held pods so that {title} could start"
        holds.release(
            victim, "HoldReleased", f"released {held} held pods so that {title} can start: they blocked each other"
        )
        for gang in cycle.intake.unit(victim):
            why = Diagnosis(PendingReason.HOLD_RELEASED, victim.note.removeprefix("; "))
            cycle.reporter.report(gang, why, of_gang=True)
    failure = start(cycle, winner, cycle.constraints(cycle.intake.unit(winner)[0]))
    assert failure is None, f"{winner} was to start and did not: {failure}"


def _stuck(cycle: Cycle, groups: list[Group]) -> list[Group]:
    """Of groups that hold, those that wait only for each other: each would fit if all of them released their holds."""
    while len(groups) > 1:
        transaction = Transaction(cycle.state)
        _release(cycle, groups, transaction)
        left = [group for group in groups if _fits(cycle, group)]
        transaction.rollback()
        if len(left) == len(groups):
            return groups
        groups = left
    return []


def _victims(cycle: Cycle, stuck: list[Group]) -> tuple[list[Group], Group]:
    """The groups that release their holds, lowest in order first and no more than needed, and the group that starts."""
    victims: list[Group] = []
    winner: Group | None = None
    for victim in reversed(stuck[1:]):
        victims.append(victim)
        winner = next((group for group in stuck if group not in victims and _fits_if(cycle, group, victims)), None)
        if winner is not None:
            break
    assert winner is not None, f"{stuck[0]} fits if all others release their holds"
    for victim in reversed(list(victims)):
        others = [other for other in victims if other is not victim]
        if _fits_if(cycle, winner, others):
            victims = others
    return victims, winner


def _fits_if(cycle: Cycle, group: Group, victims: list[Group]) -> bool:
    transaction = Transaction(cycle.state)
    _release(cycle, [*victims, group], transaction)
    fits = _fits(cycle, group)
    transaction.rollback()
    return fits


def _fits(cycle: Cycle, group: Group) -> bool:
    if not cycle.intake.may_start(group) or _too_little_free(cycle, group) is not None:
        return False
    transaction = Transaction(cycle.state)
    unit = cycle.intake.unit(group)
    fits = bool(unit) and _place(cycle, unit, transaction, cycle.constraints(unit[0])) is None
    transaction.rollback()
    return fits


def _release(cycle: Cycle, groups: list[Group], transaction: Transaction) -> None:
    for group in groups:
        for gang in cycle.groups.gangs(group):
            for task in cycle.claims.holds.of(gang):
                transaction.lift(task)


def _order_of(cycle: Cycle, group: Group) -> Order:
    return min(cycle.order(gang) for gang in cycle.groups.gangs(group))
