"""allocate: gangs get their nodes, the minima all or nothing (G2), then the surplus as far as there is room (G3)."""

from __future__ import annotations

from enbloc.engine import story
from enbloc.engine.actions.serving import serve_all
from enbloc.engine.actions.together import resolve_deadlock, start
from enbloc.engine.attempt import attempt, one_by_one, pending_tasks, replacements, split
from enbloc.engine.engine import Engine
from enbloc.engine.story import Story
from enbloc.engine.tasks import GangState
from enbloc.engine.waiting import Waiting


def run(engine: Engine) -> None:
    place_all(engine, engine.allocating)
    resolve_deadlock(engine)


def place_all(engine: Engine, lane: Waiting) -> None:
    """Serves the gangs of a lane."""

    def serve(gang: GangState) -> Story | None:
        engine.placer.closed = engine.cut_off.closed_to(gang) if engine.cut_off else None
        if gang.satisfied or gang.ready():
            return _singly(engine, gang)
        group = engine.groups.of(gang)
        return _minima(engine, gang) if group is None else start(engine, group)

    engine.kept.rouse(lane)
    serve_all(engine, lane, serve)


def _minima(engine: Engine, gang: GangState) -> Story | None:
    lost = replacements(gang)
    if lost:
        placed = one_by_one(engine.placer, gang, lost)[0].placed
        if placed:
            engine.bind(gang, placed, commits=False)
    if gang.missing():
        return story.not_enough_members(gang)
    transaction, taken = engine.waves.take(engine.placer, gang)
    later = engine.waves.later_tasks(gang)
    keep = engine.kept.applies_to(gang)
    told = attempt(engine.placer, gang, transaction, later, keep=keep)
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


def _singly(engine: Engine, gang: GangState) -> Story | None:
    """Once satisfied, what was lost is replaced one by one (G7); what is beyond the minima always is (G3)."""
    waiting = pending_tasks(gang)
    if not gang.ready():
        needed, rest, short = split(gang, waiting)
        waiting = [*needed, *rest[:short]] or rest
    transaction, told = one_by_one(engine.placer, gang, waiting)
    placed = transaction.placed
    if placed:
        engine.bind(gang, placed, commits=False)
        engine.queue(gang)
        return None
    return told
