"""Claims of gangs of lower priority: they are released before anyone is evicted (R5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from enbloc.engine.engine import Engine
from enbloc.engine.state.groups import Group
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey


class LowerPriorityClaim(NamedTuple):
    """What somebody of lower priority has claimed and not taken."""

    gang: GangState
    """Whose claim it is; of a group, the first of its gangs."""
    keys: frozenset[GangKey]
    nodes: frozenset[str]
    lift: Callable[[Transaction], None]
    """Within a plan: as if it were not claimed."""
    release: Callable[[str], None]
    """For good; says for whom."""


def lesser_claims(engine: Engine, unit: Sequence[GangState]) -> list[LowerPriorityClaim]:
    """What could be released for a gang, the lowest first."""
    priority = max(gang.priority for gang in unit)
    own = {gang.key for gang in unit}

    def is_lesser(gang: GangState) -> bool:
        evicted = any(engine.evictions.was_evicted_by(one, gang) for one in unit)  # nobody takes it back (P3)
        return gang.key not in own and gang.priority < priority and not evicted

    found = [_reservation(engine, gang) for gang in engine.reservations.gangs() if is_lesser(gang)]
    # Room that was reclaimed for another queue is that queue's by its share, not by priority.
    queue = unit[0].spec.queue
    nominated = [gang for gang in engine.nominations.gangs() if gang.spec.queue == queue]
    found += [_nomination(engine, gang) for gang in nominated if is_lesser(gang)]
    for group in engine.holds.holders():
        gangs = engine.groups.gangs(group)
        if all(map(is_lesser, gangs)):
            found.append(_hold(engine, group, gangs))
    for key, _ in engine.waves.claims.all():
        gang = engine.state.gangs.get(key)
        if gang is not None and is_lesser(gang):
            found.append(_wave(engine, gang))
    found.sort(key=lambda one: engine.order(one.gang), reverse=True)
    return sorted(found, key=lambda one: one.gang.priority)


def _reservation(engine: Engine, gang: GangState) -> LowerPriorityClaim:
    def release(why: str) -> None:
        engine.reservations.end(gang, "ReservationReleased", why)

    nodes = frozenset(engine.reservations.of(gang).values())
    return LowerPriorityClaim(gang, frozenset({gang.key}), nodes, lambda transaction: None, release)


def _nomination(engine: Engine, gang: GangState) -> LowerPriorityClaim:
    def lift(transaction: Transaction) -> None:
        engine.nominations.lift_own(transaction, gang)

    def release(why: str) -> None:
        engine.nominations.end(gang, "ClaimReleased", why)

    nodes = frozenset(task.node for task in engine.nominations.of(gang))
    return LowerPriorityClaim(gang, frozenset({gang.key}), nodes, lift, release)


def _hold(engine: Engine, group: Group, gangs: Sequence[GangState]) -> LowerPriorityClaim:
    tasks = [task for gang in gangs for task in engine.holds.of(gang)]

    def lift(transaction: Transaction) -> None:
        for task in tasks:
            transaction.let_go(task)

    def release(why: str) -> None:
        engine.holds.let_go(group, "LetGo", why)

    keys, nodes = frozenset(gang.key for gang in gangs), frozenset(task.node for task in tasks)
    return LowerPriorityClaim(gangs[0], keys, nodes, lift, release)


def _wave(engine: Engine, gang: GangState) -> LowerPriorityClaim:
    ghosts = engine.waves.claims.of(gang)

    def lift(transaction: Transaction) -> None:
        for ghost in ghosts:
            transaction.make_room(ghost, engine.state.nodes.rows[ghost.node])

    def release(why: str) -> None:
        engine.waves.let_go(gang, "ClaimReleased", why)

    nodes = frozenset(ghost.node for ghost in ghosts)
    return LowerPriorityClaim(gang, frozenset({gang.key}), nodes, lift, release)
