"""What would be left on nodes after one more task: what scores and fits are computed from.

A room is over some rows, or over rows times "the n-th task on that row": everything in it is an integer array of one
shape, computed from the rows alone, so scores need not care which of the two they are looking at.
"""

from __future__ import annotations

import numpy as np

from enbloc.engine.nodes import NodeTable, Rows
from enbloc.engine.resources import Bools, Ints, Request


class Room:
    __slots__ = ("_after", "_nodes", "_placed", "_rows", "_wanted", "request")

    def __init__(self, nodes: NodeTable, rows: Rows | slice, request: Request, placed: Ints | None = None) -> None:
        self._nodes = nodes
        self._rows = rows
        self._placed = placed
        """Tasks of this request already on the row, as a second axis; `None`: none, and there is no such axis."""
        self._wanted = dict(request)
        self._after: dict[int, Ints] = {}
        self.request = request

    def column(self, resource: str) -> int:
        column = self._nodes.resources.column(resource)
        self._nodes.widen()
        return column

    def after(self, column: int) -> Ints:
        """What is left of a resource once the task is on the row; negative where it does not fit."""
        known = self._after.get(column)
        if known is None:
            free: Ints = self._nodes.free[column, self._rows]
            amount = self._wanted.get(column, 0)
            if self._placed is not None:
                known = free[:, None] - (self._placed + 1) * amount
            else:
                known = free - amount if amount else free
            self._after[column] = known
        return known

    def allocatable(self, column: int) -> Ints:
        found: Ints = self._nodes.allocatable[column, self._rows]
        return found if self._placed is None else found[:, None]

    def free_percent(self, column: int) -> Ints:
        """0..100, of allocatable; 0 on nodes that have none of it."""
        found: Ints = self.after(column) * 100 // np.maximum(self.allocatable(column), 1)
        return found

    def free_parts(self, column: int) -> Ints:
        """The same in 0..128: finer, and still within int64 at the ceiling."""
        found: Ints = self.after(column) * 128 // np.maximum(self.allocatable(column), 1)
        return found

    def fits(self) -> Bools:
        """Where the task fits: only what it asks for is looked at."""
        found: Bools | None = None
        for column, _ in self.request:
            enough = self.after(column) >= 0
            found = enough if found is None else found & enough
        assert found is not None, "a request always asks for a pod"
        return found
