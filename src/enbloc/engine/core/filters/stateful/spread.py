"""Topology spread: by how much the number of matching pods may differ between topology domains.

`DoNotSchedule` is a mask, `ScheduleAnyway` a score of 0..100. Which nodes count for a domain is set by the constraint:
by default (`nodeAffinityPolicy`) those that match the pod's node selector and affinity; with `nodeTaintsPolicy: Honor`
only those whose taints it tolerates. A cluster's default constraints are not considered.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from enbloc.api import core
from enbloc.engine.core.filters import node_affinity, node_selector, taints
from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.node_terms import RowMask, all_of
from enbloc.engine.core.filters.pod_terms import CACHED_TERMS, PodSelector, label_selector
from enbloc.engine.core.filters.stateful.assigned_pods import AssignedPods
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.events import NODE_EVENTS, PODS_REMOVED, EventKind

SKEWED: Final = "node(s) didn't match pod topology spread constraints"
UNLABELLED: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
_HOSTNAME: Final = "kubernetes.io/hostname"

Constraint = core.TopologySpreadConstraint


class _ClassSpread(NamedTuple):
    """The constraints of a class, and the masks of the rows that count for them."""

    hard: tuple[Constraint, ...]
    soft: tuple[Constraint, ...]
    affinity: RowMask | None
    taints: RowMask

    def counted(self, constraint: Constraint, among: Bools) -> Bools:
        """Of the rows `among`, those that count by the constraint's policies."""
        found = among
        if constraint.node_affinity_policy != "Ignore" and self.affinity is not None:
            found = found & self.affinity(np.arange(len(among)))
        if constraint.node_taints_policy == "Honor":
            found = found & self.taints(np.arange(len(among)))
        return found


