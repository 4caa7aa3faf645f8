"""A cordoned node takes only pods that tolerate the taint `node.kubernetes.io/unschedulable`."""

from __future__ import annotations

from typing import Final

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.taints import tolerated
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable, Rows, TaintFact
from enbloc.engine.core.tables.resources import Bools

REASON: Final = "node(s) were unschedulable"
_CORDONED: Final = TaintFact("node.kubernetes.io/unschedulable", "", "NoSchedule")


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    if tolerated(cls.spec.tolerations or (), _CORDONED):
        return None

    def mask(rows: Rows) -> Bools:
        found: Bools = ~nodes.unschedulable[rows]
        return found

    return Check(REASON, mask)
