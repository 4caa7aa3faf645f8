"""Which domains a constrained part of a gang may be placed in, the best first (T1, T2, T4).

A *part* is a set of a gang's tasks with one topology constraint: the whole gang, the pods of a role, or a slice. An
*option* is a set of rows in which the part would satisfy it: one domain of the preferred level; else, level by level
up to the required one, the fewest preferred domains within one domain of that level. Among equals the largest free
domains are left whole, then the fuller ones come first, and then names decide. Counts of what fits are bounds; whether
the tasks fit is left to the attempt.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from enbloc.engine.core.state.candidates import summed
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.node_trees import Asked, Level, Rank
from enbloc.engine.core.tables.resources import PODS, Bools, Ints
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.topology import TopologyConstraint

PINS: Final = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.HELD})
"""Statuses of tasks that fix the domain for those that come after (T4)."""

SLICE: Final = "slice "
"""Before the number of a slice, in the name of a part."""

WHOLE: Final = ("gang",)
"""The name of a part that is the whole gang, where its pods say so and not its object."""

SETS_BOUND: Final = 2_000
"""At most 2,000 sets of domains are looked at for one part within one domain."""


class Part(NamedTuple):
    """Tasks of a gang that must or should be together."""

    gang: GangState
    name: tuple[str, ...]
    """Empty: all of the gang."""
    constraint: TopologyConstraint
    asked: Asked
    needed: Mapping[int, int]
    """Class → how many of its tasks have to be placed, as far as that is known beforehand: 0 for a class of tasks that
    may be chosen."""
    size: int
    """How many tasks have to be placed."""
    pinned: tuple[int, ...]
    """Rows of the tasks that are placed already."""


def contains(outer: Part, inner: Part) -> bool:
    """Whether all tasks of a part belong to another part, too."""
    is_wider = outer.name == WHOLE or outer.name == inner.name[: len(outer.name)]
    return outer.gang is inner.gang and outer is not inner and is_wider


class Option(NamedTuple):
    """Rows in which a part would satisfy its constraint."""

    part: Part
    rows: Bools
    level: Level | None
    """The level of the domain that contains all of them; `None`: the whole cluster."""
    domains: tuple[int, ...]
    """The domains of the preferred level that they make up; empty if rows outside of every such domain may be used."""


def constraints_on(task: Task) -> list[tuple[tuple[str, ...], TopologyConstraint]]:
    """The parts of its gang that a task belongs to, each by name with its constraint, the widest first."""
    found: list[tuple[tuple[str, ...], TopologyConstraint]] = []
    if task.gang.spec.topology is not None:
        found.append(((), task.gang.spec.topology))
    above = task.gang.spec.branches.get(task.role)
    if above is not None:
        found += [(("role", *path), constraint) for path, constraint in above.constraints]
    of_role = task.gang.spec.topology_of_role.get(task.role)
    if of_role is not None:
        found.append((_role(task), of_role))
    for own in (*task.topology, *task.gang.spec.slices_of_role.get(task.role, ())):
        if own.slices:
            index = task.order.number
            name = (*_role(task, own.group), *(f"{SLICE}{index // size}" for size in own.slices))
            found.append((name, own.constraint))
        elif own.group:
            found.append((_group(task, own.group), own.constraint))
        elif own.of_role or own.constraint != task.gang.spec.topology:
            found.append((_role(task) if own.of_role else WHOLE, own.constraint))
    return found


def _role(task: Task, group: str = "") -> tuple[str, ...]:
    """The name of the part that is a task's role: within the group of roles that its pods name."""
    return (*_group(task, group), task.role)


def _group(task: Task, group: str) -> tuple[str, ...]:
    """The name of the part that its role is in: within the vertices above it in the gang's tree."""
    above = task.gang.spec.branches.get(task.role)
    return ("role", *(above.path if above else ()), *((f"group {group}",) if group else ()))


def part_of(task: Task) -> object:
    """Equal for tasks that belong to the same parts; `None`: to none."""
    spec = task.gang.spec
    if not task.topology and spec.topology is None and not spec.is_split:
        return None
    return (task.gang.key, *constraints_on(task))


