"""allocate: gangs get their nodes, the minima all or nothing (G2), then the surplus as far as there is room (G3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from operator import attrgetter

from enbloc.engine.actions import later_waves
from enbloc.engine.actions.deadlocks import resolve_deadlock
from enbloc.engine.actions.gang_groups import hold_apart, start, start_whole
from enbloc.engine.actions.planned_starts import place_in_plan
from enbloc.engine.actions.queue_loop import serve_all
from enbloc.engine.actions.reserve import mend
from enbloc.engine.claims.room import take_reserved
from enbloc.engine.cycle import Cycle
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.ordering import Band
from enbloc.engine.placement.attempt import attempt, one_by_one
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import PlacementRequest, is_surplus, replacements, request_of
from enbloc.engine.placement.sub_groups import sub_groups
from enbloc.engine.queueing.scheduling_queue import Head, SchedulingQueue
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import WAITS, GangState, Task, pending_tasks


def run(cycle: Cycle) -> None:
    place_all(cycle, cycle.queues.placement)
    if cycle.claims.blocked:
        cycle.claims.blocked = False
        resolve_deadlock(cycle, lambda gang: serve(cycle, gang, cycle.constraints(gang)))
    for gang, why in cycle.parts.partial_allocations.roll_back():
        cycle.reporter.report(gang, why, of_gang=False)  # pods that had a place until now say it too


def place_all(cycle: Cycle, queue: SchedulingQueue) -> None:
    """Serves the gangs of a scheduling queue."""
    cycle.parts.partial_allocations.wake_gangs(queue)
    easy = cycle.parts.easy
    if cycle.parts.conservative is not None and queue is cycle.queues.placement:
        place_in_plan(cycle, cycle.parts.conservative, serve)
        return
    if easy is None or queue is not cycle.queues.placement:
        serve_all(cycle, queue, lambda gang: serve(cycle, gang, cycle.constraints(gang)))
        return
    easy.heads, easy.put_off = {}, {}

    def serve_behind_head(gang: GangState) -> Diagnosis | None:
        failure = serve(cycle, gang, behind_head(cycle, gang, len(cycle.served)))
        is_put_off = failure is not None and failure.lacks_room and bool(cycle.parts.awaited.above(gang.priority))
        easy.note(gang, is_put_off=is_put_off)
        return failure

    serve_all(cycle, queue, serve_behind_head)
    for name in {equivalence.queue for equivalence in queue.equivalences()}:
        head = first_waiting(cycle, name)
        if head is not None:
            easy.shadow(head, cycle.constraints(head), cycle.now_ns, len(cycle.served))
    cycle.parts.expected_starts.set_heads(easy.heads, cycle.now_ns)


def behind_head(cycle: Cycle, gang: GangState, position: object) -> Constraints:
    """EASY: a gang behind the first that waits in its queue must not delay it. The forecast is reused while `position`
    is equal."""
    constraints, easy = cycle.constraints(gang), cycle.parts.easy
    if easy is None:
        return constraints
    head = first_waiting(cycle, gang.spec.queue)
    band = Band.SURPLUS if is_surplus(gang) else Band.MINIMA
    if head is None or cycle.order(head) >= cycle.order(gang, band):
        return constraints
    shadow = easy.shadow(head, cycle.constraints(head), cycle.now_ns, position)
    return constraints._replace(shadow=shadow)


def first_waiting(cycle: Cycle, queue: str) -> GangState | None:
    """The first gang of a queue that was attempted and did not fit, or was put off for the room of awaited pods."""
    easy = cycle.parts.easy
    put_off = easy.put_off.values() if easy is not None else ()
    heads = [Head(cycle.order(gang), gang) for gang in put_off if gang.spec.queue == queue]
    found = min(heads, key=attrgetter("order"), default=None)
    for equivalence in cycle.queues.placement.in_queue(queue):
        why = equivalence.diagnosis
        head = equivalence.head() if equivalence.unschedulable and why is not None and why.lacks_room else None
        if head is not None and head.order.band is Band.MINIMA and (found is None or head.order < found.order):
            found = head
    return found.gang if found is not None else None


def places_singly(gang: GangState) -> bool:
    """Whether its tasks are placed one by one: surplus, and replacements of lost members of a satisfied gang."""
    return gang.satisfied or (gang.ready() and not gang.total_held)


def serve(cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    """One attempt for a gang, or for the group that it starts with; a diagnosis says why it failed."""
    group = cycle.groups.of(gang)
    if group is not None and not places_singly(gang) and not cycle.intake.may_start(group):
        return hold_apart(cycle, group, constraints)
    if places_singly(gang):
        failure = _place_singly(cycle, gang, constraints)
    elif group is None or has_room_for_its_wave(cycle, gang):
        failure = _place_minima(cycle, gang, constraints)
    else:
        failure = start(cycle, group, constraints)
    if failure is not None and cycle.claims.reservations and _try_reserved_nodes(cycle, gang, constraints):
        return None
    if failure is not None and any(map(cycle.claims.has_any, cycle.groups.mates(gang))):
        cycle.claims.blocked = True
    return failure


def has_room_for_its_wave(cycle: Cycle, gang: GangState) -> bool:
    """Whether its group has started, and room was claimed then for the wave that waits: it starts by itself (D5)."""
    return bool(gang.covered and cycle.claims.waves.of(gang))


def _try_reserved_nodes(cycle: Cycle, gang: GangState, constraints: Constraints) -> bool:
    """R5: a gang that fits only on nodes reserved for gangs of lower priority is bound there: its minima, or
    replacements of lost members, not surplus. Nodes of the lowest priority are tried first. Whether it fits."""
    group = cycle.groups.of(gang) if not gang.satisfied else None
    unit = cycle.intake.unit(group) if group is not None else [gang]
    if not unit or gang.ready() or gang.missing():
        return False
    reservations, partial_allocations = cycle.claims.reservations, cycle.parts.partial_allocations
    below = min(one.priority for one in unit)
    levels = sorted({one.priority for one in reservations.gangs() if one.priority < below})
    kept = bool(levels) and partial_allocations.suspend(gang)
    for level in levels:
        lower = reservations.lower_than(level + 1)
        there = cycle.constraints(gang, lower)._replace(shadow=constraints.shadow)
        if gang.satisfied:
            failure = _place_singly(cycle, gang, there)
        else:
            failure = _place_minima(cycle, gang, there) if group is None else start_whole(cycle, group, there)
        if failure is None:
            mend(cycle, lower, unit)
            return True
        partial_allocations.suspend(gang)
    if kept:  # as before: it keeps what it can get beside the reserved nodes (A2)
        _place_minima(cycle, gang, constraints)
    return False


def _place_minima(cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    """The first choice of sub-groups that fits (T0); for a gang without a choice the only one. Once members hold room
    the choice is made."""
    failure = _place_chosen(cycle, gang, constraints)
    if failure is None or gang.spec.tree is None or gang.total_found:
        return failure
    first = gang.spec.minima
    for other in islice(gang.choices(), 1, None):
        gang.choose(other)
        if not gang.missing() and _place_chosen(cycle, gang, constraints) is None:
            return None
    gang.choose(first)
    return failure


def _place_chosen(cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    lost = replacements(gang)
    failure = _replace_lost(cycle, gang, lost, constraints) if lost else None
    if gang.missing():
        return diagnosis.not_enough_members(gang)
    request = request_of(gang)
    if lost and not request.needed and not request.short:  # the present wave is placed; its Bindings are under way
        if failure is None:
            cycle.intake.queue(gang)
        return failure
    waves, partial_allocations = cycle.claims.waves, cycle.parts.partial_allocations
    freed = cycle.freed([gang])
    lacks_room = bool(freed) and waves.lacks_room(gang)
    transaction = Transaction(cycle.state)
    lifted, taken = _take_places(cycle, transaction, request)
    later = waves.later_tasks(gang)
    places: dict[str, str] = {}
    if lacks_room and not taken:  # pods that were evicted for it have not left yet
        taken = waves.of(gang)
        places = {task.uid: task.node for task in taken}
        waves.lift(transaction, gang)
        later = [*taken, *later]
    lifted += cycle.take_claimed_room(transaction, gang, later)
    keep = partial_allocations.applies_to(gang)
    failure = attempt(cycle.placer, [request._replace(later=later)], transaction, constraints, keep=keep)
    cycle.restore(transaction, lifted)
    if failure is not None and freed and not places and not keep:
        lifted, taken = _take_places(cycle, transaction, request)  # the attempt has undone it
        asked = [request._replace(later=later)]
        failure = None if cycle.attempt_where_freed(asked, freed, transaction, constraints) else failure
        cycle.restore(transaction, lifted)
    if failure is not None:
        if keep:
            partial_allocations.keep(gang, transaction, failure)
        return failure
    partial_allocations.release(gang)
    failure = later_waves.why_unrecordable(cycle, gang, later)
    if failure is not None:
        transaction.rollback()
        return failure
    placed = [task for task in transaction.placed if task.gang is gang]
    later_waves.claim(cycle, gang, taken, later)
    for task in later:
        if places.get(task.uid, task.node) != task.node:
            cycle.state.events.add_room_freed(places[task.uid])
    cycle.bind([gang], placed, commits=True)
    cycle.publish(transaction.planned)
    if not later:
        waves.keep(gang, taken, later, cycle.now_ns)
    cycle.intake.queue(gang)
    return None


def _take_places(
    cycle: Cycle, transaction: Transaction, request: PlacementRequest
) -> tuple[list[tuple[Task, int]], list[Task]]:
    """Pods of a later wave take the room that is claimed for them (D5). Room that is being freed for others of the gang
    does not count on those nodes. Returns tasks to be restored, and the placeholders whose places were taken."""
    lifted = cycle.claims.nominations.lift(transaction, request.gang) if cycle.claims.waves.of(request.gang) else []
    return lifted, cycle.claims.waves.take(cycle.placer, transaction, request)


def _replace_lost(cycle: Cycle, gang: GangState, lost: list[Task], constraints: Constraints) -> Diagnosis | None:
    """Members that an earlier, satisfied wave lost are replaced one by one (G7, D3), on reserved nodes first (R7)."""
    transaction = Transaction(cycle.state)
    reserved = cycle.claims.reservations.of(gang)
    places = {task.uid: reserved[task.uid] for task in lost if task.uid in reserved}
    take_reserved(cycle.placer, transaction, gang, places, ())
    own = cycle.freed([gang])
    lifted = cycle.claims.nominations.lift(transaction, gang)
    failure = one_by_one(cycle.placer, gang, transaction, _waiting(lost), constraints)
    cycle.restore(transaction, [*own, *lifted])  # room that is freed for it stays its own
    if transaction.placed:
        cycle.bind([gang], transaction.placed, commits=False)
    return failure


Singly = tuple[Sequence[Task], Sequence[Task], int]
"""Tasks that are placed as far as they fit, and tasks of which a number may make up the total."""


def asked_singly(gang: GangState) -> Singly:
    first: Sequence[Task] = pending_tasks(gang)
    if gang.ready():
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


def _place_singly(cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    first, rest, short = asked_singly(gang)
    whole: list[Task] = []
    why: Diagnosis | None = None
    if gang.spec.tree is not None and short:
        rest = sub_groups(gang, rest).singles
    elif gang.spec.tree is not None and not (first and not gang.ready() and request_of(gang).needed):
        whole, first, why = _place_sub_groups(cycle, gang, first, constraints)
    transaction = Transaction(cycle.state)
    failure = try_singly(cycle, gang, (first, rest, short), transaction, constraints)
    if transaction.placed or whole:
        cycle.bind([gang], [*whole, *transaction.placed], commits=False)
        cycle.intake.queue(gang)
        return None
    return failure or why


def _place_sub_groups(
    cycle: Cycle, gang: GangState, tasks: Sequence[Task], constraints: Constraints
) -> tuple[list[Task], list[Task], Diagnosis | None]:
    """Sub-groups beyond the chosen ones start as a whole or not at all (T0): the tasks that were placed, those that are
    placed one by one since their sub-group has started, and why the first sub-group did not fit."""
    split = sub_groups(gang, tasks)
    placed: list[Task] = []
    why: Diagnosis | None = None
    for unit in split.units:
        transaction = Transaction(cycle.state)
        failure = attempt(cycle.placer, [PlacementRequest(gang, unit)], transaction, constraints)
        placed += transaction.placed if failure is None else []
        why = why or failure
    if split.lacking and not split.units and not split.singles:
        why = diagnosis.sub_groups_lack_members(split.lacking)
    return placed, split.singles, why
