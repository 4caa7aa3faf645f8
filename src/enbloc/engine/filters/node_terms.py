"""Which rows the terms of a node selector match: asked by node affinity and by the volumes that are pinned to nodes.

A requirement is judged once per distinct value of its label, never once per node: a mask over rows is then one lookup
in an array. What a user wrote wrongly matches no node; to say so at length is admission's business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from enbloc.api import core
from enbloc.engine.tables.nodes import LabelColumn, NodeTable, Rows
from enbloc.engine.tables.resources import Bools
from enbloc.units import Requirement

RowMask = Callable[[Rows], Bools]


class LabelTest:
    """One requirement on one label, over rows."""

    __slots__ = ("_column", "_nodes", "_requirement", "_verdicts")

    def __init__(self, requirement: Requirement, nodes: NodeTable) -> None:
        self._requirement = requirement
        self._nodes = nodes
        self._column: LabelColumn | None = None
        self._verdicts: Bools = np.zeros(0, np.bool_)

    def __call__(self, rows: Rows) -> Bools:
        column = self._nodes.label(self._requirement.key)
        if column is not self._column or len(self._verdicts) <= len(column.values):
            self._judge(column)
        found: Bools = self._verdicts[column.ids[rows]]
        return found

    def _judge(self, column: LabelColumn) -> None:
        """One verdict per value, by its id, and the one for nodes without the label last: there -1 finds it."""
        key, matches = self._requirement.key, self._requirement.matches
        # Values only ever join a column; a column is made anew when rows are renumbered.
        known = self._verdicts[:-1] if column is self._column else self._verdicts[:0]
        fresh = [matches({key: value}) for value in islice(column.values, len(known), None)]
        self._verdicts = np.concatenate([known, np.array([*fresh, matches({})], np.bool_)])
        self._column = column


def every(tests: Sequence[RowMask]) -> RowMask:
    """Rows that pass all tests; all rows if there are none."""
    if len(tests) == 1:
        return tests[0]

    def mask(rows: Rows) -> Bools:
        found: Bools = np.ones(len(rows), np.bool_)
        for test in tests:
            found &= test(rows)
        return found

    return mask


def some(tests: Sequence[RowMask]) -> RowMask:
    """Rows that pass one of the tests at least; no row if there are none."""

    def mask(rows: Rows) -> Bools:
        found: Bools = np.zeros(len(rows), np.bool_)
        for test in tests:
            found |= test(rows)
        return found

    return mask


def term_mask(term: core.NodeSelectorTerm, nodes: NodeTable) -> RowMask | None:
    """What one term matches; `None` for one that matches nothing: it is empty, or cannot be read."""
    tests: list[RowMask] = []
    try:
        for line in term.match_expressions or ():
            tests.append(LabelTest(Requirement(line.key, line.operator, line.values or ()), nodes))
        for line in term.match_fields or ():
            tests.append(_name_test(line, nodes))
    except ValueError:
        return None
    return every(tests) if tests else None


def terms_mask(selector: core.NodeSelector, nodes: NodeTable) -> RowMask:
    """Its terms are alternatives; without terms nothing matches."""
    masks = [term_mask(term, nodes) for term in selector.node_selector_terms or ()]
    return some([mask for mask in masks if mask is not None])


def _name_test(line: core.NodeSelectorRequirement, nodes: NodeTable) -> RowMask:
    """A node's name is the only field there is, and one name at a time is all that Kubernetes takes."""
    values = line.values or ()
    if line.key != "metadata.name" or line.operator not in ("In", "NotIn") or len(values) != 1:
        raise ValueError(f"{line.operator} on field {line.key} is not for nodes")
    name, wanted = values[0], line.operator == "In"

    def mask(rows: Rows) -> Bools:
        found: Bools = (rows == nodes.rows.get(name, -1)) == wanted
        return found

    return mask
