"""preempt by order: a gang takes the room of every gang of its queue that comes after it, by what is left to do.

Whenever a gang has come or gone while others wait, all gangs of the queue are placed anew in their order, as if no pod
of theirs ran yet. If a gang that waits gets a place that way, the gangs that run and do not keep theirs are evicted:
those that come too late in the order for any room, and those that have to move to another node. Like any eviction it is
planned whole, and the room is claimed before pods leave it (P1, P3). It pays only where a gang that is evicted goes on
where it was: with checkpoints, as in `enbloc replay`.

A gang is left where it is for its first second, so that no instant evicts it twice. Gangs that start together with
others (K7), and gangs with a pod that may not be evicted or that a PodDisruptionBudget covers (P2), are never moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.ordering import Band, Order
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.features.admission.awaited_pods import puts_off
from enbloc.engine.features.evict.evictable import is_evictable
from enbloc.engine.features.evict.evicted_gangs import EvictedGangs
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.nominations import Nominations
from enbloc.units import SECOND

LEFT_ALONE_NS: Final = SECOND
_ENDED: Final = frozenset({TaskStatus.SUCCEEDED, TaskStatus.FAILED})


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
    if not waiting or not running or cycle.features.get(EvictionHistory).packed.get(name) == gangs:
        return
    if any(cycle.claims.nominated(gang) for gang in waiting):
        return  # room is being freed already
    cycle.features.get(EvictionHistory).packed[name] = gangs
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
    evictions = cycle.features.get(EvictionHistory)
    if not is_evictable(task, evictions.immunity) or cycle.state.budgets.of(task) or not evictions.may_go(task):
        return False
    until_ns = (task.since_ns if task.since_ns is not None else cycle.now_ns) + LEFT_ALONE_NS
    if until_ns > cycle.now_ns:
        evictions.look_again_at(until_ns)
    return until_ns <= cycle.now_ns


def _pack(cycle: Cycle, waiting: Sequence[GangState], running: Sequence[GangState]) -> _Packed:
    """Places all gangs in order, those that run as if they waited. Leaves the state as it was."""
    rows = cycle.state.nodes.rows
    order: list[tuple[Order, GangState]] = [(cycle.order(gang), gang) for gang in waiting]
    order += [(cycle.order.running(gang, cycle.now_ns), gang) for gang in running]
    transaction = Transaction(cycle.state)
    lifted: dict[int, list[tuple[Task, int]]] = {}
    for gang in running:
        tasks = [task for task in gang.tasks.values() if task.status is TaskStatus.BOUND]
        lifted[id(gang)] = [(task, rows[task.node]) for task in tasks]
        for task in tasks:
            transaction.lift(task)
    packed = _Packed([], [])
    failed: set[Hashable] = set()
    for _, gang in sorted(order, key=lambda pair: pair[0]):
        places = lifted.get(id(gang))
        if places is None:
            alike = _alike(cycle, gang)
            if alike not in failed and _place(cycle, transaction, request := request_of(gang)):
                packed.starts.append((gang, [(task, task.node) for task in request.minimum]))
            elif alike is not None:
                failed.add(alike)
            continue
        fits = _place(cycle, transaction, PlacementRequest(gang, [task for task, _ in places]))
        if not fits or _spots(places) != _spots([(task, rows[task.node]) for task, _ in places]):
            packed.leaves.append(gang)
    transaction.rollback()
    return packed


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


def _spots(places: Sequence[tuple[Task, int]]) -> Counter[tuple[int, int]]:
    """Tasks of one class may trade places."""
    return Counter((task.cls.id, row) for task, row in places)


def _carry_out(cycle: Cycle, packed: _Packed) -> None:
    first = packed.starts[0][0]
    evicted = cycle.features.get(EvictedGangs).claim(first, (gang.key for gang in packed.leaves))
    claims = [cycle.features.get(Nominations).claim(gang, places) for gang, places in packed.starts]
    if not cycle.claims.records.fit([*claims, *([evicted] if evicted else ())]):
        return
    for claim in claims:
        gangs = cycle.titles.listed(packed.leaves, claim.gang.key.namespace)
        cycle.features.get(Nominations).make(claim, f"pods of {gangs} are evicted for it")
    cycle.features.get(EvictedGangs).add(first, (gang.key for gang in packed.leaves))
    for gang in packed.leaves:
        why = f"makes room for {cycle.titles.of(first, gang.key.namespace)}, which has less left to do"
        for task in sorted(gang.tasks.values(), key=lambda task: task.order):
            if task.status is TaskStatus.BOUND:
                cycle.features.get(EvictionHistory).evict(task, first, "Preempted", why)
