"""What would be left on nodes after one more task: what scores and fits are computed from.

A room has one entry for each row it is asked about; a row may come several times, with so many tasks of the request
on it already. Everything in it is computed from the row alone, so a score need not care which of the two it looks at.
"""

from __future__ import annotations

from typing import Final

from enbloc.engine.tables.nodes import NodeTable, Rows
from enbloc.engine.tables.resources import Bools, Ints, Request

PARTS: Final = 128
"""Of what a node has: fine enough to score by, coarse enough for int64 at the ceiling."""


class Headroom:
    """All columns at once: on the few rows of a refresh, what counts is the number of numpy calls."""

    __slots__ = ("_after", "_divisor", "_nodes", "_rows", "request")

    def __init__(self, nodes: NodeTable, rows: Rows | slice, request: Request, more: Ints | None = None) -> None:
        """`more[i]` is how many tasks `rows[i]` gets, the one that is looked at included; `None`: one each."""
        self._nodes = nodes
        self._rows = rows
        self.request = request
        wanted = nodes.amounts(request)
        self._after: Ints = nodes.free[:, rows] - (wanted if more is None else wanted * more)
        self._divisor: Ints = nodes.divisor[:, rows]

    def column(self, resource: str) -> int:
        """The column of a resource. One that no node has ever had is none of the room's."""
        return self._nodes.resources.column(resource)

    def after(self, column: int) -> Ints:
        """What is left of a resource once the task is on the row, negative where it does not fit; 0 if none has it."""
        found: Ints = self._after[column] if column < len(self._after) else self._after[0] * 0
        return found

    def allocatable(self, column: int) -> Ints:
        """What the node has of a resource in all."""
        found: Ints = self._nodes.allocatable[column, self._rows]
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
        lacking: Ints | None = None
        for column, _ in self.request:  # of several numbers one is negative where they are, or-ed together
            left = self._after[column]
            lacking = left if lacking is None else lacking | left
        assert lacking is not None, "a request always asks for a pod"
        found: Bools = lacking >= 0
        return found
