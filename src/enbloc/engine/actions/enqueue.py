"""enqueue: gangs are let in when what they need at least could be met (M6). Their pods are created only then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from enbloc.engine.actions.queue_loop import serve_all
from enbloc.engine.actions.reclaim import ByShare
from enbloc.engine.decisions import Reason
from enbloc.engine.diagnosis.diagnosis import Diagnosis, shown
from enbloc.engine.engine import PREEMPTING, RECLAIMING, STARVING, Engine
from enbloc.engine.tables.resources import PODS, Ints
from enbloc.engine.tables.tasks import GangState


def run(engine: Engine) -> None:
    if not engine.knocking.active():
        return
    totals = engine.state.nodes.totals()
    used = totals - engine.state.free_total()[: len(totals)]

    def serve(gang: GangState) -> Diagnosis | None:
        told = _refusal(engine, gang, totals, used)
        if told is None:
            engine.enqueued(gang)
            return None
        for ground, freed in _beyond_free_room(engine, gang):
            if _refusal(engine, gang, totals, used, freed) is None:
                engine.enqueued(gang, ground)
                return None
        return told

    serve_all(engine, engine.knocking, serve, with_enqueued=True)


class Freed(NamedTuple):
    """What could be freed for a gang."""

    in_all: Mapping[int, int] | None
    """By column; `None`: all that the cluster has, in time."""
    of_queue: Mapping[int, int] = {}
    """Of that, what its own queue uses."""


NOTHING_FREED = Freed({})


def _beyond_free_room(engine: Engine, gang: GangState) -> Iterator[tuple[str, Freed]]:
    """On what grounds a gang may be let in though there is no room for it yet (M6)."""
    if engine.starving.is_starving(gang):
        yield STARVING, Freed(None)
    if gang.spec.never_preempts:
        return
    if engine.config.runs("preempt"):
        queue = gang.spec.queue
        lower = [cell for cell in engine.evictions.evictable.cells() if cell[0] == queue and cell[1] < gang.priority]
        if lower:
            freed = dict(enumerate(engine.evictions.evictable.freed(lower).sum(axis=1).tolist()))
            yield PREEMPTING, Freed(freed, freed)
    if engine.config.runs("reclaim"):
        found = _reclaimable(engine, gang)
        if found:
            yield RECLAIMING, Freed(found)


def _reclaimable(engine: Engine, gang: GangState) -> dict[int, int]:
    """What other queues use beyond their share and would have to give back, by column."""
    asked = engine.state.resources.amounts(gang.spec.min_resources or {})
    rules = ByShare(engine, gang, asked)
    found: dict[int, int] = {}
    for name in {queue for queue, _ in rules.cells()}:
        queue = engine.state.queues.get(name)
        freed = engine.evictions.evictable.freed([cell for cell in rules.cells() if cell[0] == name]).sum(axis=1)
        for column in asked:
            if column < len(freed):
                excess = max(0, int(queue.used[column] - queue.deserved[column]))
                found[column] = found.get(column, 0) + min(excess, int(freed[column]))
    return found


def _refusal(
    engine: Engine, gang: GangState, totals: Ints, used: Ints, freed: Freed = NOTHING_FREED
) -> Diagnosis | None:
    """Why it is not let in, were so much freed for it; `None`: it is."""
    state = engine.state
    amounts = state.resources.amounts(gang.spec.min_resources or {})
    state.nodes.widen()
    asked = {column: amount for column, amount in amounts.items() if amount and column != PODS}

    def name(column: int) -> str:
        return state.resources.names[column]

    if not engine.config.enqueue.admit_oversized:
        for column, amount in asked.items():
            has = int(totals[column]) if column < len(totals) else 0
            if amount > has:
                return _story(
                    gang, f"it needs {shown(name(column), amount)} {name(column)}, "
                    f"the whole cluster has {shown(name(column), has)}", _short(engine, name(column))
                )  # fmt: skip
    more = {column: amount - freed.of_queue.get(column, 0) for column, amount in asked.items()}
    over = state.queues.over_capability(state.queue_of(gang), more, with_enqueued=True)
    if over is not None:
        queue, column = over
        reason = Reason("", f"queue {queue.name} may not use more {name(column)}", 0)
        return _story(
            gang, f"it needs {shown(name(column), asked[column])} {name(column)}, and queue {queue.name} may use "
            f"{shown(name(column), queue.limits[column])} in all, of which "
            f"{shown(name(column), int(queue.used[column] + queue.enqueued[column]))} are taken", reason, of_queue=True
        )  # fmt: skip
    if freed.in_all is None:
        return None  # room will be kept for it as it comes
    return _no_room(engine, gang, asked, totals, used, freed.in_all)


def _no_room(
    engine: Engine, gang: GangState, asked: Mapping[int, int], totals: Ints, used: Ints, freed: Mapping[int, int]
) -> Diagnosis | None:
    """Free room, a little overcommitted, less what others that were let in will take."""
    if engine.config.enqueue.admit_oversized:
        totals_of = {c: max(int(totals[c]) if c < len(totals) else 0, asked[c]) for c in asked}
    else:
        totals_of = {column: int(totals[column]) for column in asked}
    queues = engine.state.queues
    enqueued, kept = queues.enqueued_total(), queues.guaranteed_to_others(engine.state.queue_of(gang))
    reserved = engine.reservations.kept_from(gang, engine.now)
    for column, amount in asked.items():
        taken = (int(used[column]) if column < len(used) else 0) + int(enqueued[column])
        taken += int(reserved[column]) if column < len(reserved) else 0
        taken -= freed.get(column, 0)
        name = engine.state.resources.names[column]
        free = totals_of[column] * engine.config.enqueue.overcommit_milli // 1000 - taken
        if amount > free:
            return _story(
                gang, f"it needs {shown(name, amount)} {name}, and "
                f"{shown(name, max(0, totals_of[column] - taken))} are free of {shown(name, totals_of[column])}",
                _short(engine, name),
            )  # fmt: skip
        if kept[column] and amount > totals_of[column] - taken - int(kept[column]):
            return _story(
                gang, f"it needs {shown(name, amount)} {name}, and of the "
                f"{shown(name, max(0, totals_of[column] - taken))} that are free {shown(name, int(kept[column]))} are "
                f"guaranteed to other queues", _short(engine, name), of_queue=True
            )  # fmt: skip
    return None


def _short(engine: Engine, resource: str) -> Reason:
    """No single node is to blame: all that may be used are, together."""
    nodes = engine.state.nodes
    usable = nodes.alive[: nodes.count] & nodes.ready[: nodes.count] & ~nodes.unschedulable[: nodes.count]
    return Reason("", f"Insufficient {resource}", int(usable.sum()))


def _story(gang: GangState, why: str, reason: Reason, of_queue: bool = False) -> Diagnosis:
    missing = {**gang.spec.minima}
    rest = gang.spec.minimum - sum(missing.values())
    if rest > 0:
        missing[""] = rest
    told = f"not let in: {why}"
    return Diagnosis("NotEnoughResources", told, missing=missing, reasons=(reason,), of_queue=of_queue)
