"""Index of assigned pods by node, and counts of those that match a selector: the input of affinity and spread.

Counts are kept by row and summed over a topology domain on demand, so a node whose labels change needs no recount. A
count exists only for selectors that were asked for: it is taken over all assigned pods at first, and updated from then
on. A plain pod costs one entry in a dict.

Tasks are kept by the name of their node. Those of a deleted node count nowhere; if a node of that name is created
again, they count there. Which pods are added at all (not the finished ones) is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Final, Generic, TypeVar

import numpy as np

from enbloc.engine.core.filters.filter import Placeable
from enbloc.engine.core.filters.stateful.pod_index import Anchor, PodIndex, Scope
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.resources import Bools, Ints

CACHED_COUNTS: Final = 4096
"""At most 4096 counts are kept, the least recently used is dropped: terms of old templates are not used again."""

PlaceableT = TypeVar("PlaceableT", bound=Placeable)


class Count:
    """The number of assigned pods that match, by row."""

    __slots__ = ("anchor", "matches", "rows", "scope")

    def __init__(self, scope: Scope, anchor: Anchor, matches: Callable[[Placeable], bool], size: int) -> None:
        self.scope = scope
        self.anchor = anchor
        self.matches = matches
        self.rows: Ints = np.zeros(size, np.int64)


class AssignedPods(Generic[PlaceableT]):
    """All assigned pods. A filter that keeps arrays by row of its own calls `numbering` before it uses them."""

    def __init__(self, nodes: NodeTable) -> None:
        self.nodes = nodes
        self._numbering = 0
        """Increases whenever a row number may denote another node than before."""
        self._placed: dict[str, tuple[PlaceableT, str]] = {}
        """By uid: the task and the name of its node."""
        self._by_node: dict[str, dict[str, PlaceableT]] = {}
        self._counts: dict[Hashable, Count] = {}
        """In order of last use."""
        self._index: PodIndex[Count] = PodIndex()
        self._moves = nodes.moves
        self._rows_known = 0
        self._row_of: dict[str, int] = {}

    def add(self, task: PlaceableT, row: int) -> None:
        self._settle()
        name = self.nodes.names[row]
        self._placed[task.uid] = (task, name)
        self._by_node.setdefault(name, {})[task.uid] = task
        if self._counts:
            self._count_task(task, row, 1)

    def add_all(self, tasks: Sequence[PlaceableT], rows: Sequence[int]) -> None:
        """The same for several tasks."""
        self._settle()
        names, placed, by_node = self.nodes.names, self._placed, self._by_node
        for task, row in zip(tasks, rows, strict=True):
            name, uid = names[row], task.uid
            placed[uid] = (task, name)
            on_node = by_node.get(name)
            if on_node is None:
                by_node[name] = {uid: task}
            else:
                on_node[uid] = task
        if self._counts:
            for task, row in zip(tasks, rows, strict=True):
                self._count_task(task, row, 1)

    def remove(self, task: Placeable, row: int) -> None:
        """`row` is where it was added, or any number if its node was deleted since."""
        self._settle()
        placed, name = self._placed.pop(task.uid)
        on_node = self._by_node[name]
        del on_node[task.uid]
        if not on_node:
            del self._by_node[name]
        if self._counts:
            now = self.nodes.rows.get(name)
            if now is not None:
                self._count_task(placed, now, -1)

    def count(self, key: Hashable, scope: Scope, anchor: Anchor, matches: Callable[[Placeable], bool]) -> Count:
        """The count of that key, taken now if it is new. Equal keys must mean equal `matches`."""
        self._settle()
        found = self._counts.pop(key, None)
        if found is None:
            found = Count(scope, anchor, matches, len(self.nodes.alive))
            self._recount(found)
            self._index.put(key, scope, anchor, found)
        self._counts[key] = found
        if len(self._counts) > CACHED_COUNTS:
            oldest = next(iter(self._counts))
            old = self._counts.pop(oldest)
            self._index.remove(oldest, old.scope, old.anchor)
        return found

    def drop_counts(self) -> None:
        """Drops all counts: what `matches` depends on has changed."""
        self._counts.clear()
        self._index.clear()

    def all(self) -> Iterable[tuple[PlaceableT, int | None]]:
        """Every task with the row of its node, `None` if that was deleted."""
        row_of = self.nodes.rows.get
        return ((task, row_of(name)) for task, name in self._placed.values())

    def on_node(self, name: str) -> Collection[PlaceableT]:
        return self._by_node.get(name, {}).values()

    def task(self, uid: str) -> PlaceableT:
        """The task object that was added."""
        return self._placed[uid][0]

    def row_of(self, task: Placeable) -> int | None:
        """The present row of a task's node; `None` if that was deleted."""
        return self.nodes.rows.get(self._placed[task.uid][1])

    def domain_sums(self, key: str, by_row: Ints, among: Bools | None = None) -> tuple[Bools, Ints]:
        """The rows of live nodes that have the label, and by row the sum of `by_row` over its topology domain.

        Only labelled rows, and of them only those `among`, are summed. Without the label the sum is 0.
        """
        size = self.nodes.count
        ids = self.nodes.label(key).ids[:size]
        labelled: Bools = (ids >= 0) & self.nodes.alive[:size]
        rows = np.flatnonzero(by_row[:size])  # usually few
        rows = rows[(labelled if among is None else labelled & among)[rows]]
        if not len(rows):
            return labelled, np.zeros(size, np.int64)
        # One more element, for the id -1. Floats are exact here: a count is far below 2**53.
        sums = np.bincount(ids[rows], weights=by_row[rows], minlength=int(ids.max()) + 2).astype(np.int64)
        found: Ints = sums[ids]
        return labelled, found

    def digest(self) -> frozenset[tuple[str, str]]:
        """Counts are derived (see `validate`), so they are not part of it."""
        return frozenset((uid, name) for uid, (_, name) in self._placed.items())

    def validate(self) -> None:
        """Asserts that every count equals a recount."""
        self._settle()
        alive = self.nodes.alive
        for key, count in self._counts.items():
            recounted = Count(count.scope, count.anchor, count.matches, len(alive))
            self._recount(recounted)
            assert np.array_equal(np.where(alive, count.rows, 0), recounted.rows), key

    def _count_task(self, task: Placeable, row: int, by: int) -> None:
        for count in self._index.lookup(task):
            if count.matches(task):
                count.rows[row] += by

    def _recount(self, count: Count) -> None:
        size, scope, matches = len(self.nodes.alive), count.scope, count.matches
        rows: list[int] = []
        for task, row in self.all():
            if row is not None and (scope is None or task.namespace in scope) and matches(task):
                rows.append(row)
        count.rows = np.bincount(np.array(rows, np.intp), minlength=size).astype(np.int64)

    def numbering(self) -> int:
        """Follows renumbered rows. The result changes whenever a row number may denote another node than before."""
        self._settle()
        return self._numbering

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
            self._numbering += 1
        for count in self._counts.values():
            if renumbered:
                self._recount(count)
            elif len(count.rows) < len(nodes.alive):
                count.rows = np.pad(count.rows, (0, len(nodes.alive) - len(count.rows)))
