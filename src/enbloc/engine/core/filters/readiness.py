"""A node that is not ready takes no pod. Checked for every class; the row of a deleted node is not ready either."""

from __future__ import annotations

from typing import Final

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools

REASON: Final = "node(s) were not ready"


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    def mask(rows: Rows) -> Bools:
        found: Bools = nodes.ready[rows] & nodes.alive[rows]
        return found

    return Check(REASON, mask)
