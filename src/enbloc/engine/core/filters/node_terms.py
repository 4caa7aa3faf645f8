"""Which rows the terms of a node selector match: used by node affinity and by volumes that are pinned to nodes.

A requirement is evaluated once per distinct value of its label, not once per node: a mask over rows is then one lookup
in an array. A malformed term matches no node; admission reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from enbloc.api import core
from enbloc.engine.core.tables.nodes import LabelColumn, NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools
from enbloc.units import Requirement

RowMask = Callable[[Rows], Bools]


class LabelMask:
    """One requirement on one label, as a mask over rows."""

    __slots__ = ("_column", "_matches", "_nodes", "_requirement")

    def __init__(self, requirement: Requirement, nodes: NodeTable) -> None:
        self._requirement = requirement
        self._nodes = nodes
        self._column: LabelColumn | None = None
        self._matches: Bools = np.zeros(0, np.bool_)
        """By value id; last the result for nodes without the label, where id -1 finds it."""

    def __call__(self, rows: Rows) -> Bools:
        column = self._nodes.label(self._requirement.key)
        if column is not self._column or len(self._matches) <= len(column.values):
            self._evaluate(column)
        found: Bools = self._matches[column.ids[rows]]
        return found

    def _evaluate(self, column: LabelColumn) -> None:
        """Evaluates the values that are new since the last call."""
        key, matches = self._requirement.key, self._requirement.matches
        # Values are only ever added to a column; renumbering the rows makes a new column.
        known = self._matches[:-1] if column is self._column else self._matches[:0]
        added = [matches({key: value}) for value in islice(column.values, len(known), None)]
        self._matches = np.concatenate([known, np.array([*added, matches({})], np.bool_)])
        self._column = column


def all_of(masks: Sequence[RowMask]) -> RowMask:
    """Rows that pass every mask; all rows if there is none."""
    if len(masks) == 1:
        return masks[0]

    def mask(rows: Rows) -> Bools:
        found: Bools = np.ones(len(rows), np.bool_)
        for one in masks:
            found &= one(rows)
        return found

    return mask


def any_of(masks: Sequence[RowMask]) -> RowMask:
    """Rows that pass at least one mask; no row if there is none."""

    def mask(rows: Rows) -> Bools:
        found: Bools = np.zeros(len(rows), np.bool_)
        for one in masks:
            found |= one(rows)
        return found

    return mask


def term_mask(term: core.NodeSelectorTerm, nodes: NodeTable) -> RowMask | None:
    """The rows that one term matches; `None` for a term that matches none: it is empty or malformed."""
    masks: list[RowMask] = []
    try:
        for line in term.match_expressions or ():
            masks.append(LabelMask(Requirement(line.key, line.operator, line.values or ()), nodes))
        for line in term.match_fields or ():
            masks.append(_name_mask(line, nodes))
    except ValueError:
        return None
    return all_of(masks) if masks else None


def terms_mask(selector: core.NodeSelector, nodes: NodeTable) -> RowMask:
    """The terms are alternatives; without terms no row matches."""
    masks = [term_mask(term, nodes) for term in selector.node_selector_terms or ()]
    return any_of([mask for mask in masks if mask is not None])


def _name_mask(line: core.NodeSelectorRequirement, nodes: NodeTable) -> RowMask:
    """`metadata.name` is the only field of a node that Kubernetes matches, with exactly one value."""
    values = line.values or ()
    if line.key != "metadata.name" or line.operator not in ("In", "NotIn") or len(values) != 1:
        raise ValueError(f"{line.operator} on field {line.key} is not supported for nodes")
    name, equal = values[0], line.operator == "In"

    def mask(rows: Rows) -> Bools:
        found: Bools = (rows == nodes.rows.get(name, -1)) == equal
        return found

    return mask
