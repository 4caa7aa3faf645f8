"""`spec.nodeSelector`: the node has every label that it names, with that value."""

from __future__ import annotations

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.node_affinity import REASON
from enbloc.engine.core.filters.node_terms import LabelMask, all_of
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.units import equality_selector


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    selector = cls.spec.node_selector
    if not selector:
        return None
    return Check(REASON, all_of([LabelMask(line, nodes) for line in equality_selector(selector).requirements]))
