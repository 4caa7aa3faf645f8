"""The rows that a class may use, best first: kept, and refreshed row by row as nodes change.

`keys` holds one integer a row: -1 where a task of the class cannot go, else its score with the row's rank below it,
so that the largest key is the best node and ties go to the lowest row. Scores and fits depend on the request alone, so
classes that ask for the same amounts share a board.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from enbloc.engine.classes import TaskClass
from enbloc.engine.nodes import NodeTable, Rows
from enbloc.engine.predicates.predicate import Check
from enbloc.engine.resources import Bools, Ints, Request
from enbloc.engine.room import Room

ROW_BITS = 24
ROW_MASK = 2**ROW_BITS - 1

ScoreRoom = Callable[[Room], Ints]
Bonus = Callable[[Bools], Ints]
"""What the class would rather have of a node, normalised over the rows that pass; weights included."""


class Board:
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
            self._keys[stale] = self.compute(stale, stale)
            self.seen = nodes.clock
        return self._keys[:count]

    def compute(self, rows: Rows | slice, numbers: Rows) -> Ints:
        """The keys of these rows, from nothing but the rows; `numbers` are the rows' numbers."""
        room = Room(self._nodes, rows, self._request)
        found: Ints = np.where(room.fits(), (self._score(room) << ROW_BITS) | (ROW_MASK - numbers), -1)
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each row, the keys of its n-th task for n from `first` on, counted from what is free now."""
        placed = np.arange(first, first + width, dtype=np.int64)[None, :]
        room = Room(self._nodes, rows, self._request, placed)
        found: Ints = np.where(room.fits(), (self._score(room) << ROW_BITS) | (ROW_MASK - rows)[:, None], -1)
        return found


class Candidates:
    """The candidate rows of one class: a board, less the rows that its standing checks turn away."""

    def __init__(
        self, cls: TaskClass, nodes: NodeTable, checks: list[Check], board: Board, bonus: Bonus | None
    ) -> None:
        self.cls = cls
        self.checks = checks
        self._nodes = nodes
        self._board = board
        self._bonus_of = bonus
        self.passing: Bools = np.zeros(0, np.bool_)
        """Rows that pass every standing check, whether there is room or not."""
        self._bonus: Ints | None = None
        self._keys: Ints = np.zeros(0, np.int64)
        self._seen = 0
        self._static_seen = 0

    def keys(self) -> Ints:
        """The keys of all rows, as of now. Valid until the next change of the nodes."""
        if self._seen != self._nodes.clock:
            self._keys = self._masked(self._board.keys())
            self._seen = self._nodes.clock
        return self._keys

    def fresh_keys(self) -> Ints:
        """The same computed over all rows, with no score remembered: the plain path, to compare with."""
        count = self._nodes.count
        return self._masked(self._board.compute(slice(0, count), np.arange(count)))

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
        self._static_seen = nodes.static_clock
        if self._bonus_of is not None:
            self._bonus = self._bonus_of(self.passing[:count]) << ROW_BITS
