"""The rows that a class may use, best first: kept, and refreshed row by row as nodes change.

`keys` holds one integer a row: -1 where a task of the class cannot go, else its score with the row's rank below it,
so that the largest key is the best node and ties go to the lowest row. Scores and fits depend on the request alone, so
classes that ask for the same amounts share a board.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from enbloc.engine.filters.filter import Check
from enbloc.engine.scoring.headroom import Headroom
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import ROW_BITS, NodeTable, Rows
from enbloc.engine.tables.resources import Bools, Ints, Request

ScoreRoom = Callable[[Headroom], Ints]
Bonus = Callable[[Bools], Ints]
"""What the class would rather have of a node, normalised over the rows that pass; weights included."""


class ScoreVector:
    """What every row is worth to tasks of one request, whatever else they ask of a node: shared by many classes."""

    def __init__(self, nodes: NodeTable, request: Request, score: ScoreRoom) -> None:
        self._nodes = nodes
        self._request = request
        self._score = score
        self._keys: Ints = np.zeros(0, np.int64)
        self.seen = 0
        """The nodes' clock when it was last brought up to date."""

    def keys(self) -> Ints:
        """-1 where there is no room, else score and rank; brought up to date row by row."""
        nodes, count = self._nodes, self._nodes.count
        if self.seen != nodes.clock:
            if len(self._keys) < count:
                self._keys = np.pad(self._keys, (0, len(nodes.alive) - len(self._keys)), constant_values=-1)
            stale = np.flatnonzero(nodes.stamp[:count] > self.seen)
            self._keys[stale] = self.compute(stale)
            self.seen = nodes.clock
        return self._keys[:count]

    def compute(self, rows: Rows | slice, more: Ints | None = None) -> Ints:
        """The keys of these rows, from nothing but the rows; `more` is how many tasks each of them gets."""
        room = Headroom(self._nodes, rows, self._request, more)
        found: Ints = np.where(room.fits(), (self._score(room) << ROW_BITS) | self._nodes.ranks[rows], -1)
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each row, the keys of its n-th task for n from `first` on (0 is the next), from what is free now."""
        if width == 1:
            return self.compute(rows, np.full(1, first + 1))[:, None]
        more = np.arange(first + 1, first + width + 1, dtype=np.int64)
        found = self.compute(np.repeat(rows, width), np.tile(more, len(rows)))
        return found.reshape(len(rows), width)


class Candidates:
    """The candidate rows of one class: a board, less the rows that its standing checks turn away."""

    def __init__(
        self, cls: TaskClass, nodes: NodeTable, checks: list[Check], board: ScoreVector, bonus: Bonus | None
    ) -> None:
        self.cls = cls
        self.checks = checks
        self._nodes = nodes
        self._board = board
        self._bonus_of = bonus
        self.passing: Bools = np.zeros(0, np.bool_)
        """Rows that pass every standing check, whether there is room or not."""
        self._passing_rows: Rows = np.zeros(0, np.intp)
        self._bonus: Ints | None = None
        self._static_seen = 0

    def keys(self) -> Ints:
        """The keys of all rows, as of now."""
        return self._masked(self._board.keys())

    def passing_keys(self) -> Ints:
        """The same without the rows that do not pass. A key tells its row (`row_of`)."""
        self._see_standing()
        keys = self._board.keys()[self._passing_rows]
        if self._bonus is not None:
            keys = np.where(keys >= 0, keys + self._bonus[self._passing_rows], -1)
        return keys

    def standing(self) -> Bools:
        """Rows that pass every standing check, as of now, whether there is room or not."""
        self._see_standing()
        found: Bools = self.passing[: self._nodes.count]
        return found

    def fresh_keys(self) -> Ints:
        """The same with nothing remembered, neither scores nor checks: the plain path, to compare with."""
        nodes = self._nodes
        rows = np.arange(nodes.count)
        passing = nodes.alive[: nodes.count]
        for check in self.checks:
            passing = passing & check.mask(rows)
        keys = self._board.compute(slice(0, nodes.count))
        if self._bonus_of is not None:
            keys = np.where(keys >= 0, keys + (self._bonus_of(passing) << ROW_BITS), -1)
        found: Ints = np.where(passing, keys, -1)
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each of the rows, all of which pass, the keys of its n-th task for n from `first` on."""
        found = self._board.table(rows, first, width)
        if self._bonus is not None:
            found = np.where(found >= 0, found + self._bonus[rows][:, None], -1)
        return found

    def _masked(self, keys: Ints) -> Ints:
        self._see_standing()
        usable = self.passing[: len(keys)]
        if self._bonus is not None:
            usable = usable & (keys >= 0)
            keys = keys + self._bonus
        found: Ints = np.where(usable, keys, -1)
        return found

    def _see_standing(self) -> None:
        """Asks the standing checks again where nodes changed."""
        nodes, count = self._nodes, self._nodes.count
        if nodes.static_clock == self._static_seen:
            return
        if len(self.passing) < count:
            self.passing = np.pad(self.passing, (0, len(nodes.alive) - len(self.passing)))
        changed = np.flatnonzero(nodes.static_stamp[:count] > self._static_seen)
        passing = nodes.alive[changed]
        for check in self.checks:
            passing = passing & check.mask(changed)
        self.passing[changed] = passing
        self._passing_rows = np.flatnonzero(self.passing[:count])
        self._static_seen = nodes.static_clock
        if self._bonus_of is not None:
            self._bonus = self._bonus_of(self.passing[:count]) << ROW_BITS
