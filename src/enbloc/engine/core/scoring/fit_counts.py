"""How many more tasks of a class fit: by row, and summed by domain of a level (T6).

Both are kept up to date row by row: a placement changes the counts of its own row and of the domains above it. The sum
of a domain is exact for equal tasks, and a bound for gangs of several classes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from enbloc.engine.core.tables.node_trees import Level
from enbloc.engine.core.tables.nodes import NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools, Ints, Request


class FitCounts:
    """The counts of one class."""

    def __init__(self, nodes: NodeTable, request: Request, passing: Callable[[], Bools]) -> None:
        """`passing`: the rows that pass the filters over a node's own facts."""
        self._nodes = nodes
        self._request = request
        self._passing = passing
        self._rows: Ints = np.zeros(0, np.int64)
        self._computed_at = 0
        self._sums: dict[Level, tuple[int, Ints]] = {}
        """Level → its version, and the sum of each domain."""

    def rows(self) -> Ints:
        """By row, how many more tasks fit there; 0 where a filter over the node's own facts rejects them."""
        nodes, count = self._nodes, self._nodes.count
        if self._computed_at != nodes.version:
            if len(self._rows) < count:
                self._rows = np.pad(self._rows, (0, count - len(self._rows)))
            stale = np.flatnonzero(nodes.stamp[:count] > self._computed_at)
            found = np.where(self._passing()[stale], self._fitting(stale), 0)
            changed = found - self._rows[stale]
            self._rows[stale] = found
            for level, (version, sums) in self._sums.items():
                if version == level.version and len(level.ids) >= count:  # else it is summed anew once it is read
                    ids = level.ids[stale]
                    np.add.at(sums, ids[ids >= 0], changed[ids >= 0])
            self._computed_at = nodes.version
        return self._rows[:count]

    def by_domain(self, level: Level, closed: Bools | None = None) -> Ints:
        """By domain of a level, how many more tasks fit there together, `closed` rows not counted."""
        rows = self.rows()
        if closed is not None:
            return summed(level, np.where(closed[: len(rows)], 0, rows))
        known = self._sums.get(level)
        if known is None or known[0] != level.version:
            known = self._sums[level] = (level.version, summed(level, rows))
        return known[1]

    def _fitting(self, rows: Rows) -> Ints:
        free = self._nodes.free
        found: Ints | None = None
        for column, amount in self._request:
            part = free[column, rows] // amount
            found = part if found is None else np.minimum(found, part)
        assert found is not None, "a request always asks for a pod"
        return np.maximum(found, 0)


def summed(level: Level, amounts: Ints) -> Ints:
    """The sum of the rows of each domain."""
    inside = level.ids >= 0
    found = np.bincount(level.ids[inside], weights=amounts[inside], minlength=len(level.names))
    return found.astype(np.int64)
