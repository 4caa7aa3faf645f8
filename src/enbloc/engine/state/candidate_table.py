"""The candidate rows of every class, made when first asked for and kept while the nodes are numbered as they are.

What a node must be like (the standing checks) and what is preferred of it come together here, from the predicates and
the plugins that the config has.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from enbloc.engine.filters import node_affinity, node_selector, readiness, taints, unschedulable
from enbloc.engine.filters.filter import Check
from enbloc.engine.filters.volumes import VolumeBook
from enbloc.engine.plugins.nodeorder import TIE
from enbloc.engine.plugins.plugin import Plugins
from enbloc.engine.scoring.candidates import Bonus, Candidates, ScoreVector
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Bools, Ints, Request


class CandidateTable:
    def __init__(self, nodes: NodeTable, volumes: VolumeBook, plugins: Plugins, weights: tuple[int, int]) -> None:
        """`weights`: of preferred node affinity, and of taints that are only to be avoided."""
        self._nodes = nodes
        self._volumes = volumes
        self._plugins = plugins
        self._weights = weights
        self._known: dict[int, Candidates] = {}
        self._boards: dict[Request, ScoreVector] = {}
        self._at = (0, 0, 0)

    def of(self, cls: TaskClass) -> Candidates:
        """The rows that tasks of a class may use."""
        at = (self._nodes.moves, self._volumes.version, len(self._nodes.taint_sets))
        if at != self._at:
            if at[0] != self._at[0]:
                self._boards.clear()
            if at[0] != self._at[0] or at[2] != self._at[2]:  # new taints: checks name them
                self._known.clear()
            else:
                for ident in [i for i, known in self._known.items() if known.cls.spec.volumes]:
                    del self._known[ident]
            self._at = at
        known = self._known.get(cls.id)
        if known is None:
            board = self._boards.get(cls.request)
            if board is None:
                board = self._boards[cls.request] = ScoreVector(self._nodes, cls.request, self._plugins.score)
            known = self._known[cls.id] = Candidates(cls, self._nodes, self._checks(cls), board, self._bonus(cls))
        return known

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._known = {ident: known for ident, known in self._known.items() if ident in alive}
        asked = {known.cls.request for known in self._known.values()}
        self._boards = {request: board for request, board in self._boards.items() if request in asked}

    def _checks(self, cls: TaskClass) -> list[Check]:
        found: list[Check | None] = [readiness.check(cls, self._nodes)]
        if self._plugins.predicates:
            found.append(unschedulable.check(cls, self._nodes))
            found.append(node_selector.check(cls, self._nodes))
            found.append(node_affinity.check(cls, self._nodes))
            found.extend(taints.checks(cls, self._nodes))
            found.extend(self._volumes.checks(cls, self._nodes))
        found.extend(mask(cls, self._nodes) for mask in self._plugins.masks)
        return [check for check in found if check is not None]

    def _bonus(self, cls: TaskClass) -> Bonus | None:
        """Preferred node affinity and tolerable taints, normalised once over the rows that pass."""
        affinity_weight, taint_weight = self._weights
        wanted = node_affinity.preferred(cls, self._nodes) if affinity_weight else None
        avoided = taints.preferred_avoidance(cls, self._nodes) if taint_weight else None
        if wanted is None and avoided is None:
            return None

        def bonus(passing: Bools) -> Ints:
            rows = np.arange(len(passing))
            total = np.zeros(len(passing), np.int64)
            if wanted is not None:
                total += _normalised(wanted(rows), passing) * affinity_weight
            if avoided is not None:
                total += (100 - _normalised(avoided(rows), passing)) * taint_weight
            return total * TIE

        return bonus


def _normalised(raw: Ints, passing: Bools) -> Ints:
    """0..100, by the largest among the rows that pass."""
    top = int(raw[passing].max(initial=0))
    found: Ints = np.minimum(raw, top) * 100 // top if top > 0 else np.zeros(len(raw), np.int64)
    return found
