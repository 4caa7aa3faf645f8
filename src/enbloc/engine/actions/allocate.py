"""allocate: gangs get their nodes, the minima all or nothing (G2), then the surplus as far as there is room (G3)."""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.actions.gang_groups import resolve_deadlock, start
from enbloc.engine.actions.queue_loop import serve_all
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.engine import Engine
from enbloc.engine.ordering import Band, Order
from enbloc.engine.placement.attempt import attempt, one_by_one
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import pending_tasks, replacements, request_of
from enbloc.engine.queueing.scheduling_queue import SchedulingQueue
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState, Task


def run(engine: Engine) -> None:
    place_all(engine, engine.allocating)
    resolve_deadlock(engine)
    for gang, told in engine.kept.give_back():
        engine.reporter.tell(gang, told, of_gang=False)  # those of its pods that had a place while the others were told


def place_all(engine: Engine, lane: SchedulingQueue) -> None:
    """Serves the gangs of a lane."""

    engine.kept.rouse(lane)
    if engine.easy is None or lane is not engine.allocating:
        serve_all(engine, lane, lambda gang: serve(engine, gang, engine.constraints(gang)))
        return
    engine.easy.heads = {}
    serve_all(engine, lane, lambda gang: _serve_behind(engine, gang))
    for queue in {equivalence.queue for equivalence in lane.equivalences()}:
        head = first_waiting(engine, queue)
        if head is not None:
            engine.easy.shadow(head, engine.constraints(head), engine.now, len(engine.served))
    engine.expected_starts.settle_heads(engine.easy.heads, engine.now)


def _serve_behind(engine: Engine, gang: GangState) -> Diagnosis | None:
    """EASY: whoever is not first in its queue must not delay the one that is."""
    head = first_waiting(engine, gang.spec.queue)
    band = Band.SURPLUS if gang.ready() else Band.MINIMA
    constraints = engine.constraints(gang)
    if head is not None and engine.order(head) < engine.order(gang, band):
        assert engine.easy is not None
        shadow = engine.easy.shadow(head, engine.constraints(head), engine.now, len(engine.served))
        constraints = constraints._replace(shadow=shadow)
    return serve(engine, gang, constraints)


def first_waiting(engine: Engine, queue: str) -> GangState | None:
    """The first in a queue that found no room."""
    found: tuple[Order, GangState] | None = None
    for equivalence in engine.allocating.in_queue(queue):
        head = (
            equivalence.head()
            if equivalence.unschedulable and equivalence.diagnosis is not None and not equivalence.diagnosis.of_queue
            else None
        )
        if head is not None and head[0].band is Band.MINIMA and (found is None or head[0] < found[0]):
            found = head
    return found[1] if found else None


def serve(engine: Engine, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    """One attempt for a gang, or for the group that it starts with; a diagnosis says why it failed."""
    if gang.satisfied or gang.ready():
        return _singly(engine, gang, constraints)
    group = engine.groups.of(gang)
    return _minima(engine, gang, constraints) if group is None else start(engine, group, constraints)


def _minima(engine: Engine, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    lost = replacements(gang)
    told = None
    if lost:
        transaction = Transaction(engine.state)
        told = one_by_one(engine.placer, gang, transaction, lost, constraints)
        if transaction.placed:
            engine.bind(gang, transaction.placed, commits=False)
    if gang.missing():
        return diagnosis.not_enough_members(gang)
    request = request_of(gang)
    if lost and not request.needed and not request.short:  # the present wave is placed; its Bindings are under way
        if told is None:
            engine.queue(gang)
        return told
    transaction, taken = engine.waves.take(engine.placer, request)
    others = engine.take_own_places(transaction, gang)
    later = engine.waves.later_tasks(gang)
    keep = engine.kept.applies_to(gang)
    told = attempt(engine.placer, [request._replace(later=later)], transaction, constraints, keep=keep)
    engine.give_back(transaction, others)
    if told is None:
        engine.kept.let_go(gang)
        if later:  # written down before anybody relies on it
            engine.waves.keep(gang, taken, later, engine.now)
        engine.bind(gang, [task for task in transaction.placed if task.gang is gang], commits=True)
        if not later:
            engine.waves.keep(gang, taken, later, engine.now)
        engine.queue(gang)
    elif keep:
        engine.kept.keep(gang, transaction, told)
    return told


def _singly(engine: Engine, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    """Once satisfied, what was lost is replaced one by one (G7); what is beyond the minima always is (G3). Of those
    that may make up the total, one that does not fit is passed over."""
    first: Sequence[Task] = pending_tasks(gang)
    rest: Sequence[Task] = ()
    short = 0
    if not gang.ready():
        _, needed, rest, short, _ = request_of(gang, first)
        first = needed if needed or short else rest
    transaction = Transaction(engine.state)
    kept = [(task, engine.state.nodes.rows[task.node]) for task in engine.nominations.of(gang)]
    others = engine.nominations.lift(transaction, gang)
    told = one_by_one(engine.placer, gang, transaction, first, constraints)
    if short:
        of_rest = one_by_one(engine.placer, gang, transaction, rest, constraints, short)
        told = told or of_rest
    engine.give_back(transaction, [*kept, *others])  # what is being made for it is still its own
    placed = transaction.placed
    if placed:
        engine.bind(gang, placed, commits=False)
        engine.queue(gang)
        return None
    return told
