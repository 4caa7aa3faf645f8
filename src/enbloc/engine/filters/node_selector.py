"""`spec.nodeSelector`: the node has every label that it names, with that value."""

from __future__ import annotations

from enbloc.engine.filters.filter import Check
from enbloc.engine.filters.node_affinity import REASON
from enbloc.engine.filters.node_terms import LabelMask, all_of
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.units import equality_selector


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    selector = cls.spec.node_selector
    if not selector:
        return None
    return Check(REASON, all_of([LabelMask(line, nodes) for line in equality_selector(selector).requirements]))
