"""Pod affinity and anti-affinity: the task's own terms, and the terms of assigned pods that match the task.

Scores sum the weights of the task's preferred terms and of the terms of assigned pods that match it, normalised to
0..100 over the given rows. Plugins weight them against other scores.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.pod_terms import HARD_AFFINITY_WEIGHT, PodSelector, PodTerm, TermsTable
from enbloc.engine.core.filters.stateful.assigned_pods import AssignedPods
from enbloc.engine.core.filters.stateful.pod_index import PodIndex
from enbloc.engine.core.tables.resources import Bools, Ints
from enbloc.engine.events import NODE_EVENTS, PODS_REMOVED, EventKind

AFFINITY: Final = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY: Final = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI_AFFINITY: Final = "node(s) didn't satisfy existing pods anti-affinity rules"


class ExistingTerm:
    """A term of assigned pods: by row, how many have it as required anti-affinity, and its summed score weight."""

    __slots__ = ("forbidding", "pods", "term", "weights")

    def __init__(self, term: PodTerm, size: int) -> None:
        self.term = term
        self.pods = 0
        """How many assigned pods have it."""
        self.forbidding: Ints = np.zeros(size, np.int64)
        self.weights: Ints = np.zeros(size, np.int64)


class PodAffinity:
    """Reads an index of assigned pods that its owner updates: after this filter when a pod is added or removed."""

    wakes_on: ClassVar[frozenset[EventKind]] = (
        NODE_EVENTS | PODS_REMOVED | {EventKind.POD_PLACED, EventKind.NAMESPACE_LABELS_CHANGED}
    )

    def __init__(self, assigned: AssignedPods[Any]) -> None:
        self._assigned = assigned
        self._terms = TermsTable()
        self.existing: dict[tuple[object, ...], ExistingTerm] = {}
        """Terms of assigned pods."""
        self._index: PodIndex[ExistingTerm] = PodIndex()
        self._numbering = assigned.numbering()
        self._size = 0

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> bool:
        """Sets the labels that a `namespaceSelector` matches. Returns whether they changed."""
        changed = self._terms.namespaces.put(name, labels)
        if changed:
            self._assigned.drop_counts()
        return changed

    # ---- queries

    def applies(self, task: Placeable) -> bool:
        if task.cls.spec.affinity is not None and self._terms.of(task):
            return True
        return bool(self.existing) and any(True for _ in self._terms_matching(task))

    def masks(self, task: Placeable) -> list[tuple[str, Bools]]:
        self._settle()
        terms = self._terms.of(task)
        found: list[tuple[str, Bools]] = []
        if terms.affinity:
            found.append((AFFINITY, self._affinity_mask(task, terms.affinity)))
        if terms.anti_affinity:
            found.append((ANTI_AFFINITY, self._anti_affinity_mask(terms.anti_affinity)))
        allowed = self._existing_anti_affinity_mask(task)
        if allowed is not None:
            found.append((EXISTING_ANTI_AFFINITY, allowed))
        return found

    def helpers(self, task: Placeable) -> list[Ints]:
        """By row, how many pods the task may have to be beside."""
        terms = self._terms.of(task)
        return [self._matching_all(terms.affinity)] if terms.affinity else []

    def helped_by(self, task: Placeable) -> list[tuple[PodSelector, ...]]:
        """The selectors of those pods."""
        terms = self._terms.of(task).affinity
        return [tuple(term.pods for term in terms)] if terms else []

    def score(self, task: Placeable, among: Bools | None = None) -> Ints | None:
        """0..100 over the rows `among` (default: all live nodes); `None` if no preferred term is involved."""
        raw = self.raw_score(task)
        if raw is None:
            return None
        size = self._assigned.nodes.count
        scored = self._assigned.nodes.alive[:size] if among is None else among
        if not scored.any():
            return np.zeros(size, np.int64)
        least, most = int(raw[scored].min()), int(raw[scored].max())
        if least == most:
            return np.zeros(size, np.int64)
        found: Ints = np.where(scored, 100 * (raw - least) // (most - least), 0)
        return found

    def raw_score(self, task: Placeable) -> Ints | None:
        """By row, the summed weights of the terms that match in its topology domain; anti-affinity counts negative."""
        self._settle()
        total: Ints = np.zeros(self._assigned.nodes.count, np.int64)
        involved = False
        for term, weight in self._terms.of(task).preferred:
            total += weight * self._assigned.domain_sums(term.topology_key, self._matching(term))[1]
            involved = True
        for existing in self._terms_matching(task):
            if existing.weights.any():
                total += self._assigned.domain_sums(existing.term.topology_key, existing.weights)[1]
                involved = True
        return total if involved else None

    # ---- changes

    def add(self, task: Placeable, row: int) -> None:
        if task.cls.spec.affinity is not None:
            self._settle()
            self._add_terms(task, row, 1)

    def remove(self, task: Placeable, row: int) -> None:
        """`row` is its present row; any number if its node was deleted."""
        if task.cls.spec.affinity is not None:
            self._settle()
            self._add_terms(task, self._assigned.row_of(task), -1)

    def digest(self) -> object:
        """The terms of assigned pods, and by how many on each node."""
        self._settle()
        names, alive = self._assigned.nodes.names, self._assigned.nodes.alive
        return frozenset(
            (key, existing.pods, kind, names[row], int(rows[row]))
            for key, existing in self.existing.items()
            for kind, rows in (("forbidding", existing.forbidding), ("weights", existing.weights))
            for row in np.flatnonzero(rows * alive)
        )

    def retain(self, class_ids: Container[int]) -> None:
        """Drops what is cached for other classes."""
        self._terms.retain(class_ids)

    # ---- internals

    def _affinity_mask(self, task: Placeable, terms: tuple[PodTerm, ...]) -> Bools:
        """Each term's domain has a pod that matches all terms; the first of its kind may go to any labelled node."""
        assigned, count = self._assigned, self._matching_all(terms)
        size = assigned.nodes.count
        labelled_for_all: Bools = np.ones(size, np.bool_)
        met: Bools = np.ones(size, np.bool_)
        any_match = False
        for key in sorted({term.topology_key for term in terms}):
            labelled, sums = assigned.domain_sums(key, count)
            labelled_for_all &= labelled
            met &= sums > 0
            any_match = any_match or bool(sums.any())
        if not any_match and all(term.pods.matches(task) for term in terms):
            return labelled_for_all
        return labelled_for_all & met

    def _matching_all(self, terms: tuple[PodTerm, ...]) -> Ints:
        """One count of the pods that match every term: a pod that matches only some of them satisfies none."""
        scopes = [term.pods.namespaces for term in terms if term.pods.namespaces is not None]
        return self._assigned.count(
            ("all of", *sorted({term.pods.key for term in terms})),
            frozenset.intersection(*scopes) if scopes else None,
            next((term.pods.anchor for term in terms if term.pods.anchor is not None), None),
            lambda other: all(term.pods.matches(other) for term in terms),
        ).rows

    def _anti_affinity_mask(self, terms: tuple[PodTerm, ...]) -> Bools:
        found: Bools = np.ones(self._assigned.nodes.count, np.bool_)
        for term in terms:
            found &= self._assigned.domain_sums(term.topology_key, self._matching(term))[1] == 0
        return found

    def _existing_anti_affinity_mask(self, task: Placeable) -> Bools | None:
        found: Bools | None = None
        for existing in self._terms_matching(task):
            if existing.forbidding.any():
                free: Bools = self._assigned.domain_sums(existing.term.topology_key, existing.forbidding)[1] == 0
                found = free if found is None else found & free
        return found

    def _matching(self, term: PodTerm) -> Ints:
        pods = term.pods
        return self._assigned.count(pods.key, pods.namespaces, pods.anchor, pods.matches).rows

    def _terms_matching(self, task: Placeable) -> Iterator[ExistingTerm]:
        """The terms of assigned pods that match this task."""
        for existing in self._index.lookup(task):
            if existing.term.pods.matches(task):
                yield existing

    def _add_terms(self, task: Placeable, row: int | None, sign: int) -> None:
        """Counts the terms of an assigned pod (1), or stops counting them (-1)."""
        terms = self._terms.of(task)
        for term in terms.anti_affinity:
            existing = self._add_term(term, sign)
            if row is not None:
                existing.forbidding[row] += sign
        for term, weight in [*[(term, HARD_AFFINITY_WEIGHT) for term in terms.affinity], *terms.preferred]:
            existing = self._add_term(term, sign)
            if row is not None:
                existing.weights[row] += sign * weight

    def _add_term(self, term: PodTerm, sign: int) -> ExistingTerm:
        """The term's entry, which exists exactly as long as an assigned pod has the term."""
        key, pods = term.key, term.pods
        existing = self.existing.get(key)
        if existing is None:
            existing = self.existing[key] = ExistingTerm(term, len(self._assigned.nodes.alive))
            self._index.put(key, pods.namespaces, pods.anchor, existing)
        existing.pods += sign
        if existing.pods == 0:
            del self.existing[key]
            self._index.remove(key, pods.namespaces, pods.anchor)
        return existing

    def _settle(self) -> None:
        """Follows the node table: after a renumbering all terms are counted again from the assigned pods."""
        numbering, size = self._assigned.numbering(), len(self._assigned.nodes.alive)
        if numbering != self._numbering:
            self.existing.clear()
            self._index.clear()
            for task, row in self._assigned.all():
                if task.cls.spec.affinity is not None:
                    self._add_terms(task, row, 1)
        elif size != self._size:
            for existing in self.existing.values():
                existing.forbidding = np.pad(existing.forbidding, (0, size - len(existing.forbidding)))
                existing.weights = np.pad(existing.weights, (0, size - len(existing.weights)))
        self._numbering, self._size = numbering, size