class TopologySpread:
    """Reads an index of assigned pods that its owner updates; keeps no counts of its own."""

    wakes_on: ClassVar[frozenset[EventKind]] = NODE_EVENTS | PODS_REMOVED | {EventKind.POD_PLACED}

    def __init__(self, assigned: AssignedPods[Any]) -> None:
        self._assigned = assigned
        self._classes: dict[int, _ClassSpread] = {}
        self._filters: dict[tuple[object, ...], PodSelector] = {}
        """By class id, constraint and the label values that it takes from the pod."""

    def applies(self, task: Placeable) -> bool:
        return bool(task.cls.spec.topology_spread_constraints)

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        spread = self._of(task.cls)
        if not spread.hard:
            return []
        labelled = self._labelled(spread.hard)
        balanced: Bools = np.ones(len(labelled), np.bool_)
        eligible = labelled & self._assigned.nodes.alive[: len(labelled)]
        for constraint in spread.hard:
            balanced &= self._within_skew(task, spread, constraint, eligible)
        # A node without the label is reported for that reason only.
        return [(UNLABELLED, labelled), (SKEWED, balanced | ~labelled)]

    def helpers(self, task: Placeable) -> list[Ints]:
        """By row, how many pods its hard constraints count: more of them in one domain open others."""
        return [self._matching(self._pods(constraint, task)) for constraint in self._of(task.cls).hard]

    def helped_by(self, task: Placeable) -> list[tuple[PodSelector, ...]]:
        """The selectors of those pods."""
        return [(self._pods(constraint, task),) for constraint in self._of(task.cls).hard]

    def score(self, task: Placeable, among: Bools | None = None) -> Ints | None:
        """0..100 over the rows `among` (default: all live nodes); `None` without a soft constraint."""
        spread = self._of(task.cls)
        if not spread.soft:
            return None
        size = self._assigned.nodes.count
        alive = self._assigned.nodes.alive[:size]
        labelled = self._labelled(spread.soft)
        scored = labelled & (alive if among is None else among & alive)
        if not scored.any():
            return np.zeros(size, np.int64)
        weighted = np.zeros(size)
        for constraint in spread.soft:
            weighted += self._weighted_counts(task, spread, constraint, labelled & alive, scored)
        whole: Ints = np.floor(weighted + 0.5).astype(np.int64)
        least, most = int(whole[scored].min()), int(whole[scored].max())
        if most == 0:
            return np.where(scored, 100, 0).astype(np.int64)
        found: Ints = np.where(scored, 100 * (most + least - whole) // most, 0)
        return found

    def add(self, task: Placeable, row: int) -> None:
        """Nothing to do: the index of assigned pods counts."""

    def remove(self, task: Placeable, row: int) -> None:
        """Nothing to do: the index of assigned pods counts."""

    def digest(self) -> object:
        return ()

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._classes = {ident: spread for ident, spread in self._classes.items() if ident in class_ids}
        self._filters = {ident: pods for ident, pods in self._filters.items() if ident[0] in class_ids}

    def _within_skew(self, task: Placeable, spread: _ClassSpread, constraint: Constraint, eligible: Bools) -> Bools:
        """Rows on which one more pod would leave its domain at most `maxSkew` above the domain with the fewest."""
        assigned = self._assigned
        pods = self._pods(constraint, task)
        counted = spread.counted(constraint, eligible)
        rows = self._matching(pods)
        _, sums = assigned.domain_sums(constraint.topology_key, rows, counted)
        ids = assigned.nodes.label(constraint.topology_key).ids[: len(eligible)]
        domains = int(np.count_nonzero(np.bincount(ids[counted])))
        # With fewer domains than `minDomains`, the global minimum is 0.
        fewest = int(sums[counted].min()) if domains >= (constraint.min_domains or 1) else 0
        found: Bools = sums + int(pods.matches(task)) - fewest <= constraint.max_skew
        return found

    def _weighted_counts(
        self, task: Placeable, spread: _ClassSpread, constraint: Constraint, labelled: Bools, scored: Bools
    ) -> NDArray[np.floating[Any]]:
        """By row, the matching pods of its domain, weighted as in kube-scheduler: more with more domains."""
        assigned, key = self._assigned, constraint.topology_key
        rows = self._matching(self._pods(constraint, task))
        if key == _HOSTNAME:
            domains, sums = int(scored.sum()), rows[: len(scored)]
        else:
            domains = int(np.count_nonzero(np.bincount(assigned.nodes.label(key).ids[: len(scored)][scored])))
            _, sums = assigned.domain_sums(key, rows, spread.counted(constraint, labelled))
        return sums * math.log(domains + 2) + (constraint.max_skew - 1)

    def _labelled(self, constraints: tuple[Constraint, ...]) -> Bools:
        """Rows that have the labels of all constraints: no other row counts for any of them."""
        found: Bools = np.ones(self._assigned.nodes.count, np.bool_)
        for key in {constraint.topology_key for constraint in constraints}:
            found &= self._assigned.nodes.label(key).ids[: len(found)] >= 0
        return found

    def _of(self, cls: TaskClass) -> _ClassSpread:
        found = self._classes.get(cls.id)
        if found is None:
            nodes = self._assigned.nodes
            constraints = cls.spec.topology_spread_constraints or ()
            checks = [node_selector.check(cls, nodes), node_affinity.check(cls, nodes)]
            masks = [check.mask for check in checks if check is not None]
            found = self._classes[cls.id] = _ClassSpread(
                tuple(constraint for constraint in constraints if constraint.when_unsatisfiable == "DoNotSchedule"),
                tuple(constraint for constraint in constraints if constraint.when_unsatisfiable == "ScheduleAnyway"),
                all_of(masks) if masks else None,
                taints.tolerated_mask(cls, nodes),
            )
        return found

    def _matching(self, pods: PodSelector) -> Ints:
        return self._assigned.count(pods.key, pods.namespaces, pods.anchor, pods.matches).rows

    def _pods(self, constraint: Constraint, task: Placeable) -> PodSelector:
        """The pods that a constraint counts: of the task's namespace only."""
        keys = constraint.match_label_keys or ()
        # A constraint lives as long as its class, so its id() identifies it.
        ident = (task.cls.id, id(constraint), *[task.labels.get(key) for key in keys])
        found = self._filters.get(ident)
        if found is None:
            if len(self._filters) >= CACHED_TERMS:
                self._filters.clear()
            selector = label_selector(constraint.label_selector, task, keys)
            found = self._filters[ident] = PodSelector(selector, frozenset((task.namespace,)))
        return found
