"""allocate: gangs get their nodes, the minima all or nothing (G2), then the surplus as far as there is room (G3)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from enbloc.engine.core.claims.room import take_reserved
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.gang_groups import hold_apart, start, start_whole
from enbloc.engine.core.placement.attempt import attempt, one_by_one
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import PlacementRequest, replacements, request_of
from enbloc.engine.core.placement.sub_groups import sub_groups
from enbloc.engine.core.queue_loop import serve_all
from enbloc.engine.core.queueing.scheduling_queue import SchedulingQueue
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.waves import later_waves
from enbloc.engine.features.waves.waves import Waves


def allocate(cycle: Cycle) -> None:
    """Gangs get their nodes."""
    place_all(cycle, cycle.queues.placement)


def backfill(cycle: Cycle) -> None:
    """Gangs whose tasks request nothing (BestEffort) are placed where there is a place left."""
    place_all(cycle, cycle.queues.best_effort)


def place_all(cycle: Cycle, queue: SchedulingQueue) -> None:
    """Serves the gangs of a scheduling queue."""
    cycle.features.serving_begins(cycle, queue)
    serve_all(cycle, queue, lambda gang: _serve(cycle, queue, gang))
    cycle.features.serving_ends(cycle, queue)


def _serve(cycle: Cycle, queue: SchedulingQueue, gang: GangState) -> Diagnosis | None:
    """The turn of a gang, or of the group that it starts with; a diagnosis says why it failed."""
    features = cycle.features
    constraints = features.pre_filter(cycle, queue, gang, cycle.constraints(gang))
    failure = attempt_unit(cycle, gang, constraints)
    if failure is not None and not features.post_filter(cycle, queue, gang, constraints, failure):
        return failure
    features.served(cycle, queue, gang)
    return None


def places_singly(gang: GangState) -> bool:
    """Whether its tasks are placed one by one: surplus, and replacements of lost members of a satisfied gang."""
    return gang.satisfied or (gang.ready() and not gang.total_held)


def attempt_unit(cycle: Cycle, gang: GangState, constraints: Constraints, *, holds: bool = True) -> Diagnosis | None:
    """One attempt for a gang, or for the group that it starts with; a diagnosis says why it failed. `holds`: whether a
    NonStrict group that does not fit holds what does."""
    if places_singly(gang):
        return _place_singly(cycle, gang, constraints)
    group = cycle.groups.of(gang)
    if group is not None and not cycle.intake.may_start(group):
        return hold_apart(cycle, group, constraints)
    if group is None or has_room_for_its_wave(cycle, gang):
        return _place_minima(cycle, gang, constraints)
    return start(cycle, group, constraints) if holds else start_whole(cycle, group, constraints)


def has_room_for_its_wave(cycle: Cycle, gang: GangState) -> bool:
    """Whether its group has started, and room was claimed then for the wave that waits: it starts by itself (D5)."""
    return bool(gang.covered and cycle.features.get(Waves).of(gang))


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
    waves = cycle.features.get(Waves)
    freed = cycle.freed([gang])
    lacks_room = bool(freed) and waves.lacks_room(gang)
    transaction = Transaction(cycle.state)
    lifted, taken = _take_places(cycle, transaction, request)
    later = waves.later_tasks(gang)
    places: dict[str, str] = {}
    if lacks_room and not taken:  # pods that were evicted for it have not left yet
        taken = waves.of(gang)
        places = {task.uid: task.node for task in taken}
        waves.lift_places(transaction, gang)
        later = [*taken, *later]
    lifted += cycle.take_claimed_room(transaction, gang, later)
    failure = attempt(cycle.placer, [request._replace(later=later)], transaction, constraints)
    cycle.restore(transaction, lifted)
    if failure is not None and freed and not places:
        lifted, taken = _take_places(cycle, transaction, request)  # the attempt has undone it
        asked = [request._replace(later=later)]
        failure = None if cycle.attempt_where_freed(asked, freed, transaction, constraints) else failure
        cycle.restore(transaction, lifted)
    if failure is not None:
        return failure
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
    waves = cycle.features.get(Waves)
    lifted = cycle.claims.lift(transaction, request.gang) if waves.of(request.gang) else []
    return lifted, waves.take_places(cycle.placer, transaction, request)


def _replace_lost(cycle: Cycle, gang: GangState, lost: list[Task], constraints: Constraints) -> Diagnosis | None:
    """Members that an earlier, satisfied wave lost are replaced one by one (G7, D3), on reserved nodes first (R7)."""
    transaction = Transaction(cycle.state)
    reserved = cycle.claims.closing.of(gang)
    places = {task.uid: reserved[task.uid] for task in lost if task.uid in reserved}
    take_reserved(cycle.placer, transaction, gang, places, ())
    own = cycle.freed([gang])
    lifted = cycle.claims.lift(transaction, gang)
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
