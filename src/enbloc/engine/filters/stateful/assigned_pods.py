"""Who is placed where, and how many of those match: the counts that affinity and spread are decided by.

Counts are kept by row, and summed over a topology domain only when somebody asks: so a node whose labels change needs
no recount. A count exists only for what some class asked about; it is taken from all that is placed when it is first
asked for, and kept up from then on. A plain pod costs one entry in a dict.

Tasks are remembered by the name of their node. Those of a node that has gone count nowhere; should a node of that name
come back, they count there again. Which pods are placed at all (not the finished, not the terminating) is the
caller's business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Final

import numpy as np

from enbloc.engine.filters.filter import Placeable
from enbloc.engine.filters.stateful.pod_index import Anchor, PodIndex, Scope
from enbloc.engine.tables.nodes import NodeTable
from enbloc.engine.tables.resources import Bools, Ints

COUNTS_BOUND: Final = 4096
"""Old templates' terms are never asked for again: past so many counts, those that nobody asked for longest go."""


class Count:
    """How many placed tasks match, by row."""

    __slots__ = ("anchor", "matches", "rows", "scope")

    def __init__(self, scope: Scope, anchor: Anchor, matches: Callable[[Placeable], bool], size: int) -> None:
        self.scope = scope
        self.anchor = anchor
        self.matches = matches
        self.rows: Ints = np.zeros(size, np.int64)


class AssignedPods:
    """All placed tasks. Whoever keeps sums by row of its own calls `settled` before it reads or changes them."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self.renumbered = 0
        """Goes up whenever a remembered row's number may be another node's, or another number the same node's."""
        self._placed: dict[str, tuple[Placeable, str]] = {}
        self._residents: dict[str, dict[str, Placeable]] = {}
        """The same by node."""
        self._counts: dict[Hashable, Count] = {}
        """Those that were asked for last come last."""
        self._index: PodIndex[Count] = PodIndex()
        self._moves = nodes.moves
        self._rows_known = 0
        self._row_of: dict[str, int] = {}

    def add(self, task: Placeable, row: int) -> None:
        self._settle()
        name = self.nodes.names[row]
        self._placed[task.uid] = (task, name)
        self._residents.setdefault(name, {})[task.uid] = task
        if self._counts:
            self._change(task, row, 1)

    def add_all(self, tasks: Sequence[Placeable], rows: Sequence[int]) -> None:
        """The same for many at once."""
        self._settle()
        names = self.nodes.names
        for task, row in zip(tasks, rows, strict=True):
            name = names[row]
            self._placed[task.uid] = (task, name)
            self._residents.setdefault(name, {})[task.uid] = task
        if self._counts:
            for task, row in zip(tasks, rows, strict=True):
                self._change(task, row, 1)

    def remove(self, task: Placeable, row: int) -> None:
        """`row` is where it was added, or any number if its node has gone since."""
        self._settle()
        placed, name = self._placed.pop(task.uid)
        residents = self._residents[name]
        del residents[task.uid]
        if not residents:
            del self._residents[name]
        if self._counts:
            now = self.nodes.rows.get(name)
            if now is not None:
                self._change(placed, now, -1)

    def count(self, key: Hashable, scope: Scope, anchor: Anchor, matches: Callable[[Placeable], bool]) -> Count:
        """The count of that key, taken now if it is new. Equal keys must stand for equal matches."""
        self._settle()
        found = self._counts.pop(key, None)
        if found is None:
            found = Count(scope, anchor, matches, len(self.nodes.alive))
            self._take(found)
            self._index.put(key, scope, anchor, found)
        self._counts[key] = found
        if len(self._counts) > COUNTS_BOUND:
            oldest = next(iter(self._counts))
            old = self._counts.pop(oldest)
            self._index.drop(oldest, old.scope, old.anchor)
        return found

    def drop_counts(self) -> None:
        """What a match depends on has changed: each count is taken anew when it is next asked for."""
        self._counts.clear()
        self._index.clear()

    def everyone(self) -> Iterable[tuple[Placeable, int | None]]:
        """Every task with the row of its node, `None` if that has gone."""
        row_of = self.nodes.rows.get
        return ((task, row_of(name)) for task, name in self._placed.values())

    def residents(self, name: str) -> Collection[Placeable]:
        """The tasks on a node."""
        return self._residents.get(name, {}).values()

    def task(self, uid: str) -> Placeable:
        """A placed task, as it was added."""
        return self._placed[uid][0]

    def row_of(self, task: Placeable) -> int | None:
        """Where a placed task is now; `None` if its node has gone."""
        return self.nodes.rows.get(self._placed[task.uid][1])

    def domain_sums(self, key: str, by_row: Ints, among: Bools | None = None) -> tuple[Bools, Ints]:
        """Which rows are of living nodes that have the label, and for each of them the sum of `by_row` over its domain.

        Only such rows, and of them only those `among`, are summed. Without the label the sum is 0.
        """
        size = self.nodes.count
        ids = self.nodes.label(key).ids[:size]
        labelled: Bools = (ids >= 0) & self.nodes.alive[:size]
        rows = np.flatnonzero(by_row[:size])  # mostly few
        rows = rows[(labelled if among is None else labelled & among)[rows]]
        if not len(rows):
            return labelled, np.zeros(size, np.int64)
        # One more for -1 to fall on. Floats are exact here: a count is far below 2**53.
        sums = np.bincount(ids[rows], weights=by_row[rows], minlength=int(ids.max()) + 2).astype(np.int64)
        found: Ints = sums[ids]
        return labelled, found

    def digest(self) -> frozenset[tuple[str, str]]:
        """Counts follow from what is placed (`validate` holds them to it), so they are no part of it."""
        return frozenset((uid, name) for uid, (_, name) in self._placed.items())

    def validate(self) -> None:
        """Every count equals one that is taken anew."""
        self._settle()
        alive = self.nodes.alive
        for key, count in self._counts.items():
            fresh = Count(count.scope, count.anchor, count.matches, len(alive))
            self._take(fresh)
            assert np.array_equal(np.where(alive, count.rows, 0), fresh.rows), key

    def _change(self, task: Placeable, row: int, by: int) -> None:
        for count in self._index.near(task):
            if count.matches(task):
                count.rows[row] += by

    def _take(self, count: Count) -> None:
        size, scope, matches = len(self.nodes.alive), count.scope, count.matches
        rows: list[int] = []
        for task, row in self.everyone():
            if row is not None and (scope is None or task.namespace in scope) and matches(task):
                rows.append(row)
        count.rows = np.bincount(np.array(rows, np.intp), minlength=size).astype(np.int64)

    def settled(self) -> int:
        """Follows the table of nodes, and says which numbering it now has: see `renumbered`."""
        self._settle()
        return self.renumbered

    def _settle(self) -> None:
        nodes = self.nodes
        if nodes.moves == self._moves and nodes.count == self._rows_known:
            return
        renumbered = nodes.moves != self._moves
        if renumbered:
            self._rows_known = 0
            self._row_of = {}
        for row in range(self._rows_known, nodes.count):
            renumbered = renumbered or nodes.names[row] in self._row_of
            self._row_of[nodes.names[row]] = row
        self._moves, self._rows_known = nodes.moves, nodes.count
        if renumbered:
            self.renumbered += 1
        for count in self._counts.values():
            if renumbered:
                self._take(count)
            elif len(count.rows) < len(nodes.alive):
                count.rows = np.pad(count.rows, (0, len(nodes.alive) - len(count.rows)))
