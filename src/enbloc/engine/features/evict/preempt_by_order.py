"""preempt by order: a gang takes the room of every gang of its queue that comes after it, by what is left to do.

Whenever a gang has come or gone while others wait, all gangs of the queue are placed anew in their order, as if no pod
of theirs ran yet. If a gang that waits gets a place that way, the gangs that run and do not keep theirs are evicted:
those that come too late in the order for any room, and those that have to move to another node. Like any eviction it is
planned whole, and the room is claimed before pods leave it. It pays only where a gang that is evicted goes on
where it was: with checkpoints, as in `enbloc replay`.

A gang is left where it is for its first second, so that no instant evicts it twice. Gangs that start together with
others (K7), and gangs with a pod that may not be evicted or that a PodDisruptionBudget covers, are never moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.events import BEYOND_ROOM
from enbloc.engine.features.awaited.awaited_pods import puts_off
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.nominations import EvictedGangs, Nominations
from enbloc.units import SECOND

LEFT_ALONE_NS: Final = SECOND
_ENDED: Final = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})


class PreemptByOrder(Feature):
    retried_on = BEYOND_ROOM

    def __init__(self) -> None:
        self.packed: dict[str, object] = {}
        """Queue → the gangs that it was last packed anew for."""

    def retry_all(self) -> None:
        self.packed.clear()


class _Packed(NamedTuple):
    """Which gangs have a place if all are placed anew, in order."""

    starts: list[tuple[GangState, list[tuple[Task, str]]]]
    """Gangs that wait, and where their tasks go."""
    leaves: list[GangState]
    """Gangs that run, and are not where they were."""


def run(cycle: Cycle) -> None:
    names = {one.queue for one in cycle.queues.placement.equivalences() if one.unschedulable}
    for name in sorted(names):
        _serve(cycle, name)


def _serve(cycle: Cycle, name: str) -> None:
    waiting = _waiting(cycle, name)
    running = _running(cycle, name) if waiting else []
    gangs = (frozenset(gang.key for gang in waiting), frozenset(gang.key for gang in running))
    known = cycle.features.get(PreemptByOrder).packed
    if not waiting or not running or known.get(name) == gangs:
        return
    if any(map(cycle.claims.nominated, waiting)):
        return  # room is being freed already
    known[name] = gangs
    packed = _pack(cycle, waiting, running)
    if packed.starts:
        _carry_out(cycle, packed)


def _waiting(cycle: Cycle, name: str) -> list[GangState]:
    found: list[GangState] = []
    for equivalence in cycle.queues.placement.in_queue(name):
        head = equivalence.head() if equivalence.unschedulable else None
        if head is not None and head.order.band is Band.MINIMA:
            found += equivalence.gangs()
    put_off = puts_off(cycle)
    return [
        gang for gang in found if cycle.units.of(gang).is_alone and not gang.spec.never_preempts and not put_off(gang)
    ]


def _running(cycle: Cycle, name: str) -> list[GangState]:
    gangs = cycle.state.gangs.values()
    found = [gang for gang in gangs if gang.spec.queue == name and gang.total_occupied and _may_move(cycle, gang)]
    return [gang for gang in found if any(task.status is TaskStatus.BOUND for task in gang.tasks.values())]


def _may_move(cycle: Cycle, gang: GangState) -> bool:
    if not cycle.units.of(gang).is_alone or not gang.need.ready:
        return False
    return all(_may_leave(cycle, task) for task in gang.tasks.values() if task.status not in _ENDED)


def _may_leave(cycle: Cycle, task: Task) -> bool:
    immunity = cycle.features.get(EvictionHistory).immunity
    if not immunity.is_evictable(task) or cycle.state.budgets.of(task) or not immunity.may_go(task):
        return False
    until_ns = (task.since_ns if task.since_ns is not None else cycle.now_ns) + LEFT_ALONE_NS
    if until_ns > cycle.now_ns:
        immunity.look_again_at(until_ns)
    return until_ns <= cycle.now_ns


def _pack(cycle: Cycle, waiting: Sequence[GangState], running: Sequence[GangState]) -> _Packed:
    """Places all gangs in order, those that run as if they waited. Leaves the state as it was."""
    order: list[tuple[Order, GangState]] = [(cycle.order(gang), gang) for gang in waiting]
    order += [(cycle.order.running(gang, cycle.now_ns), gang) for gang in running]
    transaction = Transaction(cycle.state)
    before = {id(gang): _lift(cycle, transaction, gang) for gang in running}
    packed = _Packed([], [])
    failed: set[Hashable] = set()
    for _, gang in sorted(order, key=lambda pair: pair[0]):
        places = before.get(id(gang))
        if places is None:
            alike = _alike(cycle, gang)
            if alike not in failed and _place(cycle, transaction, request := request_of(gang)):
                packed.starts.append((gang, [(task, task.node) for task in request.minimum]))
            elif alike is not None:
                failed.add(alike)
        elif not _place(cycle, transaction, PlacementRequest(gang, list(places))) or _has_moved(places):
            packed.leaves.append(gang)
    transaction.rollback()
    return packed


def _lift(cycle: Cycle, transaction: Transaction, gang: GangState) -> dict[Task, str]:
    """Takes the tasks of a gang off their nodes. Returns where they were."""
    places = {task: task.node for task in gang.tasks.values() if task.status is TaskStatus.BOUND}
    for task in places:
        transaction.lift(task)
    return places


def _has_moved(places: Mapping[Task, str]) -> bool:
    """Tasks of one class may trade places."""
    then = Counter((task.cls.id, node) for task, node in places.items())
    return then != Counter((task.cls.id, task.node) for task in places)


def _alike(cycle: Cycle, gang: GangState) -> Hashable:
    """What a gang that waits asks for, if only room decides whether it fits: room only becomes less while gangs are
    placed, so what was asked for in vain is not tried again."""
    equivalence = cycle.queues.equivalence_of(gang)
    return equivalence.facts if equivalence is not None and equivalence.monotone else None


def _place(cycle: Cycle, transaction: Transaction, request: PlacementRequest) -> bool:
    checkpoint = transaction.checkpoint
    if attempt(cycle.placer, [request], transaction, cycle.constraints(request.gang), keep=True) is None:
        return True
    transaction.rollback(checkpoint)
    return False


def _carry_out(cycle: Cycle, packed: _Packed) -> None:
    first, left = packed.starts[0][0], [gang.key for gang in packed.leaves]
    nominations, evicted = cycle.features.get(Nominations), cycle.features.get(EvictedGangs)
    claims, record = [nominations.claim(gang, places) for gang, places in packed.starts], evicted.claim(first, left)
    if not cycle.claims.records.fit([*claims, *([record] if record else ())]):
        return
    for claim in claims:
        gangs = cycle.titles.listed(packed.leaves, claim.gang.key.namespace)
        nominations.make(claim, f"pods of {gangs} are evicted for it")
    if record is not None:
        evicted.make(record)
    for gang in packed.leaves:
        why = f"makes room for {cycle.titles.of(first, gang.key.namespace)}, which has less left to do"
        for task in sorted(gang.tasks.values(), key=lambda task: task.order):
            if task.status is TaskStatus.BOUND:
                cycle.features.get(EvictionHistory).evict(task, first, "Preempted", why)
