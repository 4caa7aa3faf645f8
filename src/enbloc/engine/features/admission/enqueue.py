"""enqueue: a gang is enqueued when its minResources could be met (M6). Its pods are created only then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.queue_loop import serve_all
from enbloc.engine.core.tables.resources import PODS, Ints, total
from enbloc.engine.core.tables.tasks import GangState, held_tasks
from enbloc.engine.core.why.diagnosis import INSUFFICIENT, Diagnosis, shown
from enbloc.engine.decisions import Reason
from enbloc.engine.features.admission.awaited_pods import AwaitedPods
from enbloc.engine.features.admission.deadlines import Deadlines
from enbloc.engine.features.admission.demand import PREEMPTING, RECLAIMING, STARVING
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.rules import ByShare
from enbloc.engine.features.reserve.starvation import Starvation


def run(cycle: Cycle) -> None:
    _wake_by_shares(cycle)
    if not cycle.queues.admission.active():
        return
    totals = cycle.state.nodes.totals()
    used = totals - cycle.state.free_total()[: len(totals)]

    def serve(gang: GangState) -> Diagnosis | None:
        failure = _refusal(cycle, gang, totals, used)
        if failure is None:
            cycle.intake.enqueue(gang)
            return None
        for ground, freed in _by_eviction_or_starvation(cycle, gang):
            if _refusal(cycle, gang, totals, used, freed) is None:
                cycle.intake.enqueue(gang, ground)
                return None
        return failure

    serve_all(cycle, cycle.queues.admission, serve, with_enqueued=True)


def _wake_by_shares(cycle: Cycle) -> None:
    """Shares have changed, and with them what may be reclaimed (M6, G9): gangs are looked at again if their queue is
    below its share and another one is above. And so is what awaited pods of other queues count for (S4)."""
    waiting, awaited = cycle.queues.admission, set(cycle.features.get(AwaitedPods).queues())
    if not waiting.equivalences() or not (awaited or cycle.config.runs("reclaim")):
        return
    if not cycle.features.get(EvictionHistory).note_shares():
        return
    if awaited:
        waiting.wake(lambda equivalence: bool(awaited - {equivalence.queue}))
    if not cycle.config.runs("reclaim"):
        return
    queues = cycle.state.queues
    giving = map(queues.get, {name for name, _ in cycle.features.get(EvictionHistory).evictable.cells()})
    if any(queue.children or queues.above_share(queue) for queue in giving):
        taking = map(queues.get, waiting.queues())
        names = {queue.name for queue in taking if queue.children or queues.below_share(queue)}
        waiting.wake(lambda equivalence: equivalence.queue in names)


class Admission(Feature):
    """Gangs with minResources wait until these could be met."""

    def gates(self, gang: GangState) -> bool:
        return gang.spec.min_resources is not None

    def why_gated(self, cycle: Cycle, gang: GangState) -> Diagnosis | None:
        return refusal(cycle, gang)


def refusal(cycle: Cycle, gang: GangState) -> Diagnosis | None:
    """Why a gang is not enqueued, as things are."""
    totals = cycle.state.nodes.totals()
    return _refusal(cycle, gang, totals, totals - cycle.state.free_total()[: len(totals)])


class Freed(NamedTuple):
    """Resources that evictions could free for a gang."""

    in_all: Mapping[int, int] | None
    """By column; `None`: in time all that the cluster has."""
    of_queue: Mapping[int, int] = {}
    """The part of it that its own queue uses."""
    may_exceed_cluster: bool = False
    """Whether the gang is enqueued even if the whole cluster has less than it requests."""


NOTHING_FREED = Freed({})


def _by_eviction_or_starvation(cycle: Cycle, gang: GangState) -> Iterator[tuple[str, Freed]]:
    """Grounds on which a gang may be enqueued beyond free resources, and what could be freed for it (M6)."""
    deadlines = cycle.features.find(Deadlines)
    if deadlines is not None and deadlines.has_passed(gang):
        yield STARVING, Freed(None, may_exceed_cluster=True)
    starvation = cycle.features.find(Starvation)
    if starvation is not None and starvation.is_starving(gang):
        yield STARVING, Freed(None)
    if gang.spec.never_preempts:
        return
    if cycle.config.runs("preempt") and cycle.config.enabled("priority", "preemptable"):
        queue, evictable = gang.spec.queue, cycle.features.get(EvictionHistory).evictable
        lower = [cell for cell in evictable.cells() if cell[0] == queue and cell[1] < gang.priority]
        if lower:
            freed = dict(enumerate(evictable.freed(lower).sum(axis=1).tolist()))
            yield PREEMPTING, Freed(freed, freed)
    if cycle.config.runs("reclaim"):
        found = _reclaimable(cycle, gang)
        if found:
            yield RECLAIMING, Freed(found)


def _reclaimable(cycle: Cycle, gang: GangState) -> dict[int, int]:
    """What other queues use beyond their deserved share and reclaim could free, by column."""
    asked = cycle.state.resources.amounts(gang.spec.min_resources or {})
    history = cycle.features.get(EvictionHistory)
    rules = ByShare(cycle.state, history, [gang], asked)
    found: dict[int, int] = {}
    for name in {queue for queue, _ in rules.cells()}:
        queue = cycle.state.queues.get(name)
        freed = (
            cycle.features.get(EvictionHistory)
            .evictable.freed([cell for cell in rules.cells() if cell[0] == name])
            .sum(axis=1)
        )
        for column in asked:
            if column < len(freed):
                excess = max(0, int(queue.used[column] - queue.deserved[column]))
                found[column] = found.get(column, 0) + min(excess, int(freed[column]))
    return found


def _refusal(cycle: Cycle, gang: GangState, totals: Ints, used: Ints, freed: Freed = NOTHING_FREED) -> Diagnosis | None:
    """Why the gang is not enqueued if `freed` is added to free resources; `None`: it is enqueued."""
    state = cycle.state
    amounts = state.resources.amounts(gang.spec.min_resources or {})
    state.nodes.widen()
    asked = {column: amount for column, amount in amounts.items() if amount and column != PODS}

    def name(column: int) -> str:
        return state.resources.names[column]

    if not cycle.config.enqueue.admit_oversized and not freed.may_exceed_cluster:
        for column, amount in asked.items():
            has = int(totals[column]) if column < len(totals) else 0
            if amount > has:
                why = (
                    f"requests {shown(name(column), amount)} {name(column)}, the cluster has {shown(name(column), has)}"
                )
                return _not_enqueued(gang, why, _insufficient(cycle, name(column)))
    more = {column: amount - freed.of_queue.get(column, 0) for column, amount in asked.items()}
    over = state.queues.over_capability(state.queue_of(gang), more, with_enqueued=True)
    if over is not None:
        queue, column = over
        reason = Reason("", f"queue {queue.name} may not use more {name(column)}", 0)
        in_use = shown(name(column), int(queue.used[column] + queue.enqueued[column]))
        capability = shown(name(column), queue.limits[column])
        why = (
            f"requests {shown(name(column), asked[column])} {name(column)}, "
            f"queue {queue.name} uses {in_use} of its capability of {capability}"
        )
        return _not_enqueued(gang, why, reason, of_queue=True)
    if freed.in_all is None:
        return None  # nodes will be reserved for it as they become free
    return _insufficient_free(cycle, gang, asked, totals, used, freed.in_all)


def _insufficient_free(
    cycle: Cycle, gang: GangState, asked: Mapping[int, int], totals: Ints, used: Ints, freed: Mapping[int, int]
) -> Diagnosis | None:
    """Compares with free resources, overcommitted by the configured factor, less what other enqueued gangs will use."""
    if cycle.config.enqueue.admit_oversized:
        totals_of = {c: max(int(totals[c]) if c < len(totals) else 0, asked[c]) for c in asked}
    else:
        totals_of = {column: int(totals[column]) for column in asked}
    queues = cycle.state.queues
    queues.update_deserved(cycle.state.foreign_room.shared())
    enqueued, kept = queues.enqueued_total(), queues.guaranteed_to_others(cycle.state.queue_of(gang))
    beyond_share = cycle.features.get(AwaitedPods).beyond_share(cycle.state.queue_of(gang), queues)
    reserved = cycle.claims.closing.kept_from(gang, cycle.now_ns)
    held = total([task.cls.request for mate in cycle.groups.mates(gang) for task in held_tasks(mate)])
    for column, amount in asked.items():
        taken = (int(used[column]) if column < len(used) else 0) + int(enqueued[column]) - beyond_share[column]
        taken += int(reserved[column]) if column < len(reserved) else 0
        taken -= freed.get(column, 0) + held.get(column, 0)  # what is held for its own group is its own (K8)
        name = cycle.state.resources.names[column]
        free = totals_of[column] * cycle.config.enqueue.overcommit_milli // 1000 - taken
        available = f"{shown(name, max(0, totals_of[column] - taken))} of {shown(name, totals_of[column])} available"
        if amount > free:
            return _not_enqueued(
                gang, f"requests {shown(name, amount)} {name}, {available}", _insufficient(cycle, name)
            )
        if kept[column] and amount > totals_of[column] - taken - int(kept[column]):
            guaranteed = f"{shown(name, int(kept[column]))} guaranteed to other queues"
            why = f"requests {shown(name, amount)} {name}, {available}, {guaranteed}"
            return _not_enqueued(gang, why, _insufficient(cycle, name), of_queue=True)
    return None


def _insufficient(cycle: Cycle, resource: str) -> Reason:
    """Counts all usable nodes: the resource is insufficient on all of them together."""
    return Reason("", f"{INSUFFICIENT}{resource}", int(cycle.state.nodes.usable().sum()))


def _not_enqueued(gang: GangState, why: str, reason: Reason, of_queue: bool = False) -> Diagnosis:
    missing = {**gang.spec.minima}
    rest = gang.spec.minimum - sum(missing.values())
    if rest > 0:
        missing[""] = rest
    message = f"not enqueued: {why}"
    return Diagnosis(PendingReason.NOT_ENOUGH_RESOURCES, message, missing=missing, reasons=(reason,), of_queue=of_queue)
