"""The candidate nodes of a class, as one sort key per row: cached, and refreshed row by row as nodes change.

A key is -1 where a task of the class cannot go, else its score shifted left with the row's rank below it. The largest
key is the best node, no two keys are equal, and ties go to the lowest row. Scores and free room depend on the request
alone, so classes with equal requests share one `ScoreVector`. What depends on other pods' placements (the stateful
filters) is left to the caller.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.scoring.fit_counts import FitCounts
from enbloc.engine.core.scoring.headroom import FIT_WAKES_ON, Headroom
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import ROW_BITS, NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools, Ints, Request
from enbloc.engine.events import EventKind

ScoreRows = Callable[[Headroom], Ints]
Bonus = Callable[[Bools], Ints]
"""Preferences of the class (node affinity, taints), normalised over the rows that pass; weights included."""


class ScoreVector:
    """The keys of all rows for one request, before static checks: shared by every class with that request."""

    def __init__(self, nodes: NodeTable, request: Request, score: ScoreRows) -> None:
        self._nodes = nodes
        self._request = request
        self._score = score
        self._keys: Ints = np.zeros(0, np.int64)
        self._computed_at = 0
        """`nodes.version` as of the last refresh."""

    def keys(self) -> Ints:
        """-1 where the request does not fit, else score and rank. Refreshes the rows that changed."""
        nodes, count = self._nodes, self._nodes.count
        if self._computed_at != nodes.version:
            if len(self._keys) < count:
                self._keys = np.pad(self._keys, (0, len(nodes.alive) - len(self._keys)), constant_values=-1)
            stale = (nodes.stamp[:count] > self._computed_at).nonzero()[0]
            self._keys[stale] = self.compute(stale)
            self._computed_at = nodes.version
        return self._keys[:count]

    def compute(self, rows: Rows | slice, tasks_per_row: Ints | None = None) -> Ints:
        """The keys of these rows, computed from the rows alone; `tasks_per_row` as in `Headroom`."""
        headroom = Headroom(self._nodes, rows, self._request, tasks_per_row)
        found: Ints = self._score(headroom) << ROW_BITS
        found |= self._nodes.ranks[rows]
        found |= headroom.refusals()
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each row, the keys of its n-th task for n from `first` on (0 is the next), from what is free now."""
        if width == 1:
            return self.compute(rows, np.full(1, first + 1))[:, None]
        numbers = np.arange(first + 1, first + width + 1, dtype=np.int64)
        found = self.compute(np.repeat(rows, width), np.tile(numbers, len(rows)))
        return found.reshape(len(rows), width)


class Candidates:
    """The candidate rows of one class: a score vector, masked by the class's static checks."""

    def __init__(
        self, cls: TaskClass, nodes: NodeTable, checks: list[Check], scores: ScoreVector, bonus: Bonus | None
    ) -> None:
        self.cls = cls
        self.checks = checks
        self._nodes = nodes
        self._scores = scores
        self._compute_bonus = bonus
        self._passing: Bools = np.zeros(0, np.bool_)
        self._passing_rows: Rows = np.zeros(0, np.intp)
        self._bonus: Ints | None = None
        """What preferences add to the key of each row; `None`: the same for all that pass."""
        self._checked_at = 0
        """`nodes.static_version` as of the last refresh of the static checks."""
        self.counts = FitCounts(nodes, cls.request, self.passing)
        """How many tasks of the class fit, by row and by domain (T6)."""

    def passing(self) -> Bools:
        """Rows that pass every static check, whether there is room or not."""
        self._refresh_static()
        found: Bools = self._passing[: self._nodes.count]
        return found

    def passes(self, row: int) -> bool:
        """Whether one row passes every static check."""
        self._refresh_static()
        return bool(self._passing[row])

    def keys(self) -> Ints:
        """The keys of all rows."""
        keys = self._scores.keys()
        self._refresh_static()
        usable = self._passing[: len(keys)]
        if self._bonus is not None:
            usable = usable & (keys >= 0)
            keys = keys + self._bonus
        found: Ints = np.where(usable, keys, -1)
        return found

    def passing_keys(self) -> Ints:
        """The keys of the rows that pass, only, as an array of the caller's own; a key's low bits give its row."""
        self._refresh_static()
        keys = self._scores.keys().take(self._passing_rows)
        if self._bonus is not None:
            keys = np.where(keys >= 0, keys + self._bonus[self._passing_rows], -1)
        return keys

    def uncached_keys(self) -> Ints:
        """The keys of all rows, computed without any cache: the reference that tests compare with."""
        nodes = self._nodes
        rows = np.arange(nodes.count)
        passing = nodes.alive[: nodes.count]
        for check in self.checks:
            passing = passing & check.mask(rows)
        keys = self._scores.compute(slice(0, nodes.count))
        if self._compute_bonus is not None:
            keys = np.where(keys >= 0, keys + (self._compute_bonus(passing) << ROW_BITS), -1)
        found: Ints = np.where(passing, keys, -1)
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each of the rows, all of which pass, the keys of its n-th task for n from `first` on."""
        found = self._scores.table(rows, first, width)
        if self._bonus is not None:
            found = np.where(found >= 0, found + self._bonus[rows][:, None], -1)
        return found

    def wakes_on(self) -> frozenset[EventKind]:
        """The events that can make one more row a candidate: those of the class's static checks and of free room."""
        return FIT_WAKES_ON.union(*(check.wakes_on for check in self.checks))

    def _refresh_static(self) -> None:
        """Repeats the static checks on the rows whose static facts changed."""
        nodes, count = self._nodes, self._nodes.count
        if nodes.static_version == self._checked_at:
            return
        if len(self._passing) < count:
            self._passing = np.pad(self._passing, (0, len(nodes.alive) - len(self._passing)))
        changed = np.flatnonzero(nodes.static_stamp[:count] > self._checked_at)
        passing = nodes.alive[changed]
        for check in self.checks:
            passing = passing & check.mask(changed)
        self._passing[changed] = passing
        self._passing_rows = np.flatnonzero(self._passing[:count])
        self._checked_at = nodes.static_version
        if self._compute_bonus is not None:
            bonus = self._compute_bonus(self._passing[:count])
            of_passing = bonus.take(self._passing_rows)
            # One that all rows have decides nothing: most clusters have no taint that pods should avoid.
            decides = len(of_passing) > 0 and bool((of_passing != of_passing[0]).any())
            self._bonus = bonus << ROW_BITS if decides else None
