"""Room that pods of other schedulers use, by node: it is not shared out among queues (V4)."""

from __future__ import annotations

import numpy as np

from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Ints, Request


class ForeignRoom:
    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._used: dict[str, dict[int, int]] = {}
        """Node → column → amount."""
        self._version = 0
        self._shared: Ints = np.zeros(0, np.int64)
        self._valid_for: object = None
        """The facts that `_shared` was computed from."""

    def count(self, node: str, request: Request, by: int) -> None:
        """A pod of another scheduler uses room on a node (1), or no longer does (-1)."""
        self._version += 1
        used = self._used.setdefault(node, {})
        for column, amount in request:
            used[column] = used.get(column, 0) + by * amount
        if not any(used.values()):
            del self._used[node]

    def shared(self) -> Ints:
        """By column, what usable nodes have besides what pods of other schedulers use on them."""
        totals = self._nodes.totals()
        if not self._used:
            return totals
        facts = (self._version, self._nodes.static_version, len(self._nodes.rows), len(totals))
        if self._valid_for != facts:
            nodes = self._nodes
            taken = np.zeros(len(totals), np.int64)
            for name, used in self._used.items():
                row = nodes.rows.get(name)
                if row is not None and nodes.ready[row] and not nodes.unschedulable[row]:
                    for column, amount in used.items():
                        taken[column] += amount
            self._shared, self._valid_for = np.maximum(totals - taken, 0), facts
        return self._shared
