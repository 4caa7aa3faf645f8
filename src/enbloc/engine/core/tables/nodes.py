"""The nodes as rows of arrays: allocatable and free amounts, readiness, taints, and a column for each label in use.

A row's number is its rank: nodes are sorted by (creation, name), so that ties between nodes are broken the same way
before and after a restart. Rows are renumbered only in `settle`, which is called before a cycle and never during one.
`allocate` and `release` change what is free; undoing them is left to the transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from enbloc.engine.core.tables.resources import Bools, Ints, Request, Resources
from enbloc.units import natural_key

ROW_BITS: Final = 24
ROW_MASK: Final = 2**ROW_BITS - 1
"""A row's number takes the low 24 bits of a sort key: at most 16 Mi nodes."""

_DEAD_ROWS: Final = 64
"""At most 64 rows of deleted nodes, or as many as there are live ones, are kept before rows are renumbered."""

_STALE_BOUND: Final = 64
"""At most 64 label columns, and 64 + 2 × nodes values of a label or sets of taints, are kept before rows are rewritten:
some of them may not be in use any more."""

Rows = NDArray[np.intp]
UsedOf = Callable[[str], Mapping[int, int]]
"""From a node's name to what is used on it: column → amount."""


class TaintFact(NamedTuple):
    key: str
    value: str
    effect: str


class NodeFacts(msgspec.Struct, frozen=True):
    """What the engine reads of one Node, parsed once per event."""

    name: str
    created_ns: int
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    taints: tuple[TaintFact, ...]
    unschedulable: bool
    ready: bool


class LabelColumn:
    """One label over all rows: the id of each row's value, -1 where the node lacks the label."""

    __slots__ = ("ids", "values")

    def __init__(self, size: int) -> None:
        self.values: dict[str, int] = {}
        self.ids = np.full(size, -1, np.int32)

    def set(self, row: int, value: str | None) -> None:
        self.ids[row] = -1 if value is None else self.values.setdefault(value, len(self.values))


