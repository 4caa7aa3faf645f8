"""Gangs that start together: all minima of a group, or nothing (K5, K7); NonStrict ones hold what they get (K6).

Groups that hold what others wait for, and wait for what those hold, would wait for ever: the lowest in order lets go,
as many of them as it takes for one group to start at once (K12). Since every time one group starts, this ends.
"""

from __future__ import annotations

import msgspec

from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.engine import Engine
from enbloc.engine.ordering import Order
from enbloc.engine.placement.attempt import attempt, runs
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.placement.request import request_of
from enbloc.engine.state.groups import Group
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.resources import PODS
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus


def start(engine: Engine, group: Group, constraints: Constraints) -> Diagnosis | None:
    """One try for a whole group; a story says why it failed."""
    unit = engine.unit(group)
    told = _too_little_free(engine, group)
    if told is None:
        transaction = Transaction(engine.state)
        told = _place(engine, unit, transaction, constraints)
        if told is None or (group.holds and _start_elsewhere(engine, unit, transaction, constraints)):
            _bind(engine, group, unit, transaction.placed)
            return None
        if group.holds:
            _hold(engine, group, unit, constraints)
    held = sum(gang.total_held for gang in unit)
    engine.holds.changed = engine.holds.changed or held > 0
    meanwhile = f" {held} pods are held meanwhile" if held else ""
    return msgspec.structs.replace(told, message=f"{told.message}{meanwhile}{group.note}")


def _place(
    engine: Engine, unit: list[GangState], transaction: Transaction, constraints: Constraints
) -> Diagnosis | None:
    """Places what the gangs still need; if that fails nothing is left placed."""
    others: list[tuple[Task, int]] = []
    requests = [request_of(gang) for gang in unit]
    for gang in unit:
        others += engine.take_own_places(transaction, gang)
    told = attempt(engine.placer, requests, transaction, constraints)
    engine.give_back(transaction, others)
    return told


def _start_elsewhere(engine: Engine, unit: list[GangState], transaction: Transaction, constraints: Constraints) -> bool:
    """What is held may be in its own way: whether all fit if they are placed anew."""
    if not any(gang.total_held for gang in unit):
        return False
    for gang in unit:
        for task in engine.holds.of(gang):
            transaction.let_go(task)
    return _place(engine, unit, transaction, constraints) is None


def _bind(engine: Engine, group: Group, unit: list[GangState], placed: list[Task]) -> None:
    taken = [task for gang in unit for task in engine.holds.take(gang)]
    group.note = ""
    if taken or placed:
        engine.bind_together(unit, [*taken, *placed], commits=True)
    engine.holds.end(group)
    for gang in unit:
        engine.queue(gang)


def _hold(engine: Engine, group: Group, unit: list[GangState], constraints: Constraints) -> None:
    """What fits is held, of each gang as much as its minima ask for."""
    for gang in unit:
        transaction = Transaction(engine.state)
        _, needed, rest, short, _ = request_of(gang)
        for run in runs(engine.state, needed):
            engine.placer.place(transaction, run, len(run), constraints)
        for run in runs(engine.state, rest):
            short -= engine.placer.place(transaction, run, min(short, len(run)), constraints) if short else 0
        if transaction.placed:
            engine.holds.hold(group, gang, transaction.placed, engine.now)


def _too_little_free(engine: Engine, group: Group) -> Diagnosis | None:
    """K7: its minResources against all that is free, what its own members have included."""
    state = engine.state
    gangs = engine.groups.gangs(group)
    asked: dict[int, int] = {}
    for gang in gangs:
        for column, amount in state.resources.amounts(gang.spec.min_free_resources).items():
            asked[column] = asked.get(column, 0) + amount
    if not asked:
        return None
    state.nodes.widen()
    free = state.free_total()
    own: dict[int, int] = {}
    for gang in gangs:
        for task in gang.tasks.values():
            if task.status in (TaskStatus.HELD, TaskStatus.BOUND, TaskStatus.ASSUMED):
                for column, amount in task.cls.request:
                    own[column] = own.get(column, 0) + amount
    for column, amount in asked.items():
        has = (int(free[column]) if column < len(free) else 0) + own.get(column, 0)
        if column != PODS and amount > has:
            return diagnosis.too_little_free(gangs[0], state.resources.names[column], amount, has)
    return None


# ---- K12


def resolve_deadlock(engine: Engine) -> None:
    """Groups that hold and wait for each other: the lowest in order let go so that one can start."""
    holds = engine.holds
    if not holds.changed:
        return
    holds.changed = False
    stuck = _stuck(engine, sorted(holds.holders(), key=lambda group: _turn(engine, group)))
    if len(stuck) < 2:
        return
    victims, winner = _victims(engine, stuck)
    for victim in victims:
        held = sum(gang.total_held for gang in engine.groups.gangs(victim))
        title = engine.unit(winner)[0].spec.title
        victim.note = f"; it let go of {held} pods that were held, so that {title} could start"
        holds.let_go(victim, "LetGo", f"let go of {held} pods so that {title} could start: they waited for each other")
        for gang in engine.unit(victim):
            engine.reporter.tell(gang, Diagnosis("LetGo", victim.note.removeprefix("; ")), of_gang=True)
    told = start(engine, winner, engine.constraints(engine.unit(winner)[0]))
    assert told is None, f"{winner} was to start and did not: {told}"


def _stuck(engine: Engine, groups: list[Group]) -> list[Group]:
    """Of groups that hold, those that wait for each other and for nobody else: each would fit if they all let go."""
    while len(groups) > 1:
        transaction = Transaction(engine.state)
        _release(engine, groups, transaction)
        left = [group for group in groups if _fits(engine, group)]
        transaction.rollback()
        if len(left) == len(groups):
            return groups
        groups = left
    return []


def _victims(engine: Engine, stuck: list[Group]) -> tuple[list[Group], Group]:
    """Who lets go, and who can start then: the lowest in order first, and nobody in vain."""
    victims: list[Group] = []
    winner: Group | None = None
    for victim in reversed(stuck[1:]):
        victims.append(victim)
        winner = next((group for group in stuck if group not in victims and _fits_if(engine, group, victims)), None)
        if winner is not None:
            break
    assert winner is not None, f"{stuck[0]} fits if all others let go"
    for victim in reversed(list(victims)):
        others = [other for other in victims if other is not victim]
        if _fits_if(engine, winner, others):
            victims = others
    return victims, winner


def _fits_if(engine: Engine, group: Group, victims: list[Group]) -> bool:
    transaction = Transaction(engine.state)
    _release(engine, [*victims, group], transaction)
    fits = _fits(engine, group)
    transaction.rollback()
    return fits


def _fits(engine: Engine, group: Group) -> bool:
    if not engine.may_start(group) or _too_little_free(engine, group) is not None:
        return False
    transaction = Transaction(engine.state)
    unit = engine.unit(group)
    fits = bool(unit) and _place(engine, unit, transaction, engine.constraints(unit[0])) is None
    transaction.rollback()
    return fits


def _release(engine: Engine, groups: list[Group], transaction: Transaction) -> None:
    for group in groups:
        for gang in engine.groups.gangs(group):
            for task in engine.holds.of(gang):
                transaction.let_go(task)


def _turn(engine: Engine, group: Group) -> Order:
    return min(engine.order(gang) for gang in engine.groups.gangs(group))
