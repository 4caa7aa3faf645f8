"""The candidate rows of every class, created on demand and cached until rows are renumbered.

Here the static checks and the preferences of a class are assembled from the filters and the config's plugins.
"""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from enbloc.engine.core.filters import node_affinity, node_selector, readiness, taints, unschedulable
from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.plugins.nodeorder import TIE
from enbloc.engine.core.plugins.plugin import Plugins
from enbloc.engine.core.scoring.candidates import Bonus, Candidates, ScoreVector
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Bools, Ints, Request


class CandidateTable:
    def __init__(self, nodes: NodeTable, volumes: VolumeTable, plugins: Plugins, weights: tuple[int, int]) -> None:
        """`weights`: of preferred node affinity, and of PreferNoSchedule taints."""
        self._nodes = nodes
        self._volumes = volumes
        self._plugins = plugins
        self._weights = weights
        self._known: dict[int, Candidates] = {}
        self._scores: dict[Request, ScoreVector] = {}
        self._valid_for = (0, 0, 0)
        """Renumberings of the nodes, version of the volumes, number of taint sets."""

    def of(self, cls: TaskClass) -> Candidates:
        """The rows that tasks of a class may use."""
        if self._valid_for != (self._nodes.moves, self._volumes.version, len(self._nodes.taint_sets)):
            self._drop_outdated()
        known = self._known.get(cls.id)
        if known is None:
            scores = self._scores.get(cls.request)
            if scores is None:
                scores = self._scores[cls.request] = ScoreVector(self._nodes, cls.request, self._plugins.score)
            known = self._known[cls.id] = Candidates(cls, self._nodes, self._checks(cls), scores, self._bonus(cls))
        return known

    def _drop_outdated(self) -> None:
        moves, _, taint_sets = self._valid_for
        if moves != self._nodes.moves:
            self._scores.clear()
        if moves != self._nodes.moves or taint_sets != len(self._nodes.taint_sets):  # checks name the taints
            self._known.clear()
        else:
            self._known = {ident: known for ident, known in self._known.items() if not known.cls.spec.volumes}
        self._valid_for = (self._nodes.moves, self._volumes.version, len(self._nodes.taint_sets))

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._known = {ident: known for ident, known in self._known.items() if ident in class_ids}
        requests = {known.cls.request for known in self._known.values()}
        self._scores = {request: scores for request, scores in self._scores.items() if request in requests}

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
        """Preferred node affinity and PreferNoSchedule taints, normalised over the rows that pass."""
        affinity_weight, taint_weight = self._weights
        affinity = node_affinity.preferred(cls, self._nodes) if affinity_weight else None
        avoidance = taints.preferred_avoidance(cls, self._nodes) if taint_weight else None
        if affinity is None and avoidance is None:
            return None

        def bonus(passing: Bools) -> Ints:
            rows = np.arange(len(passing))
            total = np.zeros(len(passing), np.int64)
            if affinity is not None:
                total += _normalised(affinity(rows), passing) * affinity_weight
            if avoidance is not None:
                total += (100 - _normalised(avoidance(rows), passing)) * taint_weight
            return total * TIE

        return bonus


def _normalised(raw: Ints, passing: Bools) -> Ints:
    """0..100, relative to the largest among the rows that pass."""
    top = int(raw[passing].max(initial=0))
    found: Ints = np.minimum(raw, top) * 100 // top if top > 0 else np.zeros(len(raw), np.int64)
    return found
