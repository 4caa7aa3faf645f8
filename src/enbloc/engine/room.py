"""What would be left on nodes after one more task: what scores and fits are computed from.

A room is over some rows, or over rows times "the n-th task on that row": everything in it is an integer array of one
shape, computed from the rows alone, so scores need not care which of the two they are looking at.
"""

from __future__ import annotations

from typing import Final

from enbloc.engine.nodes import NodeTable, Rows
from enbloc.engine.resources import Bools, Ints, Request


PARTS: Final = 128
"""Of what a node has: fine enough to score by, coarse enough for int64 at the ceiling."""


class Room:
    """All columns at once: on the few rows of a refresh, what counts is the number of numpy calls."""

    __slots__ = ("_after", "_divisor", "_nodes", "request")

    def __init__(self, nodes: NodeTable, rows: Rows | slice, request: Request, placed: Ints | None = None) -> None:
        """`placed` adds a second axis: so many tasks of this request are on the row already."""
        self._nodes = nodes
        self.request = request
        wanted = nodes.amounts(request)
        free, divisor = nodes.free[:, rows], nodes.divisor[:, rows]
        if placed is None:
            self._after: Ints = free - wanted
            self._divisor: Ints = divisor
        else:
            self._after = free[:, :, None] - wanted[:, :, None] * (placed + 1)
            self._divisor = divisor[:, :, None]

    def column(self, resource: str) -> int:
        """The column of a resource. One that no node has ever had is none of the room's."""
        return self._nodes.resources.column(resource)

    def after(self, column: int) -> Ints:
        """What is left of a resource once the task is on the row, negative where it does not fit; 0 if none has it."""
        found: Ints = self._after[column] if column < len(self._after) else self._after[0] * 0
        return found

    def free_parts(self, columns: int) -> Ints:
        """What is left of what the node has, in 0..128, for the first so many columns; 0 where it has none."""
        found: Ints = self._after[:columns] * PARTS // self._divisor[:columns]
        return found

    def free_part(self, column: int) -> Ints:
        """The same for one column; 0 if no node has it."""
        found: Ints = (
            self._after[column] * PARTS // self._divisor[column] if column < len(self._after) else self.after(column)
        )
        return found

    def fits(self) -> Bools:
        """Where the task fits: only what it asks for is looked at."""
        count = len(self.request)
        if self.request[-1][0] == count - 1:  # cpu, memory and a pod, as most
            found: Bools = (self._after[:count] >= 0).all(axis=0)
            return found
        enough: Bools = (self._after[[column for column, _ in self.request]] >= 0).all(axis=0)
        return enough
