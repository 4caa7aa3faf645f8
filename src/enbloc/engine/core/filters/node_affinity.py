"""Node affinity: the required terms as a check, the preferred ones as a sum of weights.

The sum is raw; candidate scoring normalises and weights it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.node_terms import RowMask, term_mask, terms_mask
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable, Rows
from enbloc.engine.core.tables.resources import Ints

REASON: Final = "node(s) didn't match Pod's node affinity/selector"


def check(cls: TaskClass, nodes: NodeTable) -> Check | None:
    affinity = cls.spec.affinity.node_affinity if cls.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    if required is None:
        return None
    return Check(REASON, terms_mask(required, nodes))


def preferred(cls: TaskClass, nodes: NodeTable) -> Callable[[Rows], Ints] | None:
    """By row, the summed weights of the preferred terms that match."""
    affinity = cls.spec.affinity.node_affinity if cls.spec.affinity else None
    weighted: list[tuple[int, RowMask]] = []
    for term in (affinity.preferred_during_scheduling_ignored_during_execution if affinity else None) or ():
        mask = term_mask(term.preference, nodes)
        if mask is not None and term.weight:
            weighted.append((term.weight, mask))
    if not weighted:
        return None

    def score(rows: Rows) -> Ints:
        found: Ints = np.zeros(len(rows), np.int64)
        for weight, mask in weighted:
            found += weight * mask(rows)
        return found

    return score
