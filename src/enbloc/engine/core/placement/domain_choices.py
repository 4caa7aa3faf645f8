"""The domains that could be freed or reserved for gangs whose tasks must be together, whether there is room now or not
(T7): by what their nodes could hold if they were empty, those with the most room now first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.domains import PINS, Domains, Option, Part, constraints_on
from enbloc.engine.core.placement.in_domains import closed_to, parts_of, within
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.node_trees import Level
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import Diagnosis


def domain_choices(
    state: State, requests: Sequence[PlacementRequest], constraints: Constraints, most: int
) -> Iterator[Constraints]:
    """The constraints with all rows closed that are outside of chosen domains, at most `most` times. If nothing must be
    together: the constraints as they are, once; if a node tree does not exist: none."""
    parts: list[Part] = []
    for request in requests:
        found = parts_of(state, request)
        if isinstance(found, Diagnosis):
            return
        parts += [part for part in found if part.asked.required is not None]
    yield from islice((within(constraints, chosen) for chosen in _choices(state, parts, constraints, [])), most)


def _choices(
    state: State, parts: Sequence[Part], constraints: Constraints, chosen: list[Option]
) -> Iterator[list[Option]]:
    if len(chosen) == len(parts):
        yield chosen
        return
    part = parts[len(chosen)]
    closed = closed_to(state, part, constraints, chosen)
    for option in _large_enough(state, part, closed):
        yield from _choices(state, parts, constraints, [*chosen, option])


def _large_enough(state: State, part: Part, closed: Bools | None) -> Iterator[Option]:
    """Domains of the required level in which the part would fit if they were empty, the most room now first."""
    level = part.asked.required
    assert level is not None, f"{part.name} requires a level"
    domains = Domains(state, part, closed, ())
    fits = domains.may_use(level)
    for ident, count in part.needed.items():
        fits &= _if_empty(state, ident, level, closed) >= count
    room = domains.room(level)
    for domain in sorted(np.flatnonzero(fits).tolist(), key=lambda one: (-int(room[one]), level.rank(one))):
        yield Option(part, level.rows_of(domain), level, ())


def _if_empty(state: State, ident: int, level: Level, closed: Bools | None) -> Ints:
    """By domain, how many tasks of a class its nodes could hold if they were empty."""
    cls, nodes = state.classes.by_id[ident], state.nodes
    open_rows = state.candidates(cls).passing() & (level.ids >= 0)
    if closed is not None:
        open_rows = open_rows & ~closed[: len(open_rows)]
    most = np.full(nodes.count, np.iinfo(np.int64).max)
    for column, amount in cls.request:
        most = np.minimum(most, nodes.allocatable[column, : nodes.count] // amount)
    found = np.bincount(level.ids[open_rows], weights=most[open_rows], minlength=len(level.names))
    return found.astype(np.int64)


def is_together(state: State, gang: GangState, places: Mapping[str, str] | None = None) -> bool:
    """Whether the tasks of a gang that are placed satisfy what is required of their place (T1). `places`: by UID, where
    others are to be."""
    domains: dict[object, set[int]] = {}
    for task in gang.tasks.values():
        node = task.node if task.status in PINS else (places or {}).get(task.uid, "")
        row = state.nodes.rows.get(node)
        if row is None:
            continue
        for name, constraint in constraints_on(task):
            asked = state.trees.asked(constraint)
            if isinstance(asked, str):
                return False
            if asked.required is not None:
                domains.setdefault((name, constraint), set()).add(int(asked.required.ids[row]))
    return all(len(of_part) == 1 and -1 not in of_part for of_part in domains.values())
