"""enqueue: a gang is enqueued when its minResources could be met (M6). Its pods are created only then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.queue_loop import serve_all
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import PODS, Ints, total
from enbloc.engine.core.tables.tasks import GangState, held_tasks
from enbloc.engine.core.why.diagnosis import INSUFFICIENT, Diagnosis, shown
from enbloc.engine.decisions import Reason
from enbloc.engine.features.admission.deadlines import Deadlines
from enbloc.engine.features.awaited.awaited_pods import AwaitedPods
from enbloc.engine.features.awaited.demand import PREEMPTING, RECLAIMING, STARVING
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.rules import ByShare
from enbloc.engine.features.reserve.starvation import Starvation


class Admission(Feature):
    """Gangs with minResources wait until these could be met."""

    def __init__(self) -> None:
        self._shares_version = 0

    def gates(self, gang: GangState) -> bool:
        return gang.spec.min_resources is not None

    def why_gated(self, cycle: Cycle, gang: GangState) -> Diagnosis | None:
        return _refusal(cycle, gang, *_totals(cycle))

    def note_shares(self, state: State) -> bool:
        """Notes what queues deserve. Whether one deserves another amount than when this was last noted: by demand of
        other gangs, say."""
        state.queues.update_deserved(state.foreign_room.shared())
        before, self._shares_version = self._shares_version, state.queues.shares_version
        return before != state.queues.shares_version


def run(cycle: Cycle) -> None:
    _wake_by_shares(cycle)
    if not cycle.queues.admission.active():
        return
    totals, used = _totals(cycle)

    def serve(gang: GangState) -> Diagnosis | None:
        failure = _refusal(cycle, gang, totals, used)
        if failure is None:
            cycle.intake.enqueue(gang)
            return None
        for ground, freed_for in _GROUNDS:
            freed = freed_for(cycle, gang)
            if freed is not None and _refusal(cycle, gang, totals, used, freed) is None:
                cycle.intake.enqueue(gang, ground)
                return None
        return failure

    serve_all(cycle, cycle.queues.admission, serve, with_enqueued=True)


def _totals(cycle: Cycle) -> tuple[dict[int, int], Ints]:
    """By column, what the cluster has, and what of it is used."""
    totals = cycle.state.nodes.totals()
    return dict(enumerate(totals.tolist())), totals - cycle.state.free_total()[: len(totals)]


def _wake_by_shares(cycle: Cycle) -> None:
    """Shares have changed, and with them what may be reclaimed (M6, G9): gangs are looked at again if their queue is
    below its share and another one is above. And so is what awaited pods of other queues count for (S4)."""
    waiting, awaited = cycle.queues.admission, set(cycle.features.get(AwaitedPods).queues())
    reclaims = cycle.config.runs("reclaim")
    if not waiting.equivalences() or not (awaited or reclaims):
        return
    if not cycle.features.get(Admission).note_shares(cycle.state):
        return
    if awaited:
        waiting.wake(lambda equivalence: bool(awaited - {equivalence.queue}))
    if reclaims and _some_queue_gives(cycle):
        queues = cycle.state.queues
        taking = map(queues.get, waiting.queues())
        names = {queue.name for queue in taking if queue.children or queues.below_share(queue)}
        waiting.wake(lambda equivalence: equivalence.queue in names)


def _some_queue_gives(cycle: Cycle) -> bool:
    """Whether a queue is above its share and has pods that may be evicted."""
    queues, cells = cycle.state.queues, cycle.features.get(EvictionHistory).evictable.cells()
    return any(queue.children or queues.above_share(queue) for queue in map(queues.get, {name for name, _ in cells}))


class Freed(NamedTuple):
    """Resources that evictions could free for a gang."""

    in_all: Mapping[int, int] | None
    """By column; `None`: in time all that the cluster has."""
    of_queue: Mapping[int, int] = {}
    """The part of it that its own queue uses."""
    may_exceed_cluster: bool = False
    """Whether the gang is enqueued even if the whole cluster has less than it requests."""


NOTHING_FREED = Freed({})


def _past_deadline(cycle: Cycle, gang: GangState) -> Freed | None:
    deadlines = cycle.features.find(Deadlines)
    has_passed = deadlines is not None and deadlines.has_passed(gang)
    return Freed(None, may_exceed_cluster=True) if has_passed else None


def _starving(cycle: Cycle, gang: GangState) -> Freed | None:
    starvation = cycle.features.find(Starvation)
    return Freed(None) if starvation is not None and starvation.is_starving(gang) else None


def _preemptable(cycle: Cycle, gang: GangState) -> Freed | None:
    """What gangs of lower priority in its queue use."""
    may_preempt = cycle.config.runs("preempt") and cycle.config.enabled("priority", "preemptable")
    if not may_preempt or gang.spec.never_preempts:
        return None
    queue, evictable = gang.spec.queue, cycle.features.get(EvictionHistory).evictable
    lower = [cell for cell in evictable.cells() if cell[0] == queue and cell[1] < gang.priority]
    freed = dict(enumerate(evictable.freed(lower).sum(axis=1).tolist())) if lower else {}
    return Freed(freed, freed) if lower else None


def _reclaimable(cycle: Cycle, gang: GangState) -> Freed | None:
    """What other queues use beyond their deserved share and reclaim could free."""
    if not cycle.config.runs("reclaim") or gang.spec.never_preempts:
        return None
    asked, history = cycle.state.resources.amounts(gang.spec.min_resources or {}), cycle.features.get(EvictionHistory)
    cells = ByShare(cycle, [gang], asked).cells()
    found: dict[int, int] = {}
    for name in {queue for queue, _ in cells}:
        queue = cycle.state.queues.get(name)
        freed = history.evictable.freed([cell for cell in cells if cell[0] == name]).sum(axis=1)
        for column in (column for column in asked if column < len(freed)):
            excess = max(0, int(queue.used[column] - queue.deserved[column]))
            found[column] = found.get(column, 0) + min(excess, int(freed[column]))
    return Freed(found) if found else None


_GROUNDS: Final[tuple[tuple[str, Callable[[Cycle, GangState], Freed | None]], ...]] = (
    (STARVING, _past_deadline),
    (STARVING, _starving),
    (PREEMPTING, _preemptable),
    (RECLAIMING, _reclaimable),
)
"""Grounds on which a gang may be enqueued beyond free resources, in order, and what could be freed for it (M6)."""


def _refusal(
    cycle: Cycle, gang: GangState, totals: Mapping[int, int], used: Ints, freed: Freed = NOTHING_FREED
) -> Diagnosis | None:
    """Why the gang is not enqueued if `freed` is added to free resources; `None`: it is enqueued."""
    amounts = cycle.state.resources.amounts(gang.spec.min_resources or {})
    cycle.state.nodes.widen()
    asked = {column: amount for column, amount in amounts.items() if amount and column != PODS}
    if not cycle.config.enqueue.admit_oversized and not freed.may_exceed_cluster:
        for column, amount in asked.items():
            if amount > (has := totals.get(column, 0)):
                return _not_enqueued(cycle, gang, column, amount, f"the cluster has {_shown(cycle, column, has)}")
    why = _over_capability(cycle, gang, asked, freed.of_queue)
    if why is not None or freed.in_all is None:
        return why  # or nodes will be reserved for it as they become free
    return _insufficient_free(cycle, gang, asked, totals, used, freed.in_all)


def _over_capability(
    cycle: Cycle, gang: GangState, asked: Mapping[int, int], freed: Mapping[int, int]
) -> Diagnosis | None:
    more = {column: amount - freed.get(column, 0) for column, amount in asked.items()}
    over = cycle.state.queues.over_capability(cycle.state.queue_of(gang), more, with_enqueued=True)
    if over is None:
        return None
    queue, column = over
    in_use = _shown(cycle, column, int(queue.used[column] + queue.enqueued[column]))
    why = f"queue {queue.name} uses {in_use} of its capability of {_shown(cycle, column, queue.limits[column])}"
    limit = f"queue {queue.name} may not use more {cycle.state.resources.names[column]}"
    return _not_enqueued(cycle, gang, column, asked[column], why, of_queue=Reason("", limit, 0))


def _insufficient_free(
    cycle: Cycle,
    gang: GangState,
    asked: Mapping[int, int],
    totals: Mapping[int, int],
    used: Ints,
    freed: Mapping[int, int],
) -> Diagnosis | None:
    """Compares with free resources, overcommitted by the configured factor, less what other enqueued gangs will use."""
    queues, own = cycle.state.queues, cycle.state.queue_of(gang)
    queues.update_deserved(cycle.state.foreign_room.shared())
    enqueued, kept = queues.enqueued_total(), queues.guaranteed_to_others(own)
    beyond_share = cycle.features.get(AwaitedPods).beyond_share(own, queues)
    reserved = cycle.claims.closing.kept_from(gang, cycle.now_ns)
    held = total([task.cls.request for mate in cycle.units.mates(gang) for task in held_tasks(mate)])
    for column, amount in asked.items():
        has = max(totals.get(column, 0), amount if cycle.config.enqueue.admit_oversized else 0)
        taken = sum(int(amounts[column]) for amounts in (used, enqueued, reserved) if column < len(amounts))
        taken -= beyond_share[column]
        taken -= freed.get(column, 0) + held.get(column, 0)  # what is held for its own group is its own (K8)
        available = f"{_shown(cycle, column, max(0, has - taken))} of {_shown(cycle, column, has)} available"
        if amount > has * cycle.config.enqueue.overcommit_milli // 1000 - taken:
            return _not_enqueued(cycle, gang, column, amount, available)
        if kept[column] and amount > has - taken - int(kept[column]):
            why = f"{available}, {_shown(cycle, column, int(kept[column]))} guaranteed to other queues"
            return _not_enqueued(cycle, gang, column, amount, why, of_queue=_insufficient(cycle, column))
    return None


def _shown(cycle: Cycle, column: int, amount: int) -> str:
    return shown(cycle.state.resources.names[column], amount)


def _insufficient(cycle: Cycle, column: int) -> Reason:
    """Counts all usable nodes: the resource is insufficient on all of them together."""
    resource = cycle.state.resources.names[column]
    return Reason("", f"{INSUFFICIENT}{resource}", int(cycle.state.nodes.usable().sum()))


def _not_enqueued(
    cycle: Cycle, gang: GangState, column: int, amount: int, why: str, of_queue: Reason | None = None
) -> Diagnosis:
    """`of_queue`: the reason, where what its queue may use keeps the gang waiting."""
    missing = {**gang.minima.by_role}
    rest = gang.minima.total - sum(missing.values())
    if rest > 0:
        missing[""] = rest
    asks = f"requests {_shown(cycle, column, amount)} {cycle.state.resources.names[column]}"
    return Diagnosis(
        PendingReason.NOT_ENOUGH_RESOURCES,
        f"not enqueued: {asks}, {why}",
        missing=missing,
        reasons=(of_queue or _insufficient(cycle, column),),
        of_queue=of_queue is not None,
    )
