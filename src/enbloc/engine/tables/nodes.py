"""The nodes as rows of arrays: what they have, what is free, and what can be asked of their labels and taints.

A row's number is its rank: nodes are kept by (creation, name), so that a tie between nodes is broken the same way
before and after a restart. Rows move only in `settle`, which is called before a cycle and never during one. Room is
taken and given back by `take`; who takes it, and whether that can be undone, is the transaction's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from enbloc.engine.tables.resources import Bools, Ints, Request, Resources
from enbloc.units import natural_key

ROW_BITS: Final = 24
ROW_MASK: Final = 2**ROW_BITS - 1
"""A row's number, in the lowest bits of a key: a cluster has at most so many nodes."""

_DEAD_ROWS: Final = 64
"""So many rows of nodes that went are always put up with."""

_WORN: Final = 64
"""So many columns of labels, and besides twice the nodes so many values of a label and sets of taints, are put up with
though nobody may ask for them, or have them, any more."""

Rows = NDArray[np.intp]
UsedOf = Callable[[str], Mapping[int, int]]
"""Tells what is used on a node, by name: column → amount."""


class TaintFact(NamedTuple):
    key: str
    value: str
    effect: str


class NodeFacts(msgspec.Struct, frozen=True):
    """All that the scheduler wants to know of one node, read once per event."""

    name: str
    created: int
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
    """Every node, as rows. `[:count]` of each array is in use; `alive` says which rows still hold a node."""

    def __init__(self, resources: Resources) -> None:
        self.resources = resources
        self.count = 0
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.facts: list[NodeFacts | None] = []
        self.allocatable: Ints = np.zeros((4, 0), np.int64)
        self.free: Ints = np.zeros((4, 0), np.int64)
        self.divisor: Ints = np.ones((4, 0), np.int64)
        """Allocatable, or 1 where there is none: to divide by."""
        self.ranks: Ints = np.zeros(0, np.int64)
        """The lower the row the higher: what breaks a tie in a key."""
        self.alive: Bools = np.zeros(0, np.bool_)
        self.ready: Bools = np.zeros(0, np.bool_)
        self.unschedulable: Bools = np.zeros(0, np.bool_)
        self.taint_set: NDArray[np.int32] = np.zeros(0, np.int32)
        self.taint_sets: list[tuple[TaintFact, ...]] = []
        self.stamp: Ints = np.zeros(0, np.int64)
        """When anything about the row last changed, on `clock`: caches of rows compare with it."""
        self.static_stamp: Ints = np.zeros(0, np.int64)
        """The same for what does not depend on placements: labels, taints, readiness, allocatable."""
        self.clock = 1
        self.static_clock = 1
        """The latest of the static stamps."""
        self.moves = 0
        """How often rows were given new numbers. Whoever remembers a row's number looks here first."""
        self._taint_ids: dict[tuple[TaintFact, ...], int] = {}
        self._labels: dict[str, LabelColumn] = {}
        self._arriving: dict[str, NodeFacts] = {}
        self._amounts: dict[Request, Ints] = {}
        self._worn = False
        """Whether much is known that no node has, or nobody asks for: the next `settle` writes all rows anew."""

    # ---- events

    def put(self, facts: NodeFacts) -> None:
        """A node came or changed. A new one gets its row at the next `settle`."""
        row = self.rows.get(facts.name)
        if row is None:
            self._arriving[facts.name] = facts
            return
        known = self.facts[row]
        if known == facts:
            return
        self._write(row, facts, self.used(row))

    def remove(self, name: str) -> None:
        self._arriving.pop(name, None)
        row = self.rows.pop(name, None)
        if row is None:
            return
        self.facts[row] = None
        self.alive[row] = False
        self.free[:, row] = -1
        self.allocatable[:, row] = 0
        self._touch_static(row)

    def settle(self, used_of: UsedOf) -> bool:
        """Gives the nodes that arrived their rows. Says whether anything was done."""
        if not self._arriving and not self._worn:
            return False
        arriving = sorted(self._arriving.values(), key=_rank)
        self._arriving = {}
        last = next((facts for facts in reversed(self.facts) if facts is not None), None)
        dead = self.count - len(self.rows)
        earlier = bool(arriving) and last is not None and _rank(arriving[0]) < _rank(last)
        if earlier or self._worn or dead > max(_DEAD_ROWS, len(self.rows)):
            self._renumber(arriving, used_of)
            return True
        self._append(arriving, used_of)
        return True

    # ---- rows

    def used(self, row: int) -> Ints:
        found: Ints = self.allocatable[:, row] - self.free[:, row]
        return found

    def take(self, rows: Rows, counts: Ints, request: Request) -> None:
        """Takes `counts[i]` times the request on row `rows[i]` (each row named once); negative counts give back."""
        self.free[:, rows] -= self.amounts(request) * counts
        self.clock += 1
        self.stamp[rows] = self.clock

    def amounts(self, request: Request) -> Ints:
        """A request as a column vector over all columns."""
        known = self._amounts.get(request)
        if known is None or len(known) != len(self.free):
            known = self._amounts[request] = np.zeros((len(self.free), 1), np.int64)
            for column, amount in request:
                known[column, 0] = amount
        return known

    def take_one(self, row: int, request: Request, count: int) -> None:
        """The same on one row."""
        for column, amount in request:
            self.free[column, row] -= count * amount
        self.clock += 1
        self.stamp[row] = self.clock

    def touch(self, row: int) -> None:
        """Something is to be looked at anew there, though its room is the same."""
        self.clock += 1
        self.stamp[row] = self.clock

    def widen(self) -> None:
        """Makes room for columns that were heard of since. Called before any amount of a new column is used."""
        missing = len(self.resources) - self.allocatable.shape[0]
        if missing > 0:
            more = np.zeros((missing + 2, self.allocatable.shape[1]), np.int64)
            self.allocatable = np.concatenate([self.allocatable, more])
            self.free = np.concatenate([self.free, more])
            self.divisor = np.concatenate([self.divisor, more + 1])

    def label(self, key: str) -> LabelColumn:
        """The column of one label, made on first use and kept up to date from then on."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn(len(self.alive))
            for row, facts in enumerate(self.facts):
                if facts is not None:
                    column.set(row, facts.labels.get(key))
        return column

    def forget_unused(self) -> None:
        """Many who asked for something went. What is still asked for is found anew."""
        self._amounts.clear()
        self._worn = self._worn or len(self._labels) > _WORN

    def totals(self) -> Ints:
        """What all nodes that could ever be used have together, by column: not the cordoned, not the unready."""
        width = len(self.resources)
        usable = self.alive & self.ready & ~self.unschedulable
        found: Ints = self.allocatable[:width, usable].sum(axis=1)
        return found

    # ---- inside

    def _append(self, arriving: Sequence[NodeFacts], used_of: UsedOf) -> None:
        self._grow(self.count + len(arriving))
        for facts in arriving:
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
        """Sets all that a row says of its node; what is used on it stays used."""
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
        most = 2 * len(self.rows) + _WORN
        self._worn = self._worn or len(self.taint_sets) > most
        for key, label in self._labels.items():
            label.set(row, facts.labels.get(key))
            self._worn = self._worn or len(label.values) > most
        self._touch_static(row)

    def _touch_static(self, row: int) -> None:
        self.clock += 1
        self.stamp[row] = self.static_stamp[row] = self.static_clock = self.clock

    def _grow(self, size: int) -> None:
        room = len(self.alive)
        if size <= room:
            return
        more = max(size, room * 2, 16) - room
        self.allocatable = np.pad(self.allocatable, ((0, 0), (0, more)))
        self.free = np.pad(self.free, ((0, 0), (0, more)))
        self.divisor = np.pad(self.divisor, ((0, 0), (0, more)), constant_values=1)
        self.ranks = ROW_MASK - np.arange(room + more)
        self.alive = np.pad(self.alive, (0, more))
        self.ready = np.pad(self.ready, (0, more))
        self.unschedulable = np.pad(self.unschedulable, (0, more))
        self.taint_set = np.pad(self.taint_set, (0, more))
        self.stamp = np.pad(self.stamp, (0, more))
        self.static_stamp = np.pad(self.static_stamp, (0, more))
        for column in self._labels.values():
            column.ids = np.pad(column.ids, (0, more), constant_values=-1)

    def _renumber(self, arriving: Sequence[NodeFacts], used_of: UsedOf) -> None:
        """Rare: a node came that ranks before one we have, or most rows are of nodes that went, or most of what is
        known of labels and taints is of no use any more. All rows are written anew, in order."""
        used_by_name = {name: self.used(row) for name, row in self.rows.items()}
        everyone = sorted([*(facts for facts in self.facts if facts is not None), *arriving], key=_rank)
        arrived = {facts.name for facts in arriving}
        fresh = NodeTable(self.resources)
        fresh.clock = self.clock + 1

        def used(name: str) -> Mapping[int, int]:
            return used_of(name) if name in arrived else dict(enumerate(used_by_name[name].tolist()))

        fresh._append(everyone, used)
        moves = self.moves + 1
        self.__dict__.update(fresh.__dict__)
        self.moves = moves


def _rank(facts: NodeFacts) -> tuple[int, tuple[tuple[int, int, str], ...], str]:
    return (facts.created, natural_key(facts.name), facts.name)
