"""The candidate nodes of every class, as one sort key per row: cached, and refreshed row by row as nodes change.

A key is -1 where a task of the class cannot go, else its score shifted left with the row's rank below it. The largest
key is the best node, no two keys are equal, and ties go to the lowest row. Scores and free room depend on the request
alone, so classes with equal requests share one `ScoreVector`. What depends on other pods' placements (the stateful
filters) is left to the caller. How many more tasks fit is counted by row, and summed by domain of a level (T6).

In `CandidateTable` the static checks and the preferences of a class are assembled from the filters and the config's
plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Container

import numpy as np

from enbloc.engine.core.filters import node_affinity, node_selector, readiness, taints, unschedulable
from enbloc.engine.core.filters.filter import Check
from enbloc.engine.core.filters.volumes import VolumeTable
from enbloc.engine.core.plugins.plugin import Plugins
from enbloc.engine.core.plugins.scores import TIE
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.headroom import FIT_WAKES_ON, Headroom
from enbloc.engine.core.tables.node_trees import Level
from enbloc.engine.core.tables.nodes import ROW_BITS, NodeTable, Rows
from enbloc.engine.core.tables.resources import Bools, Ints, Request
from enbloc.engine.events import EventKind


class FitCounts:
    """The counts of one class."""

    def __init__(self, nodes: NodeTable, request: Request, passing: Callable[[], Bools]) -> None:
        """`passing`: the rows that pass the filters over a node's own facts."""
        self._nodes = nodes
        self._request = request
        self._passing = passing
        self._rows: Ints = np.zeros(0, np.int64)
        self._computed_at = 0
        self._sums: dict[Level, tuple[int, Ints]] = {}
        """Level → its version, and the sum of each domain."""

    def rows(self) -> Ints:
        """By row, how many more tasks fit there; 0 where a filter over the node's own facts rejects them."""
        nodes, count = self._nodes, self._nodes.count
        if self._computed_at != nodes.version:
            if len(self._rows) < count:
                self._rows = np.pad(self._rows, (0, count - len(self._rows)))
            stale = np.flatnonzero(nodes.stamp[:count] > self._computed_at)
            found = np.where(self._passing()[stale], self._fitting(stale), 0)
            changed = found - self._rows[stale]
            self._rows[stale] = found
            for level, (version, sums) in self._sums.items():
                if version == level.version and len(level.ids) >= count:  # else it is summed anew once it is read
                    ids = level.ids[stale]
                    np.add.at(sums, ids[ids >= 0], changed[ids >= 0])
            self._computed_at = nodes.version
        return self._rows[:count]

    def by_domain(self, level: Level, closed: Bools | None = None) -> Ints:
        """By domain of a level, how many more tasks fit there together, `closed` rows not counted."""
        rows = self.rows()
        if closed is not None:
            return summed(level, np.where(closed[: len(rows)], 0, rows))
        known = self._sums.get(level)
        if known is None or known[0] != level.version:
            known = self._sums[level] = (level.version, summed(level, rows))
        return known[1]

    def _fitting(self, rows: Rows) -> Ints:
        free = self._nodes.free
        found: Ints | None = None
        for column, amount in self._request:
            part = free[column, rows] // amount
            found = part if found is None else np.minimum(found, part)
        assert found is not None, "a request always asks for a pod"
        return np.maximum(found, 0)


def summed(level: Level, amounts: Ints) -> Ints:
    """The sum of the rows of each domain."""
    inside = level.ids >= 0
    found = np.bincount(level.ids[inside], weights=amounts[inside], minlength=len(level.names))
    return found.astype(np.int64)


ScoreRows = Callable[[Headroom], Ints]
Bonus = Callable[[Bools], Ints]
"""Preferences of the class (node affinity, taints), normalised over the rows that pass; weights included."""