class Domains:
    """Lists the options of a part, given what is closed and where the parts around it are."""

    def __init__(self, state: State, part: Part, closed: Bools | None, beside: Sequence[Option]) -> None:
        """`beside`: options of parts that share no task with this one."""
        self._state = state
        self._beside = beside
        self._part = part
        self._closed = closed
        classes = state.classes.by_id
        self._classes: list[TaskClass] = [classes[ident] for ident in part.needed]
        self._needed: Ints = np.fromiter(part.needed.values(), np.int64, len(part.needed))

    def counts(self, level: Level) -> Ints:
        """Class by domain: how many of its tasks fit there."""
        found = np.zeros((len(self._classes), len(level.names)), np.int64)
        for line, cls in enumerate(self._classes):
            found[line] = self._state.candidates(cls).counts.by_domain(level, self._closed)
            counted: list[Part] = []
            for option in self._beside:  # the widest first: what is in it counts once
                part, taken = option.part, option.part.needed.get(cls.id, 0)
                if not taken or any(contains(outer, part) for outer in counted):
                    continue
                domains: list[int] = np.unique(level.ids[option.rows]).tolist()
                if len(domains) == 1 and domains[0] >= 0 and self._may_use_all(option.rows):
                    found[line, domains[0]] -= taken
                    counted.append(part)
        return found

    def _may_use_all(self, rows: Bools) -> bool:
        """Whether none of these rows is closed to the part: tasks there take room that is counted."""
        return self._closed is None or not (rows & self._closed[: len(rows)]).any()

    def free_shares(self, level: Level) -> tuple[Ints, Ints]:
        """By domain, the sums over its nodes of the free share of every resource that the part requests, in millionths:
        of what the node has, and of what the largest node has."""
        nodes = self._state.nodes
        of_node, of_largest = np.zeros((2, nodes.count), np.int64)
        for column in {column for cls in self._classes for column, _ in cls.request} - {PODS}:
            free = np.maximum(nodes.free[column, : nodes.count], 0)
            has = nodes.divisor[column, : nodes.count]
            of_node += (free / has * 10**6).astype(np.int64)
            of_largest += (free / has.max(initial=1) * 10**6).astype(np.int64)
        return summed(level, of_node), summed(level, of_largest)

    def roomiest(self) -> Option | None:
        """The domain of the required level with the most room, however little that is."""
        level = self._part.asked.required
        if level is None:
            return None
        room, may_use = self.counts(level).sum(axis=0), self.may_use(level)
        best = min(np.flatnonzero(may_use).tolist(), key=lambda one: (-int(room[one]), level.rank(one)), default=None)
        return None if best is None else Option(self._part, level.rows_of(best), level, ())

    def room(self, level: Level) -> Ints:
        """By domain, how many of the part's tasks fit there, each class by itself and at most as many as it needs."""
        counts = self.counts(level)
        certain = np.minimum(counts, self._needed[:, None])
        chosen = np.minimum((counts - certain).sum(axis=0), self._part.size - self._needed.sum())
        found: Ints = certain.sum(axis=0) + np.maximum(chosen, 0)
        return found

    def options(self) -> Iterator[Option]:
        """Every set of rows that might do, the best first."""
        asked = self._part.asked
        if asked.preferred is None:
            return
        for option in self._single(asked.preferred):
            if asked.required is None or int(asked.required.ids[int(option.rows.argmax())]) >= 0:
                yield option
        for level in asked.between[1:]:
            yield from self._several(level, asked.preferred)
            yield from self._whole(level)
        if asked.required is None:
            yield from self._several(None, asked.preferred)
            yield from self.required()

    def required(self) -> Iterator[Option]:
        """The same without the preference: the domains of the required level, or the whole cluster."""
        level = self._part.asked.required
        if level is not None:
            yield from self._whole(level)
        else:
            yield Option(self._part, np.ones(self._state.nodes.count, np.bool_), None, ())

    def _single(self, level: Level) -> Iterator[Option]:
        """Domains in which all tasks might fit, the smallest room first, then the fullest. Those without any room come
        last: tasks that may be chosen would be passed over there."""
        counts = self.counts(level)
        fits = (counts >= self._needed[:, None]).all(axis=0) & self.may_use(level)
        fitting, room = np.flatnonzero(fits), counts.sum(axis=0)
        shares, amounts = self.free_shares(level)
        keys = (level.positions(), amounts, shares, room, room <= 0)
        for domain in fitting[np.lexsort([key[fitting] for key in keys])].tolist():
            yield Option(self._part, level.rows_of(domain), level, (domain,))

    def _whole(self, level: Level) -> Iterator[Option]:
        """The same for a level above the preferred one: rows outside of every preferred domain may be used too."""
        for option in self._single(level):
            yield option._replace(domains=())

    def may_use(self, level: Level) -> Bools:
        """Domains that contain the tasks that are placed already."""
        pinned = {int(level.ids[row]) for row in self._part.pinned}
        found: Bools = np.ones(len(level.names), np.bool_)
        if pinned:
            found[:] = False
            if len(pinned) == 1 and -1 not in pinned:
                found[pinned.pop()] = True
        return found

    def _several(self, above: Level | None, level: Level) -> Iterator[Option]:
        """Sets of domains of a level within one domain of the level above: the fewest first, of two or more. Those of
        the tasks that are placed already are in every set."""
        counts = self.counts(level)
        pinned = {int(level.ids[row]) for row in self._part.pinned}
        if -1 in pinned:
            return
        shares = enumerate(np.column_stack(self.free_shares(level)).tolist())
        ranks = [(share, amount, level.rank(one)) for one, (share, amount) in shares]
        parents = _parents(above, level)
        allowed = self.may_use(above) if above is not None else None
        streams = []
        for parent in sorted(set(parents.tolist())):
            if parent < 0 or (allowed is not None and not allowed[parent]):
                continue
            inside = [one for one in np.flatnonzero(parents == parent).tolist() if one not in pinned]
            streams.append(_Sets(ranks, counts, self._needed, inside, sorted(pinned)))
        for size in range(max(0, 2 - len(pinned)), max((len(one.inside) for one in streams), default=0) + 1):
            ordered = heapq.merge(*(one.of_size(size) for one in streams))
            for _, _, domains in ordered:
                rows = np.isin(level.ids, [*domains, *pinned])
                yield Option(self._part, rows, above, tuple(sorted((*domains, *pinned), key=level.rank)))


