"""`spec.nodeSelector`: every label it names, with that value."""

from __future__ import annotations

from enbloc.engine.filters.filter import Check
from enbloc.engine.filters.node_affinity import REASON
from enbloc.engine.filters.node_terms import LabelTest, every
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.units import equality_selector


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    wanted = cls.spec.node_selector
    if not wanted:
        return None
    return Check(REASON, every([LabelTest(line, nodes) for line in equality_selector(wanted).requirements]))
