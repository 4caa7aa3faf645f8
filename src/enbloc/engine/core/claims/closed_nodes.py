"""Nodes that claims close: they take no new tasks but those they are kept for (R5). Such a claim takes no room."""

from __future__ import annotations

from collections.abc import Mapping, Set

import numpy as np

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Bools, Ints, total
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey


class ClosedNodes:
    def __init__(self, state: State) -> None:
        self._state = state
        self._claims: dict[GangKey, Claim] = {}
        self._gangs_on: dict[str, dict[GangKey, int]] = {}
        """Node → gangs that reserve it, and with how many slots."""
        self.due_ns: dict[GangKey, int] = {}
        """When each gang's reservation is due: the gang could start then (see `run_times`)."""
        self.version = 0
        """Goes up with every change."""
        self._mask: tuple[tuple[int, int, int], Bools] | None = None

    def __bool__(self) -> bool:
        return bool(self._claims)

    def of(self, gang: GangState) -> Mapping[str, str]:
        """Task UID → node."""
        claim = self._claims.get(gang.key)
        return claim.places if claim is not None else {}

    def tasks_of(self, gang: GangState) -> list[tuple[Task, str]]:
        """Each task that nodes are reserved for, pods of later waves included, and its node."""
        claim = self._claims.get(gang.key)
        slots = claim.slots.values() if claim is not None else ()
        return [(slot.task, slot.node) for slot in slots if slot.task is not None]

    def rows_for(self, task: Task) -> Bools:
        """The rows that are reserved for a task, or for one like it of its gang."""
        nodes = self._state.nodes
        found = np.zeros(nodes.count, np.bool_)
        own = {node for other, node in self.tasks_of(task.gang) if other.cls is task.cls}
        found[[nodes.rows[node] for node in own if node in nodes.rows]] = True
        return found

    def gangs(self) -> list[GangState]:
        return [claim.gang for claim in self._claims.values()]

    def nodes(self) -> set[str]:
        """All nodes that hold reservations."""
        return set(self._gangs_on)

    def lower_than(self, priority: int) -> frozenset[GangKey]:
        """Gangs of lower priority that reserve nodes."""
        return frozenset(gang.key for gang in self.gangs() if gang.priority < priority)

    def nodes_of_others(self, exclude: frozenset[GangKey]) -> set[str]:
        """Nodes that hold reservations of gangs that are not in `exclude`."""
        return {node for node, keys in self._gangs_on.items() if any(key not in exclude for key in keys)}

    def on(self, node: str, exclude: frozenset[GangKey] = frozenset()) -> Mapping[int, int]:
        """The sum of what is reserved on a node, by column; the gangs in `exclude` aside."""
        found = [
            slot.task
            for key in self._gangs_on.get(node, ())
            if key not in exclude
            for slot in self._claims[key].slots.values()
            if slot.node == node and slot.task is not None
        ]
        return total(task.cls.request for task in found)

    def since(self, node: str, exclude: frozenset[GangKey]) -> int | None:
        """When the oldest reservation on a node was made, the gangs in `exclude` aside; `None`: there is none."""
        keys = [key for key in self._gangs_on.get(node, ()) if key not in exclude]
        return min((self._claims[key].clock_ns for key in keys), default=None)

    def kept_from(self, gang: GangState, now_ns: int) -> Ints:
        """The free room, by column, on nodes that other gangs reserve and that the gang may not use: those are not of
        lower priority (R5), and it would run past the time when their reservations are due."""
        own = self.lower_than(gang.priority) | {gang.key}
        ends_ns = None if gang.run_time_ns is None else now_ns + gang.run_time_ns
        found: Ints = np.maximum(self._state.nodes.free[:, self._rows_kept(own, ends_ns)], 0).sum(axis=1)
        return found

    def _rows_kept(self, own: Set[GangKey], ends_ns: int | None) -> list[int]:
        """The rows that gangs other than its `own` keep from what ends then."""
        rows = self._state.nodes.rows
        return [
            rows[node]
            for node, keys in self._gangs_on.items()
            if node in rows
            and any(key not in own and (ends_ns is None or self.due_ns.get(key, 0) < ends_ns) for key in keys)
        ]

    def closed_to(
        self, gang: GangState, task: Task, now_ns: int | None, exclude: frozenset[GangKey] = frozenset()
    ) -> Bools | None:
        """R5: the rows that other gangs reserve. BestEffort tasks may use any; so may a task that ends before the
        reservation is due, where `now_ns` is given (R8)."""
        if not self._gangs_on or task.cls.best_effort:
            return None
        ends_ns = None if now_ns is None or task.run_time_ns is None else now_ns + task.run_time_ns
        if ends_ns is None and gang.key not in self._claims and not exclude:
            return self._all_rows()
        found = np.zeros(self._state.nodes.count, np.bool_)
        found[self._rows_kept(exclude | {gang.key}, ends_ns)] = True
        return found

    def _all_rows(self) -> Bools:
        nodes = self._state.nodes
        at = (self.version, nodes.moves, nodes.count)
        if self._mask is None or self._mask[0] != at:
            mask = np.zeros(nodes.count, np.bool_)
            mask[[nodes.rows[node] for node in self._gangs_on if node in nodes.rows]] = True
            self._mask = (at, mask)
        return self._mask[1]

    # ---- made and ended

    def occupy(self, claim: Claim) -> None:
        if claim.gang.key in self._claims:
            return  # a pod that was recreated takes its slot: the node is reserved already
        self._claims[claim.gang.key] = claim
        for slot in claim.slots.values():
            gangs = self._gangs_on.setdefault(slot.node, {})
            gangs[claim.gang.key] = gangs.get(claim.gang.key, 0) + 1
        self.version += 1

    def vacate(self, claim: Claim) -> None:
        key = claim.gang.key
        if self._claims.get(key) is claim:
            del self._claims[key]
        for slot in claim.slots.values():
            gangs = self._gangs_on[slot.node]
            gangs[key] -= 1
            if not gangs[key]:
                del gangs[key]
            if not gangs:
                del self._gangs_on[slot.node]
        self.due_ns.pop(key, None)
        self.version += 1
        self._state.events.add(EventKind.NODES_REOPENED)