def _parents(above: Level | None, level: Level) -> Ints:
    """The domain above each domain of a level; 0 for all if there is none above; -1 for domains without rows."""
    found = np.full(len(level.names), -1, np.int64)
    inside = level.ids >= 0
    found[level.ids[inside]] = 0 if above is None else above.ids[inside]
    return found


class _Sets:
    """Sets of domains in which the needed tasks might fit, of a given size, the smallest largest room first. `ranks`
    sorts domains of equal room."""

    def __init__(
        self,
        ranks: Sequence[tuple[int, int, Rank]],
        counts: Ints,
        needed: Ints,
        inside: Sequence[int],
        pinned: Sequence[int],
    ) -> None:
        sizes = counts.sum(axis=0)
        self.inside = sorted(inside, key=lambda one: (int(sizes[one]), ranks[one]))
        self._ranks = ranks
        self._room = counts[:, self.inside]
        self._sizes = [int(sizes[one]) for one in self.inside]
        self._missing = needed - counts[:, list(pinned)].sum(axis=1)
        self._equal = [  # first and end of the domains with equal room, the least room first
            (self._sizes.index(size), bisect_right(self._sizes, size)) for size in dict.fromkeys(self._sizes)
        ]
        self._looked_at = 0

    def of_size(self, size: int) -> Iterator[tuple[tuple[int, ...], tuple[object, ...], tuple[int, ...]]]:
        """Sort key and domains of each set, in order."""
        for rooms in self._rooms(size, len(self._equal), self._missing):
            for chosen in self._choose(rooms, len(self.inside), self._missing):
                domains = tuple(self.inside[one] for one in chosen)
                yield tuple(self._sizes[one] for one in chosen), tuple(map(self._ranks.__getitem__, domains)), domains

    def _rooms(self, size: int, below: int, missing: Ints) -> Iterator[tuple[tuple[int, int], ...]]:
        """The room of the largest, of the second largest and so on, as ranges of domains with that room: a smaller
        largest first, then a smaller second."""
        if size == 0:
            yield ()
            return
        for number in range(below):
            first, end = self._equal[number]
            if end < size or not self._may_do(size, end, missing):
                continue
            left = missing - self._room[:, first:end].max(axis=1)
            for rest in self._rooms(size - 1, number + 1, left):
                yield (first, end), *rest

    def _choose(self, rooms: Sequence[tuple[int, int]], below: int, missing: Ints) -> Iterator[tuple[int, ...]]:
        """Positions below `below`, the largest first, each among the domains of its room."""
        if not rooms:
            if not (missing > 0).any():
                yield ()
            return
        first, end = rooms[0]
        for largest in range(first, min(end, below)):
            if self._may_do(len(rooms), largest + 1, missing):
                for rest in self._choose(rooms[1:], largest, missing - self._room[:, largest]):
                    yield (largest, *rest)

    def _may_do(self, size: int, below: int, missing: Ints) -> bool:
        """Whether `size` of the first `below` domains might have room for what is missing. Not asked without end."""
        self._looked_at += 1
        return self._looked_at <= SETS_BOUND and not (self._most(size, below) < missing).any()

    def _most(self, size: int, below: int) -> Ints:
        """By class, the most that `size` of the first `below` domains have room for."""
        room = self._room[:, :below]
        if size >= below:
            found: Ints = room.sum(axis=1)
        else:
            found = np.partition(room, below - size, axis=1)[:, below - size :].sum(axis=1)
        return found
