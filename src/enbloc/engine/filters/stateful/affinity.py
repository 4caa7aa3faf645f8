"""Affinity between pods: near those that match, away from those that match, and what the placed ones ask of others.

Scores count the preferred terms of the task and, the other way round, those that placed tasks have about it. They are
brought to 0..100 over the rows asked about; to weigh them against other scores is the plugin's business.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Final

import numpy as np

from enbloc.engine.filters.filter import Placeable
from enbloc.engine.filters.pod_terms import HARD_AFFINITY_WEIGHT, PodTerm, TermsTable
from enbloc.engine.filters.stateful.assigned_pods import AssignedPods
from enbloc.engine.filters.stateful.pod_index import PodIndex
from enbloc.engine.tables.resources import Bools, Ints

NEAR: Final = "node(s) didn't match pod affinity rules"
APART: Final = "node(s) didn't match pod anti-affinity rules"
KEPT_OFF: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


class Carried:
    """A term that placed tasks have: how many forbid by it, and how much they draw by it, by row."""

    __slots__ = ("carriers", "drawing", "forbidding", "term")

    def __init__(self, term: PodTerm, size: int) -> None:
        self.term = term
        self.carriers = 0
        self.forbidding: Ints = np.zeros(size, np.int64)
        self.drawing: Ints = np.zeros(size, np.int64)


class PodAffinity:
    """Reads who is placed from a census, which its owner keeps: a change is told here first, then there."""

    def __init__(self, census: AssignedPods) -> None:
        self._census = census
        self._terms = TermsTable()
        self._carried: dict[tuple[object, ...], Carried] = {}
        self._index: PodIndex[Carried] = PodIndex()
        self._numbering = census.settled()
        self._size = 0

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Labels of a namespace, which a `namespaceSelector` may ask for. Says whether they are others than before."""
        changed = self._terms.namespaces.put(name, labels)
        if changed:
            self._census.drop_counts()
        return changed

    # ---- asked

    @property
    def carries(self) -> bool:
        """Whether any placed task has a term."""
        return bool(self._carried)

    def applies(self, task: Placeable) -> bool:
        if task.cls.spec.affinity is not None and self._terms.of(task):
            return True
        return bool(self._carried) and any(True for _ in self._about(task))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        self._settle()
        terms = self._terms.of(task)
        found: list[tuple[str, Bools]] = []
        if terms.affinity:
            found.append((NEAR, self._near(task, terms.affinity)))
        if terms.anti_affinity:
            found.append((APART, self._apart(terms.anti_affinity)))
        kept_off = self._kept_off(task)
        if kept_off is not None:
            found.append((KEPT_OFF, kept_off))
        return found

    def score(self, task: Placeable, among: Bools | None = None) -> Ints | None:
        """0..100 over the rows `among` (all living ones if not given); `None` if no preferred term is concerned."""
        raw = self.raw_score(task)
        if raw is None:
            return None
        size = self._census.nodes.count
        asked = self._census.nodes.alive[:size] if among is None else among
        if not asked.any():
            return np.zeros(size, np.int64)
        least, most = int(raw[asked].min()), int(raw[asked].max())
        if least == most:
            return np.zeros(size, np.int64)
        found: Ints = np.where(asked, 100 * (raw - least) // (most - least), 0)
        return found

    def raw_score(self, task: Placeable) -> Ints | None:
        """Weights of all that is near a row and wanted there, less what is not."""
        self._settle()
        total: Ints = np.zeros(self._census.nodes.count, np.int64)
        concerned = False
        for term, weight in self._terms.of(task).preferred:
            total += weight * self._census.domain_sums(term.topology_key, self._matching(term))[1]
            concerned = True
        for carried in self._about(task):
            if carried.drawing.any():
                total += self._census.domain_sums(carried.term.topology_key, carried.drawing)[1]
                concerned = True
        return total if concerned else None

    # ---- told

    def add(self, task: Placeable, row: int) -> None:
        if task.cls.spec.affinity is not None:
            self._settle()
            self._carry(task, row, 1)

    def remove(self, task: Placeable, row: int) -> None:
        """`row` is where it is now; any number if its node has gone."""
        if task.cls.spec.affinity is not None:
            self._settle()
            self._carry(task, self._census.row_of(task), -1)

    def digest(self) -> object:
        """The terms that are carried, and by how many on each node."""
        self._settle()
        names, alive = self._census.nodes.names, self._census.nodes.alive
        return frozenset(
            (fact, carried.carriers, kind, names[row], int(rows[row]))
            for fact, carried in self._carried.items()
            for kind, rows in (("forbidding", carried.forbidding), ("drawing", carried.drawing))
            for row in np.flatnonzero(rows * alive)
        )

    def keep(self, alive: Container[int]) -> None:
        """Classes that are not among these are gone."""
        self._terms.keep(alive)

    # ---- inside

    def _near(self, task: Placeable, terms: tuple[PodTerm, ...]) -> Bools:
        """Every term's domain holds a task that matches all terms; the first of its kind may go anywhere labelled."""
        census = self._census
        # One count of those that match every term: a task that matches only some of them satisfies none.
        scopes = [term.pods.namespaces for term in terms if term.pods.namespaces is not None]
        count = census.count(
            ("all of", *sorted({term.pods.key for term in terms}, key=repr)),
            frozenset.intersection(*scopes) if scopes else None,
            next((term.pods.anchor for term in terms if term.pods.anchor is not None), None),
            lambda other: all(term.pods.matches(other) for term in terms),
        )
        size = census.nodes.count
        everywhere: Bools = np.ones(size, np.bool_)
        met: Bools = np.ones(size, np.bool_)
        somebody = False
        for key in sorted({term.topology_key for term in terms}):
            labelled, sums = census.domain_sums(key, count.rows)
            everywhere &= labelled
            met &= sums > 0
            somebody = somebody or bool(sums.any())
        if not somebody and all(term.pods.matches(task) for term in terms):
            return everywhere
        return everywhere & met

    def _apart(self, terms: tuple[PodTerm, ...]) -> Bools:
        found: Bools = np.ones(self._census.nodes.count, np.bool_)
        for term in terms:
            found &= self._census.domain_sums(term.topology_key, self._matching(term))[1] == 0
        return found

    def _kept_off(self, task: Placeable) -> Bools | None:
        found: Bools | None = None
        for carried in self._about(task):
            if carried.forbidding.any():
                free: Bools = self._census.domain_sums(carried.term.topology_key, carried.forbidding)[1] == 0
                found = free if found is None else found & free
        return found

    def _matching(self, term: PodTerm) -> Ints:
        pods = term.pods
        return self._census.count(pods.key, pods.namespaces, pods.anchor, pods.matches).rows

    def _about(self, task: Placeable) -> Iterator[Carried]:
        """What placed tasks say that concerns this one."""
        for carried in self._index.near(task):
            if carried.term.pods.matches(task):
                yield carried

    def _carry(self, task: Placeable, row: int | None, by: int) -> None:
        terms = self._terms.of(task)
        for term in terms.anti_affinity:
            carried = self._count_carrier(term, by)
            if row is not None:
                carried.forbidding[row] += by
        for term, weight in [*[(term, HARD_AFFINITY_WEIGHT) for term in terms.affinity], *terms.preferred]:
            carried = self._count_carrier(term, by)
            if row is not None:
                carried.drawing[row] += by * weight

    def _count_carrier(self, term: PodTerm, by: int) -> Carried:
        """The term's entry, which is there exactly as long as somebody carries it."""
        fact, pods = term.fact, term.pods
        carried = self._carried.get(fact)
        if carried is None:
            carried = self._carried[fact] = Carried(term, len(self._census.nodes.alive))
            self._index.put(fact, pods.namespaces, pods.anchor, carried)
        carried.carriers += by
        if carried.carriers == 0:
            del self._carried[fact]
            self._index.drop(fact, pods.namespaces, pods.anchor)
        return carried

    def _settle(self) -> None:
        """Follows the table of nodes: after a renumbering all is read anew from the census."""
        numbering, size = self._census.settled(), len(self._census.nodes.alive)
        if numbering != self._numbering:
            self._carried.clear()
            self._index.clear()
            for task, row in self._census.everyone():
                if task.cls.spec.affinity is not None:
                    self._carry(task, row, 1)
        elif size != self._size:
            for carried in self._carried.values():
                carried.forbidding = np.pad(carried.forbidding, (0, size - len(carried.forbidding)))
                carried.drawing = np.pad(carried.drawing, (0, size - len(carried.drawing)))
        self._numbering, self._size = numbering, size