class NodeTable:
    """All nodes, as rows. `[:count]` of each array is in use; `alive` marks rows whose node was not deleted."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.version = 1
        """Increases with every change of a row."""
        self.moves = 0
        """How often rows were renumbered: remembered row numbers are valid for one value of it."""
        self._added: dict[str, NodeFacts] = {}
        """Nodes without a row yet."""
        self._clear()

    def _clear(self) -> None:
        """Drops all rows."""
        self.count = 0
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.facts: list[NodeFacts | None] = []
        self.allocatable: Ints = np.zeros((4, 0), np.int64)
        self.free: Ints = np.zeros((4, 0), np.int64)
        self.divisor: Ints = np.ones((4, 0), np.int64)
        """Allocatable, or 1 where it is 0: for divisions."""
        self.ranks: Ints = np.zeros(0, np.int64)
        """Higher for lower rows: breaks ties in sort keys."""
        self.alive: Bools = np.zeros(0, np.bool_)
        self.ready: Bools = np.zeros(0, np.bool_)
        self.unschedulable: Bools = np.zeros(0, np.bool_)
        self.taint_set: NDArray[np.int32] = np.zeros(0, np.int32)
        self.taint_sets: list[tuple[TaintFact, ...]] = []
        self.stamp: Ints = np.zeros(0, np.int64)
        """By row, the value of `clock` at its last change: caches compare with it."""
        self.static_stamp: Ints = np.zeros(0, np.int64)
        """The same for what does not depend on placements: labels, taints, readiness, allocatable."""
        self.static_version = 1
        """The latest of the static stamps."""
        self._taint_ids: dict[tuple[TaintFact, ...], int] = {}
        self._labels: dict[str, LabelColumn] = {}
        self._amounts: dict[Request, Ints] = {}
        self._needs_rewrite = False
        """Whether too many stale labels or taints are kept: the next `settle` rewrites all rows."""

    # ---- events

    def put(self, facts: NodeFacts) -> None:
        """A node was added or changed. A new one gets its row at the next `settle`."""
        row = self.rows.get(facts.name)
        if row is None:
            self._added[facts.name] = facts
            return
        known = self.facts[row]
        if known == facts:
            return
        self._write(row, facts, self.used(row))

    def remove(self, name: str) -> None:
        self._added.pop(name, None)
        row = self.rows.pop(name, None)
        if row is None:
            return
        self.facts[row] = None
        self.alive[row] = False
        self.free[:, row] = -1
        self.allocatable[:, row] = 0
        self._touch_static(row)

    def settle(self, used_of: UsedOf) -> bool:
        """Gives rows to the nodes that were added. Returns whether rows were added or renumbered."""
        if not self._added and not self._needs_rewrite:
            return False
        added = sorted(self._added.values(), key=_rank)
        self._added = {}
        last = next((facts for facts in reversed(self.facts) if facts is not None), None)
        dead = self.count - len(self.rows)
        earlier = bool(added) and last is not None and _rank(added[0]) < _rank(last)
        if earlier or self._needs_rewrite or dead > max(_DEAD_ROWS, len(self.rows)):
            self._renumber(added, used_of)
            return True
        self._append(added, used_of)
        return True

    # ---- rows

    def used(self, row: int) -> Ints:
        found: Ints = self.allocatable[:, row] - self.free[:, row]
        return found

    def allocate_many(self, rows: Rows, counts: Ints, request: Request) -> None:
        """Takes `counts[i]` times the request on row `rows[i]`; each row occurs once."""
        self.free[:, rows] -= self.amounts(request) * counts
        self.version += 1
        self.stamp[rows] = self.version

    def allocate(self, row: int, request: Request, count: int = 1) -> None:
        """Takes `count` times the request on one row."""
        for column, amount in request:
            self.free[column, row] -= count * amount
        self.version += 1
        self.stamp[row] = self.version

    def release(self, row: int, request: Request, count: int = 1) -> None:
        """The exact inverse of `allocate`."""
        self.allocate(row, request, -count)

    def amounts(self, request: Request) -> Ints:
        """A request as a column vector over all columns."""
        known = self._amounts.get(request)
        if known is None or len(known) != len(self.free):
            known = self._amounts[request] = np.zeros((len(self.free), 1), np.int64)
            for column, amount in request:
                known[column, 0] = amount
        return known

    def touch(self, row: int) -> None:
        """Invalidates what is cached of a row, though its free room is the same."""
        self.version += 1
        self.stamp[row] = self.version

    def widen(self) -> None:
        """Adds the columns of new resource names. Called before an amount of a new column is used."""
        missing = len(self.resources) - self.allocatable.shape[0]
        if missing > 0:
            more = np.zeros((missing + 2, self.allocatable.shape[1]), np.int64)
            self.allocatable = np.concatenate([self.allocatable, more])
            self.free = np.concatenate([self.free, more])
            self.divisor = np.concatenate([self.divisor, more + 1])

    def label(self, key: str) -> LabelColumn:
        """The column of one label, created on first use and kept up to date from then on."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(len(self.alive))
            for row, facts in enumerate(self.facts):
                if facts is not None:
                    column.set(row, facts.labels.get(key))
        return column

    def forget_unused(self) -> None:
        """Classes were dropped: drops what is cached of requests, and of labels at the next `settle`."""
        self._amounts.clear()
        self._needs_rewrite = self._needs_rewrite or len(self._labels) > _STALE_BOUND

    def totals(self) -> Ints:
        """By column, the summed allocatable of all nodes that are ready and not cordoned."""
        width = len(self.resources)
        found: Ints = self.allocatable[:width, : self.count][:, self.usable()].sum(axis=1)
        return found

    def usable(self) -> Bools:
        """Which rows are nodes that are ready and not cordoned."""
        found: Bools = self.alive[: self.count] & self.ready[: self.count] & ~self.unschedulable[: self.count]
        return found

    # ---- internals

    def _append(self, added: Sequence[NodeFacts], used_of: UsedOf) -> None:
        self._grow(self.count + len(added))
        for facts in added:
            row = self.count
            self.count += 1
            self.names.append(facts.name)
            self.facts.append(None)
            self.rows[facts.name] = row
            self.alive[row] = True
            used = used_of(facts.name)
            self.widen()
            vector = np.zeros(self.free.shape[0], np.int64)
            for column, amount in used.items():
                vector[column] = amount
            self._write(row, facts, vector)

    def _write(self, row: int, facts: NodeFacts, used: Ints) -> None:
        """Sets all columns of a row; what is used on it stays used."""
        offered = self.resources.capacity(facts.allocatable)
        self.widen()
        self.facts[row] = facts
        self.allocatable[:, row] = 0
        for column, amount in offered.items():
            self.allocatable[column, row] = amount
        self.divisor[:, row] = np.maximum(self.allocatable[:, row], 1)
        self.free[:, row] = self.allocatable[:, row]
        self.free[: len(used), row] -= used
        self.ready[row] = facts.ready
        self.unschedulable[row] = facts.unschedulable
        taints = tuple(sorted(facts.taints))
        known = self._taint_ids.get(taints)
        if known is None:
            known = self._taint_ids[taints] = len(self.taint_sets)
            self.taint_sets.append(taints)
        self.taint_set[row] = known
        most = 2 * len(self.rows) + _STALE_BOUND
        self._needs_rewrite = self._needs_rewrite or len(self.taint_sets) > most
        for key, label in self._labels.items():
            label.set(row, facts.labels.get(key))
            self._needs_rewrite = self._needs_rewrite or len(label.values) > most
        self._touch_static(row)

    def _touch_static(self, row: int) -> None:
        self.version += 1
        self.stamp[row] = self.static_stamp[row] = self.static_version = self.version

    def _grow(self, size: int) -> None:
        capacity = len(self.alive)
        if size <= capacity:
            return
        more = max(size, capacity * 2, 16) - capacity
        self.allocatable = np.pad(self.allocatable, ((0, 0), (0, more)))
        self.free = np.pad(self.free, ((0, 0), (0, more)))
        self.divisor = np.pad(self.divisor, ((0, 0), (0, more)), constant_values=1)
        self.ranks = ROW_MASK - np.arange(capacity + more)
        self.alive = np.pad(self.alive, (0, more))
        self.ready = np.pad(self.ready, (0, more))
        self.unschedulable = np.pad(self.unschedulable, (0, more))
        self.taint_set = np.pad(self.taint_set, (0, more))
        self.stamp = np.pad(self.stamp, (0, more))
        self.static_stamp = np.pad(self.static_stamp, (0, more))
        for column in self._labels.values():
            column.ids = np.pad(column.ids, (0, more), constant_values=-1)

    def _renumber(self, added: Sequence[NodeFacts], used_of: UsedOf) -> None:
        """Rewrites all rows in order. Rare: a node was added that ranks before another one, most rows are of deleted
        nodes, or most of the labels and taints that are kept are stale."""
        used = {name: dict(enumerate(self.used(row).tolist())) for name, row in self.rows.items()}
        nodes = sorted([*(facts for facts in self.facts if facts is not None), *added], key=_rank)
        self._clear()
        self.version += 1
        self.moves += 1
        self._append(nodes, lambda name: used[name] if name in used else used_of(name))


def _rank(facts: NodeFacts) -> tuple[int, tuple[tuple[int, int, str], ...], str]:
    return (facts.created_ns, natural_key(facts.name), facts.name)
