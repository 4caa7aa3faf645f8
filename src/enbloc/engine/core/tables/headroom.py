"""What would be free on nodes after one more task of a request: what fits and scores are computed from.

A headroom has one entry for each row it is made for. A row may occur several times, each time with another number of
tasks already on it. Every entry is computed from its row alone, so scores need not distinguish the two cases.
"""

from __future__ import annotations

from typing import Final

from enbloc.engine.core.tables.nodes import NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools, Ints, Request
from enbloc.engine.events import NODE_EVENTS, EventKind

PARTS: Final = 128
"""Fractions of a node are counted in 128ths: fine enough to score by, coarse enough for int64 at the ceiling."""

FIT_WAKES_ON: Final = NODE_EVENTS | {EventKind.ROOM_FREED}
"""Events after which a request may fit where it did not."""


class Headroom:
    """All columns at once: on the few rows of a refresh, the number of numpy calls is what costs."""

    __slots__ = ("_left", "_nodes", "_rows", "request")

    def __init__(
        self, nodes: NodeTable, rows: Rows | slice, request: Request, tasks_per_row: Ints | None = None
    ) -> None:
        """`tasks_per_row[i]` is how many tasks `rows[i]` gets, the one looked at included; `None`: one each."""
        self._nodes = nodes
        self._rows = rows
        self.request = request
        amounts = nodes.amounts(request)
        # A copy for an array of rows, which is changed in place; for a slice a view, which must not be.
        free = nodes.free[:, rows].copy() if isinstance(rows, slice) else nodes.free.take(rows, axis=1)
        free -= amounts if tasks_per_row is None else amounts * tasks_per_row
        self._left: Ints = free

    def column(self, resource: str) -> int:
        """The column of a resource; it may be one that no node has."""
        return self._nodes.resources.column(resource)

    def after(self, column: int) -> Ints:
        """What is left of a resource with the task on the row: negative where it does not fit, 0 if no node has it."""
        found: Ints = self._left[column] if column < len(self._left) else self._left[0] * 0
        return found

    def allocatable(self, column: int) -> Ints:
        """The node's allocatable amount of a resource."""
        found: Ints = self._nodes.allocatable[column, self._rows]
        return found

    def free_parts(self, columns: int) -> Ints:
        """What is left, in 128ths of allocatable, for the first `columns` columns; 0 where the node has none."""
        found: Ints = self._left[:columns] * PARTS // self._nodes.divisor[:columns, self._rows]
        return found

    def free_part(self, column: int) -> Ints:
        """The same for one column; 0 if no node has it."""
        if column >= len(self._left):
            return self.after(column)
        found: Ints = self._left[column] * PARTS // self._nodes.divisor[column, self._rows]
        return found

    def fits(self) -> Bools:
        """Where the task fits."""
        found: Bools = self.refusals() == 0
        return found

    def refusals(self) -> Ints:
        """0 where the task fits, -1 where not; only the columns of its request count."""
        combined: Ints | None = None
        for column, _ in self.request:  # or-ed integers are negative where one of them is
            left = self._left[column]
            combined = left if combined is None else combined | left
        assert combined is not None, "a request always asks for a pod"
        found: Ints = combined >> 63  # the sign
        return found
