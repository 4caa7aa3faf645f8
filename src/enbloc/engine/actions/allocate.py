"""allocate: gangs get their nodes, the minima all or nothing (G2), then the surplus as far as there is room (G3)."""

from __future__ import annotations

from enbloc.engine.actions.gang_groups import resolve_deadlock, start
from enbloc.engine.actions.queue_loop import serve_all
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.engine import MINIMA, SURPLUS, Engine
from enbloc.engine.placement.attempt import attempt, no_shadow, one_by_one, pending_tasks, replacements, split
from enbloc.engine.queueing.scheduling_queue import Order, SchedulingQueue
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
        serve_all(engine, lane, lambda gang: serve(engine, gang))
        return
    engine.easy.heads = {}
    serve_all(engine, lane, lambda gang: _serve_behind(engine, gang))
    engine.placer.shadow = no_shadow
    for queue in {equivalence.queue for equivalence in lane.equivalences()}:
        head = first_waiting(engine, queue)
        if head is not None:
            engine.close_to(head)
            engine.easy.shadow(head, engine.now, len(engine.served))
    engine.expected_starts.settle_heads(engine.easy.heads, engine.now)


def _serve_behind(engine: Engine, gang: GangState) -> Diagnosis | None:
    """EASY: whoever is not first in its queue must not delay the one that is."""
    head = first_waiting(engine, gang.spec.queue)
    band = SURPLUS if gang.ready() else MINIMA
    if head is not None and engine.order(head, MINIMA) >= engine.order(gang, band):
        head = None
    engine.placer.shadow = no_shadow
    if head is not None and engine.easy is not None:
        engine.close_to(head)
        engine.placer.shadow = engine.easy.shadow(head, engine.now, len(engine.served))
    return serve(engine, gang)


def first_waiting(engine: Engine, queue: str) -> GangState | None:
    """The first in a queue that found no room."""
    found: tuple[Order, GangState] | None = None
    for equivalence in engine.allocating.in_queue(queue):
        head = (
            equivalence.head()
            if equivalence.unschedulable and equivalence.diagnosis is not None and not equivalence.diagnosis.of_queue
            else None
        )
        if head is not None and head[0][-5] == MINIMA and (found is None or head[0] < found[0]):
            found = head
    return found[1] if found else None


def serve(engine: Engine, gang: GangState) -> Diagnosis | None:
    """One try for a gang; a story says why it failed."""
    engine.close_to(gang)
    if gang.satisfied or gang.ready():
        return _singly(engine, gang)
    group = engine.groups.of(gang)
    return _minima(engine, gang) if group is None else start(engine, group)


def _minima(engine: Engine, gang: GangState) -> Diagnosis | None:
    lost = replacements(gang)
    told = None
    if lost:
        transaction = Transaction(engine.state)
        told = one_by_one(engine.placer, gang, transaction, lost)
        if transaction.placed:
            engine.bind(gang, transaction.placed, commits=False)
    if gang.missing():
        return diagnosis.not_enough_members(gang)
    needed, _, short = split(gang, pending_tasks(gang))
    if lost and not needed and not short:  # the present wave is placed, and its Bindings have not come back
        if told is None:
            engine.queue(gang)
        return told
    transaction, taken = engine.waves.take(engine.placer, gang)
    others = engine.take_own_places(transaction, gang)
    later = engine.waves.later_tasks(gang)
    keep = engine.kept.applies_to(gang)
    told = attempt(engine.placer, gang, transaction, later, keep=keep)
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


def _singly(engine: Engine, gang: GangState) -> Diagnosis | None:
    """Once satisfied, what was lost is replaced one by one (G7); what is beyond the minima always is (G3). Of those
    that may make up the total, one that does not fit is passed over."""
    first = pending_tasks(gang)
    rest: list[Task] = []
    short = 0
    if not gang.ready():
        needed, rest, short = split(gang, first)
        first = needed if needed or short else rest
    transaction = Transaction(engine.state)
    kept = [(task, engine.state.nodes.rows[task.node]) for task in engine.nominations.of(gang)]
    others = engine.nominations.lift(transaction, gang)
    told = one_by_one(engine.placer, gang, transaction, first)
    if short:
        of_rest = one_by_one(engine.placer, gang, transaction, rest, short)
        told = told or of_rest
    engine.give_back(transaction, [*kept, *others])  # what is being made for it is still its own
    placed = transaction.placed
    if placed:
        engine.bind(gang, placed, commits=False)
        engine.queue(gang)
        return None
    return told
