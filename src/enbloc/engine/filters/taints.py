"""Taints and tolerations: a check for those that forbid, a count of those that only discourage.

Judged once per distinct set of taints. A set keeps its taints sorted, so the "first" taint that is not tolerated, the
one that is reported for a node, is the first in that order and not in the order in which they were written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from enbloc.api import core
from enbloc.engine.filters.filter import Check
from enbloc.engine.filters.node_terms import RowMask
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable, Rows, TaintFact
from enbloc.engine.tables.resources import Bools, Ints

REASON: Final = "node(s) had untolerated taint"
NAMED_BOUND: Final = 16
"""So many taints get a reason of their own; with a taint of its own on each node the rest share the plain one."""

_FORBIDDING: Final = ("NoSchedule", "NoExecute")
_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


def tolerates(toleration: core.Toleration, taint: TaintFact) -> bool:
    """An empty effect or key is any; without an operator values must be equal."""
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
            had, bound = int(taint.value), int(toleration.value)
            return had < bound if toleration.operator == "Lt" else had > bound
    return False


def tolerated(tolerations: Sequence[core.Toleration], taint: TaintFact) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def checks(cls: TaskClass, nodes: NodeTable) -> list[Check]:
    """One for each taint that keeps the class off some node now, and one for taints that come later.

    They stay right as new taints appear; built anew, they give those a reason of their own as well.
    """
    if _tolerates_all(cls):
        return []
    verdicts = _Verdicts(cls, nodes)
    verdicts.catch_up()
    named = list(verdicts.blamed)[:NAMED_BOUND]
    found = [
        Check(f"{REASON} {{{key}: {value}}}", _other_than(code, verdicts))
        for code, (key, value) in enumerate(named, start=1)
    ]
    found.append(Check(REASON, _at_most(len(named), verdicts)))
    return found


def tolerated_mask(cls: TaskClass, nodes: NodeTable) -> RowMask:
    """Rows without any taint that forbids and is not tolerated, whatever it is."""
    return _at_most(0, _Verdicts(cls, nodes))


def preferred_avoidance(cls: TaskClass, nodes: NodeTable) -> Callable[[Rows], Ints] | None:
    """By row, how many taints of effect PreferNoSchedule the class does not tolerate: raw, less is better."""
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


class _Verdicts:
    """For each set of taints a code: 0 if it is tolerated, else the number of the taint to blame."""

    def __init__(self, cls: TaskClass, nodes: NodeTable) -> None:
        self._tolerations = cls.spec.tolerations or ()
        self._nodes = nodes
        self._codes: Ints = np.zeros(0, np.int64)
        self.blamed: dict[tuple[str, str], int] = {}
        """Key and value of a taint, as they are reported (the effect is not), and its code."""

    def catch_up(self) -> None:
        fresh = [self._code(taints) for taints in self._nodes.taint_sets[len(self._codes) :]]
        if fresh:
            self._codes = np.concatenate([self._codes, np.array(fresh, np.int64)])

    def codes(self, rows: Rows) -> Ints:
        if len(self._codes) < len(self._nodes.taint_sets):
            self.catch_up()
        found: Ints = self._codes[self._nodes.taint_set[rows]]
        return found

    def _code(self, taints: Sequence[TaintFact]) -> int:
        for taint in taints:
            if taint.effect in _FORBIDDING and not tolerated(self._tolerations, taint):
                return self.blamed.setdefault((taint.key, taint.value), len(self.blamed) + 1)
        return 0


def _other_than(code: int, verdicts: _Verdicts) -> RowMask:
    def mask(rows: Rows) -> Bools:
        found: Bools = verdicts.codes(rows) != code
        return found

    return mask


def _at_most(named: int, verdicts: _Verdicts) -> RowMask:
    def mask(rows: Rows) -> Bools:
        found: Bools = verdicts.codes(rows) <= named
        return found

    return mask


def _tolerates_all(cls: TaskClass) -> bool:
    return any(
        toleration.operator == "Exists" and not toleration.key and not toleration.effect
        for toleration in cls.spec.tolerations or ()
    )
