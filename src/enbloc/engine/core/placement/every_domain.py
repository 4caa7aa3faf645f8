"""The plain way to place a gang that must be in one domain: an attempt in every domain, and of those that succeed the
one that T2 prefers. The reference for tests and benchmarks; `in_domains` must choose the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.domains import Domains, Option, Part
from enbloc.engine.core.placement.in_domains import Attempt, parts_of, within
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.node_trees import Level
from enbloc.engine.core.why.diagnosis import Diagnosis


def place_in_every_domain(
    state: State,
    requests: Sequence[PlacementRequest],
    constraints: Constraints,
    place: Attempt,
    undo: Callable[[], None],
) -> Diagnosis | None:
    """For one gang with one required level. `undo` takes back what `place` placed."""
    [request] = requests
    parts = parts_of(state, request)
    if isinstance(parts, Diagnosis):
        return parts
    [part] = parts
    level = part.asked.required
    assert level is not None, f"{part.name} requires a level"
    failure: Diagnosis | None = None
    best: tuple[tuple[object, ...], Constraints] | None = None
    for domain in range(len(level.names)):
        there = within(constraints, [Option(part, level.rows_of(domain), level, (domain,))])
        room, free = _room(state, part, level, domain), Domains(state, part, None, ()).free_shares(level)
        found = place(there)
        if found is None:
            undo()
            key = (room, *(int(shares[domain]) for shares in free), *level.rank(domain))
            best = min(best or (key, there), (key, there), key=lambda one: one[0])
        failure = failure or found
    return place(best[1]) if best is not None else failure


def _room(state: State, part: Part, level: Level, domain: int) -> int:
    """How many tasks of the part's classes fit in a domain, each class by itself, counted node by node."""
    nodes, found = state.nodes, 0
    for ident in part.needed:
        cls = state.classes.by_id[ident]
        candidates = state.candidates(cls)
        for row in range(nodes.count):
            if level.ids[row] == domain and candidates.passes(row):
                found += max(0, min(int(nodes.free[column, row]) // amount for column, amount in cls.request))
    return found