class ScoreVector:
    """The keys of all rows for one request, before static checks: shared by every class with that request."""

    def __init__(self, nodes: NodeTable, request: Request, score: ScoreRows) -> None:
        self._nodes = nodes
        self._request = request
        self._score = score
        self._keys: Ints = np.zeros(0, np.int64)
        self._computed_at = 0
        """`nodes.version` as of the last refresh."""

    def keys(self) -> Ints:
        """-1 where the request does not fit, else score and rank. Refreshes the rows that changed."""
        nodes, count = self._nodes, self._nodes.count
        if self._computed_at != nodes.version:
            if len(self._keys) < count:
                self._keys = np.pad(self._keys, (0, len(nodes.alive) - len(self._keys)), constant_values=-1)
            stale = (nodes.stamp[:count] > self._computed_at).nonzero()[0]
            self._keys[stale] = self.compute(stale)
            self._computed_at = nodes.version
        return self._keys[:count]

    def compute(self, rows: Rows | slice, tasks_per_row: Ints | None = None) -> Ints:
        """The keys of these rows, computed from the rows alone; `tasks_per_row` as in `Headroom`."""
        headroom = Headroom(self._nodes, rows, self._request, tasks_per_row)
        found: Ints = self._score(headroom) << ROW_BITS
        found |= self._nodes.ranks[rows]
        found |= headroom.refusals()
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each row, the keys of its n-th task for n from `first` on (0 is the next), from what is free now."""
        if width == 1:
            return self.compute(rows, np.full(1, first + 1))[:, None]
        numbers = np.arange(first + 1, first + width + 1, dtype=np.int64)
        found = self.compute(np.repeat(rows, width), np.tile(numbers, len(rows)))
        return found.reshape(len(rows), width)


class Candidates:
    """The candidate rows of one class: a score vector, masked by the class's static checks."""

    def __init__(
        self, cls: TaskClass, nodes: NodeTable, checks: list[Check], scores: ScoreVector, bonus: Bonus | None
    ) -> None:
        self.cls = cls
        self.checks = checks
        self._nodes = nodes
        self._scores = scores
        self._compute_bonus = bonus
        self._passing: Bools = np.zeros(0, np.bool_)
        self._passing_rows: Rows = np.zeros(0, np.intp)
        self._bonus: Ints | None = None
        """What preferences add to the key of each row; `None`: the same for all that pass."""
        self._checked_at = 0
        """`nodes.static_version` as of the last refresh of the static checks."""
        self.counts = FitCounts(nodes, cls.request, self.passing)
        """How many tasks of the class fit, by row and by domain (T6)."""

    def passing(self) -> Bools:
        """Rows that pass every static check, whether there is room or not."""
        self._refresh_static()
        found: Bools = self._passing[: self._nodes.count]
        return found

    def passes(self, row: int) -> bool:
        """Whether one row passes every static check."""
        self._refresh_static()
        return bool(self._passing[row])

    def keys(self) -> Ints:
        """The keys of all rows."""
        keys = self._scores.keys()
        self._refresh_static()
        usable = self._passing[: len(keys)]
        if self._bonus is not None:
            usable = usable & (keys >= 0)
            keys = keys + self._bonus
        found: Ints = np.where(usable, keys, -1)
        return found

    def passing_keys(self) -> Ints:
        """The keys of the rows that pass, only, as an array of the caller's own; a key's low bits give its row."""
        self._refresh_static()
        keys = self._scores.keys().take(self._passing_rows)
        if self._bonus is not None:
            keys = np.where(keys >= 0, keys + self._bonus[self._passing_rows], -1)
        return keys

    def uncached_keys(self) -> Ints:
        """The keys of all rows, computed without any cache: the reference that tests compare with."""
        nodes = self._nodes
        rows = np.arange(nodes.count)
        passing = nodes.alive[: nodes.count]
        for check in self.checks:
            passing = passing & check.mask(rows)
        keys = self._scores.compute(slice(0, nodes.count))
        if self._compute_bonus is not None:
            keys = np.where(keys >= 0, keys + (self._compute_bonus(passing) << ROW_BITS), -1)
        found: Ints = np.where(passing, keys, -1)
        return found

    def table(self, rows: Rows, first: int, width: int) -> Ints:
        """For each of the rows, all of which pass, the keys of its n-th task for n from `first` on."""
        found = self._scores.table(rows, first, width)
        if self._bonus is not None:
            found = np.where(found >= 0, found + self._bonus[rows][:, None], -1)
        return found

    def wakes_on(self) -> frozenset[EventKind]:
        """The events that can make one more row a candidate: those of the class's static checks and of free room."""
        return FIT_WAKES_ON.union(*(check.wakes_on for check in self.checks))

    def _refresh_static(self) -> None:
        """Repeats the static checks on the rows whose static facts changed."""
        nodes, count = self._nodes, self._nodes.count
        if nodes.static_version == self._checked_at:
            return
        if len(self._passing) < count:
            self._passing = np.pad(self._passing, (0, len(nodes.alive) - len(self._passing)))
        changed = np.flatnonzero(nodes.static_stamp[:count] > self._checked_at)
        passing = nodes.alive[changed]
        for check in self.checks:
            passing = passing & check.mask(changed)
        self._passing[changed] = passing
        self._passing_rows = np.flatnonzero(self._passing[:count])
        self._checked_at = nodes.static_version
        if self._compute_bonus is not None:
            bonus = self._compute_bonus(self._passing[:count])
            of_passing = bonus.take(self._passing_rows)
            # One that all rows have decides nothing: most clusters have no taint that pods should avoid.
            decides = len(of_passing) > 0 and bool((of_passing != of_passing[0]).any())
            self._bonus = bonus << ROW_BITS if decides else None


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
