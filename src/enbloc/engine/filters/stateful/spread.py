"""Topology spread: how far the number of matching pods may differ between domains.

`DoNotSchedule` is a mask, `ScheduleAnyway` a score of 0..100. Which nodes count for a domain is up to the constraint:
those that the pod could use by its node selector and affinity, unless it says otherwise; and, if it says so, only those
whose taints it tolerates. The defaults that a cluster may set for pods without constraints are not known here.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from enbloc.api import core
from enbloc.engine.filters import node_affinity, node_selector, taints
from enbloc.engine.filters.filter import Placeable
from enbloc.engine.filters.node_terms import RowMask, every
from enbloc.engine.filters.pod_terms import TERMS_BOUND, PodFilter, pod_selector
from enbloc.engine.filters.stateful.assigned_pods import AssignedPods
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.resources import Bools, Ints

SKEWED: Final = "node(s) didn't match pod topology spread constraints"
UNLABELLED: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
_HOSTNAME: Final = "kubernetes.io/hostname"

Constraint = core.TopologySpreadConstraint


class _ClassSpread(NamedTuple):
    """What a class asks for, and which rows count for it."""

    hard: tuple[Constraint, ...]
    soft: tuple[Constraint, ...]
    affinity: RowMask | None
    taints: RowMask

    def counted(self, constraint: Constraint, among: Bools) -> Bools:
        """Of the rows `among`, those that the constraint's policies let count."""
        found = among
        if constraint.node_affinity_policy != "Ignore" and self.affinity is not None:
            found = found & self.affinity(np.arange(len(among)))
        if constraint.node_taints_policy == "Honor":
            found = found & self.taints(np.arange(len(among)))
        return found


class TopologySpread:
    """Reads who is placed from a census, which its owner keeps; of its own it keeps nothing that moves."""

    def __init__(self, census: AssignedPods) -> None:
        self._census = census
        self._classes: dict[int, _ClassSpread] = {}
        self._filters: dict[tuple[object, ...], PodFilter] = {}
        """By class, selector and the label values that it takes from the pod."""

    def applies(self, task: Placeable) -> bool:
        return bool(task.cls.spec.topology_spread_constraints)

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        spread = self._of(task.cls)
        if not spread.hard:
            return []
        labelled = self._labelled(spread.hard)
        level: Bools = np.ones(len(labelled), np.bool_)
        eligible = labelled & self._census.nodes.alive[: len(labelled)]
        for constraint in spread.hard:
            level &= self._level(task, spread, constraint, eligible)
        # A node without the label is told so, and only so.
        return [(UNLABELLED, labelled), (SKEWED, level | ~labelled)]

    def score(self, task: Placeable, among: Bools | None = None) -> Ints | None:
        """0..100 over the rows `among` (all living ones if not given); `None` without a soft constraint."""
        spread = self._of(task.cls)
        if not spread.soft:
            return None
        size = self._census.nodes.count
        alive = self._census.nodes.alive[:size]
        labelled = self._labelled(spread.soft)
        asked = labelled & (alive if among is None else among & alive)
        if not asked.any():
            return np.zeros(size, np.int64)
        crowd = np.zeros(size)
        for constraint in spread.soft:
            crowd += self._crowd(task, spread, constraint, labelled & alive, asked)
        whole: Ints = np.floor(crowd + 0.5).astype(np.int64)
        least, most = int(whole[asked].min()), int(whole[asked].max())
        if most == 0:
            return np.where(asked, 100, 0).astype(np.int64)
        found: Ints = np.where(asked, 100 * (most + least - whole) // most, 0)
        return found

    def add(self, task: Placeable, row: int) -> None:
        """Nothing to do: the census counts."""

    def remove(self, task: Placeable, row: int) -> None:
        """Nothing to do: the census counts."""

    def digest(self) -> object:
        return ()

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._classes = {ident: spread for ident, spread in self._classes.items() if ident in alive}
        self._filters = {ident: pods for ident, pods in self._filters.items() if ident[0] in alive}

    def _level(self, task: Placeable, spread: _ClassSpread, constraint: Constraint, eligible: Bools) -> Bools:
        """Rows on which one more would not put its domain too far above the emptiest one."""
        census = self._census
        pods = self._pods(constraint, task)
        counted = spread.counted(constraint, eligible)
        rows = census.count(pods.key, pods.namespaces, pods.anchor, pods.matches).rows
        _, sums = census.domain_sums(constraint.topology_key, rows, counted)
        ids = census.nodes.label(constraint.topology_key).ids[: len(eligible)]
        domains = int(np.count_nonzero(np.bincount(ids[counted])))
        # With fewer domains than asked for, one that is not there yet counts as an empty one.
        fewest = int(sums[counted].min()) if domains >= (constraint.min_domains or 1) else 0
        found: Bools = sums + int(pods.matches(task)) - fewest <= constraint.max_skew
        return found

    def _crowd(
        self, task: Placeable, spread: _ClassSpread, constraint: Constraint, labelled: Bools, asked: Bools
    ) -> NDArray[np.floating[Any]]:
        """How crowded each row's domain is. Where there are many domains a pod more weighs more."""
        census, key = self._census, constraint.topology_key
        pods = self._pods(constraint, task)
        rows = census.count(pods.key, pods.namespaces, pods.anchor, pods.matches).rows
        if key == _HOSTNAME:
            domains, sums = int(asked.sum()), rows[: len(asked)]
        else:
            domains = int(np.count_nonzero(np.bincount(census.nodes.label(key).ids[: len(asked)][asked])))
            _, sums = census.domain_sums(key, rows, spread.counted(constraint, labelled))
        return sums * math.log(domains + 2) + (constraint.max_skew - 1)

    def _labelled(self, constraints: tuple[Constraint, ...]) -> Bools:
        """Rows that have the labels of all constraints: no other counts for any of them."""
        found: Bools = np.ones(self._census.nodes.count, np.bool_)
        for key in {constraint.topology_key for constraint in constraints}:
            found &= self._census.nodes.label(key).ids[: len(found)] >= 0
        return found

    def _of(self, cls: TaskClass) -> _ClassSpread:
        found = self._classes.get(cls.id)
        if found is None:
            nodes = self._census.nodes
            wanted = cls.spec.topology_spread_constraints or ()
            checks = [node_selector.check(cls, nodes), node_affinity.check(cls, nodes)]
            asked = [check.mask for check in checks if check is not None]
            found = self._classes[cls.id] = _ClassSpread(
                tuple(constraint for constraint in wanted if constraint.when_unsatisfiable == "DoNotSchedule"),
                tuple(constraint for constraint in wanted if constraint.when_unsatisfiable == "ScheduleAnyway"),
                every(asked) if asked else None,
                taints.tolerated_mask(cls, nodes),
            )
        return found

    def _pods(self, constraint: Constraint, task: Placeable) -> PodFilter:
        """Pods of the task's namespace only, whatever others match."""
        keys = constraint.match_label_keys or ()
        # A constraint lives as long as its class, so its identity is its name.
        ident = (task.cls.id, id(constraint), *[task.labels.get(key) for key in keys])
        found = self._filters.get(ident)
        if found is None:
            if len(self._filters) >= TERMS_BOUND:
                self._filters.clear()
            selector = pod_selector(constraint.label_selector, task, keys)
            found = self._filters[ident] = PodFilter(selector, frozenset((task.namespace,)))
        return found
