"""`spec.nodeSelector`: every label it names, with that value."""

from __future__ import annotations

from enbloc.engine.classes import TaskClass
from enbloc.engine.nodes import NodeTable
from enbloc.engine.predicates.node_affinity import REASON
from enbloc.engine.predicates.node_terms import LabelTest, every
from enbloc.engine.predicates.predicate import Check
from enbloc.units import equality_selector


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    wanted = cls.spec.node_selector
    if not wanted:
        return None
    return Check(REASON, every([LabelTest(line, nodes) for line in equality_selector(wanted).requirements]))
