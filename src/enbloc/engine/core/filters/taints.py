"""Taints and tolerations: NoSchedule and NoExecute as checks, PreferNoSchedule as a count.

Evaluated once per distinct set of taints. A set keeps its taints sorted: the taint reported for a node is the first
untolerated one in that order, not in the order of the node's manifest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from enbloc.api import core
from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.node_terms import RowMask
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable, Rows, TaintFact
from enbloc.engine.core.tables.resources import Bools, Ints

REASON: Final = "node(s) had untolerated taint"
NAMED_BOUND: Final = 16
"""At most 16 taints get a reason of their own, the others share one: each node may have a taint of its own."""

_HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


def tolerates(toleration: core.Toleration, taint: TaintFact) -> bool:
    """An empty effect or key matches any; without an operator values must be equal."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt":
            if not (_INTEGER.fullmatch(taint.value) and _INTEGER.fullmatch(toleration.value)):
                return False
            value, limit = int(taint.value), int(toleration.value)
            return value < limit if toleration.operator == "Lt" else value > limit
    return False


def tolerated(tolerations: Sequence[core.Toleration], taint: TaintFact) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def checks(cls: TaskClass, nodes: NodeTable) -> list[Check]:
    """One for each taint of the present nodes that the class does not tolerate, and one for taints that appear later.

    They stay correct as new taints appear; checks that are built then name those taints too.
    """
    if _tolerates_all(cls):
        return []
    codes = _TaintCodes(cls, nodes)
    codes.refresh()
    named = list(codes.untolerated)[:NAMED_BOUND]
    found = [
        Check(f"{REASON} {{{key}: {value}}}", _other_than(code, codes))
        for code, (key, value) in enumerate(named, start=1)
    ]
    found.append(Check(REASON, _at_most(len(named), codes)))
    return found


def tolerated_mask(cls: TaskClass, nodes: NodeTable) -> RowMask:
    """Rows without an untolerated NoSchedule or NoExecute taint."""
    return _at_most(0, _TaintCodes(cls, nodes))


def preferred_avoidance(cls: TaskClass, nodes: NodeTable) -> Callable[[Rows], Ints] | None:
    """By row, the number of untolerated PreferNoSchedule taints: raw, fewer is better."""
    if _tolerates_all(cls):
        return None
    tolerations = cls.spec.tolerations or ()
    counts: list[int] = []

    def score(rows: Rows) -> Ints:
        for taints in nodes.taint_sets[len(counts) :]:
            avoided = [taint for taint in taints if taint.effect == "PreferNoSchedule"]
            counts.append(sum(not tolerated(tolerations, taint) for taint in avoided))
        found: Ints = np.array(counts, np.int64)[nodes.taint_set[rows]]
        return found

    return score


class _TaintCodes:
    """A code for each set of taints: 0 if it is tolerated, else the number of its first untolerated taint."""

    def __init__(self, cls: TaskClass, nodes: NodeTable) -> None:
        self._tolerations = cls.spec.tolerations or ()
        self._nodes = nodes
        self._codes: Ints = np.zeros(0, np.int64)
        self.untolerated: dict[tuple[str, str], int] = {}
        """Key and value of a taint, as reported (without the effect), and its code."""

    def refresh(self) -> None:
        """Evaluates the sets of taints that are new since the last call."""
        added = [self._code(taints) for taints in self._nodes.taint_sets[len(self._codes) :]]
        if added:
            self._codes = np.concatenate([self._codes, np.array(added, np.int64)])

    def of(self, rows: Rows) -> Ints:
        if len(self._codes) < len(self._nodes.taint_sets):
            self.refresh()
        found: Ints = self._codes[self._nodes.taint_set[rows]]
        return found

    def _code(self, taints: Sequence[TaintFact]) -> int:
        for taint in taints:
            if taint.effect in _HARD_EFFECTS and not tolerated(self._tolerations, taint):
                return self.untolerated.setdefault((taint.key, taint.value), len(self.untolerated) + 1)
        return 0


def _other_than(code: int, codes: _TaintCodes) -> RowMask:
    def mask(rows: Rows) -> Bools:
        found: Bools = codes.of(rows) != code
        return found

    return mask


def _at_most(named: int, codes: _TaintCodes) -> RowMask:
    def mask(rows: Rows) -> Bools:
        found: Bools = codes.of(rows) <= named
        return found

    return mask


def _tolerates_all(cls: TaskClass) -> bool:
    return any(
        toleration.operator == "Exists" and not toleration.key and not toleration.effect
        for toleration in cls.spec.tolerations or ()
    )
