"""The rows that a class may use, best first: kept per class, and refreshed row by row as nodes change.

`keys` holds one integer a row: -1 where a task of the class cannot go, else its score with the row's rank below it,
so that the largest key is the best node and ties go to the lowest row.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from enbloc.engine.classes import TaskClass
from enbloc.engine.nodes import NodeTable, Rows
from enbloc.engine.predicates.predicate import Check
from enbloc.engine.resources import Bools, Ints
from enbloc.engine.room import Room

ROW_BITS = 24
ROW_MASK = 2**ROW_BITS - 1

ScoreRoom = Callable[[Room], Ints]
Bonus = Callable[[Bools], Ints]
"""What the class would rather have of a node, normalised over the rows that pass; weights included."""


class Candidates:
    """The candidate rows of one class."""

    def __init__(
        self, cls: TaskClass, nodes: NodeTable, checks: list[Check], score: ScoreRoom, bonus: Bonus | None
    ) -> None:
        self.cls = cls
        self.checks = checks
        self._nodes = nodes
        self._score = score
        self._bonus_of = bonus
        self.passing: Bools = np.zeros(0, np.bool_)
        """Rows that pass every standing check, whether there is room or not."""
        self._bonus: Ints | None = None
        self._keys: Ints = np.zeros(0, np.int64)
        self._seen = 0
        self._static_seen = 0

    def keys(self) -> Ints:
        """The keys of all rows, as of now. Valid until the next change of the nodes."""
        nodes, count = self._nodes, self._nodes.count
        if self._seen == nodes.clock:
            return self._keys[:count]
        if len(self.passing) < count:
            self.passing = np.pad(self.passing, (0, len(nodes.alive) - len(self.passing)))
            self._keys = np.pad(self._keys, (0, len(nodes.alive) - len(self._keys)), constant_values=-1)
        standing = np.flatnonzero(nodes.static_stamp[:count] > self._static_seen)
        if len(standing):
            self._check(standing)
        stale = np.flatnonzero(nodes.stamp[:count] > (self._seen if not len(standing) or not self._bonus_of else 0))
        if len(stale):
            self._keys[stale] = self._key(stale)
        self._seen = nodes.clock
        return self._keys[:count]

    def fresh_keys(self) -> Ints:
        """The same computed over all rows with nothing remembered: the plain path, to compare with."""
        nodes = self._nodes
        self.keys()
        everything = np.arange(nodes.count)
        return self._key(everything)

    def table(self, rows: Rows, first: int, width: int) -> list[list[int]]:
        """For each row, the keys of its n-th task for n from `first` on, counted from what is free now."""
        placed = np.arange(first, first + width, dtype=np.int64)[None, :]
        room = Room(self._nodes, rows, self.cls.request, placed)
        scores = self._score(room)
        if self._bonus is not None:
            scores = scores + self._bonus[rows][:, None]
        keys = np.where(room.fits(), (scores << ROW_BITS) | (ROW_MASK - rows)[:, None], -1)
        found: list[list[int]] = keys.tolist()
        return found

    def _check(self, rows: Rows) -> None:
        nodes = self._nodes
        passing = nodes.alive[rows]
        for check in self.checks:
            passing = passing & check.mask(rows)
        self.passing[rows] = passing
        self._static_seen = int(nodes.static_stamp[: nodes.count].max())
        if self._bonus_of is not None:
            self._bonus = self._bonus_of(self.passing[: nodes.count])

    def _key(self, rows: Rows) -> Ints:
        room = Room(self._nodes, rows, self.cls.request)
        scores = self._score(room)
        if self._bonus is not None:
            scores = scores + self._bonus[rows]
        usable = room.fits() & self.passing[rows]
        found: Ints = np.where(usable, (scores << ROW_BITS) | (ROW_MASK - rows), -1)
        return found
