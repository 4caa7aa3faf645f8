"""The turn of a gang: what limits it, an attempt, and what is bound or why nothing is. Read it from the top down.

A turn places gangs that start together as a whole (`_start`), or tasks of one that has started one by one
(`_place_singly`). Features are asked at the points of `feature`; nothing before `_bind` lasts longer than its
transaction, so that `rediagnose` runs the same attempt, dry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from enbloc.engine.core.claims.placeholders import is_placeholder
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.attempt import attempt, one_by_one
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.queue_loop import serve_all
from enbloc.engine.core.queueing.scheduling_queue import SchedulingQueue
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.state.units import Unit
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task, held_tasks, pending_tasks
from enbloc.engine.core.why.diagnosis import Diagnosis


def allocate(cycle: Cycle) -> None:
    """Gangs get their nodes, the minima all or nothing (G2), then the surplus as far as there is room (G3)."""
    serve(cycle, cycle.queues.placement)


def backfill(cycle: Cycle) -> None:
    """Gangs whose tasks request nothing (BestEffort) are placed where there is a place left."""
    serve(cycle, cycle.queues.best_effort)


def serve(cycle: Cycle, queue: SchedulingQueue) -> None:
    """Serves the gangs of a scheduling queue."""
    cycle.features.serving_begins(cycle, queue)
    serve_all(cycle, queue, lambda gang: turn(cycle, queue, gang))
    cycle.features.serving_ends(cycle, queue)


def turn(cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> Diagnosis | None:
    """The turn of a gang, or of all that start with it; a diagnosis says why it failed."""
    features = cycle.features
    constraints = features.pre_filter(cycle, queue, gang, cycle.constraints(gang))
    failure = attempt_unit(cycle, gang, constraints)
    if failure is not None:
        features.permit(cycle, gang, constraints, failure)
        if not features.post_filter(cycle, queue, gang, constraints, failure):
            return failure
    features.served(cycle, queue, gang)
    return None


def attempt_unit(cycle: Cycle, gang: GangState, constraints: Constraints, *, dry: bool = False) -> Diagnosis | None:
    """One attempt for a gang, or for all that start with it; a diagnosis says why it failed. `dry`: nothing stays
    placed; without a diagnosis nothing is known against it."""
    own = cycle.features.attempt(cycle, gang, constraints, dry=dry)
    if own is not None:
        return own.failure
    if not gang.starts:
        return _place_singly(cycle, gang, constraints, dry)
    unit = cycle.units.of(gang)
    if not (unit.is_alone or cycle.obstacles.may_start(unit)):
        return cycle.obstacles.why_incomplete(unit, gang)
    return _start(cycle, unit, cycle.starting(gang), constraints, dry)


# ---- gangs that start together: as a whole or not at all


def _start(cycle: Cycle, unit: Unit, gangs: list[GangState], constraints: Constraints, dry: bool) -> Diagnosis | None:
    failure = cycle.features.rejects(cycle, unit, gangs)
    if failure is not None:
        return _together(unit, failure)
    transaction = Transaction(cycle.state)
    for requests in _ways(cycle, gangs, transaction):
        found = place_unit(cycle, requests, transaction, constraints)
        if dry:
            transaction.rollback()
            return _together(unit, found)
        found = found or cycle.features.pre_bind(cycle, gangs, transaction)
        if found is None:
            _bind(cycle, unit, requests, transaction)
            return None
        failure = failure or found
    return _together(unit, failure)


def _ways(cycle: Cycle, gangs: list[GangState], transaction: Transaction) -> Iterator[list[PlacementRequest]]:
    """What is tried one after the other; nothing is placed when the next is asked for."""
    yield [cycle.asked(gang) for gang in gangs]
    yield from cycle.features.alternatives(cycle, gangs, transaction)


def place_unit(
    cycle: Cycle, requests: Sequence[PlacementRequest], transaction: Transaction, constraints: Constraints
) -> Diagnosis | None:
    """Places what gangs that start together ask for; if that fails the transaction is as before."""
    others: list[tuple[Task, int]] = []
    for request in requests:
        others += cycle.take_claimed_room(transaction, request.gang, request.later)
    failure = attempt(cycle.placer, requests, transaction, constraints)
    cycle.restore(transaction, others)
    if failure is None:
        return None
    freed = cycle.freed([request.gang for request in requests])
    return None if cycle.attempt_where_freed(requests, freed, transaction, constraints) else failure


def _bind(cycle: Cycle, unit: Unit, requests: Sequence[PlacementRequest], transaction: Transaction) -> None:
    gangs = [request.gang for request in requests]
    for request in requests:
        if request.choice is not None:
            request.gang.choose(request.choice)
    tasks = [*_assume_held(cycle, gangs), *(task for task in transaction.placed if not is_placeholder(task))]
    if tasks:
        cycle.bind(gangs, tasks, commits=True)
    cycle.publish(transaction.planned)
    for gang in unit.gangs:
        cycle.intake.queue(gang)


def _assume_held(cycle: Cycle, gangs: Sequence[GangState]) -> list[Task]:
    """What they hold is bound where it is."""
    held = [task for gang in gangs for task in held_tasks(gang)]
    for task in held:
        cycle.state.assume_held(task)
    return held


# ---- a gang that has started: task by task

Singly = tuple[Sequence[Task], Sequence[Task], int]
"""Tasks that are placed as far as they fit, and tasks of which a number may make up the total."""


def _place_singly(cycle: Cycle, gang: GangState, constraints: Constraints, dry: bool) -> Diagnosis | None:
    transaction = Transaction(cycle.state)
    failure = try_singly(cycle, gang, asked_singly(gang), transaction, constraints)
    if dry:
        transaction.rollback()
    elif transaction.placed:
        cycle.bind([gang], transaction.placed, commits=False)
        cycle.intake.queue(gang)
        return None
    return failure


def asked_singly(gang: GangState) -> Singly:
    first: Sequence[Task] = pending_tasks(gang)
    if gang.need.ready:
        return first, (), 0
    request = request_of(gang, first)
    first = request.needed if request.needed or request.short else request.rest
    return first, request.rest, request.short


def try_singly(
    cycle: Cycle, gang: GangState, asked: Singly, transaction: Transaction, constraints: Constraints
) -> Diagnosis | None:
    """Once satisfied, lost members are replaced one by one (G7), on reserved nodes first (R7); surplus always is (G3).
    Of the tasks that may make up the total, one that does not fit is skipped."""
    first, rest, short = asked
    own = cycle.freed([gang])
    lifted = cycle.take_claimed_room(transaction, gang)
    short -= len(rest) - len(_waiting(rest))
    first, rest = _waiting(first), _waiting(rest)
    failure = one_by_one(cycle.placer, gang, transaction, first, constraints)
    if short:
        of_rest = one_by_one(cycle.placer, gang, transaction, rest, constraints, short)
        failure = failure or of_rest
    cycle.restore(transaction, [*own, *lifted])  # room that is freed for it stays its own
    return failure


def _waiting(tasks: Sequence[Task]) -> list[Task]:
    return [task for task in tasks if task.status in WAITS]


def _together(unit: Unit, failure: Diagnosis | None) -> Diagnosis | None:
    if failure is None or unit.is_alone:
        return failure
    return msgspec.structs.replace(failure, attempted_with_others=True)
