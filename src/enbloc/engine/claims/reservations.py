"""Nodes that are kept for members of starving gangs (R2, R4, R5, R7): who has reserved what, and who may not go there.

A reservation takes no room: its node takes no new tasks but those it is kept for, so that room comes together there as
what runs on it ends. What is reserved is written down, one record a gang, so that a restart finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from enbloc.engine.claims.records import Records
from enbloc.engine.decisions import Decision
from enbloc.engine.state.state import State
from enbloc.engine.tables.resources import Bools, Ints
from enbloc.engine.tables.tasks import WAITS, GangState, Task
from enbloc.gangs.claim_records import RESERVE, Record
from enbloc.gangs.model import GangKey

RECORD_BYTES = 192 * 1024
"""A record that is longer might not be taken: a gang that needs one is not reserved for."""

ENDLESS = 2**63 - 1
"""A reservation that is due when somebody ends of whom nobody knows when."""

Amounts = dict[int, int]


class Reservations:
    """What is reserved for whom."""

    def __init__(self, state: State, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._records = Records(RESERVE, decide)
        self._places: dict[GangKey, dict[str, str]] = {}
        """Gang → task → node."""
        self._gangs_on: dict[str, dict[GangKey, None]] = {}
        """Node → gangs that have reserved it."""
        self.due: dict[GangKey, int] = {}
        """When each gang's reservation is due: it could start then (see `forecast`)."""
        self.version = 0
        """Goes up with every change."""
        self._mask: tuple[tuple[int, int, int], Bools] | None = None

    def __bool__(self) -> bool:
        return bool(self._places)

    def of(self, gang: GangState) -> Mapping[str, str]:
        """Task → node."""
        return self._places.get(gang.key, {})

    def gangs(self) -> list[GangState]:
        return [self._state.gangs[key] for key in self._places if key in self._state.gangs]

    def nodes(self) -> set[str]:
        """All nodes that hold reservations."""
        return set(self._gangs_on)

    def on(self, node: str) -> Amounts:
        """The sum of what is reserved on a node."""
        found: Amounts = {}
        for key in self._gangs_on.get(node, ()):
            for task in self._tasks(key, node):
                for column, amount in task.cls.request:
                    found[column] = found.get(column, 0) + amount
        return found

    def kept_from(self, gang: GangState, now: int) -> Ints:
        """The free room on nodes that others have reserved, by column: it is not for a gang that would run longer than
        until they are due."""
        nodes, run_time = self._state.nodes, gang.run_time
        rows = [
            nodes.rows[node]
            for node, keys in self._gangs_on.items()
            if node in nodes.rows
            and any(key != gang.key and (run_time is None or self.due.get(key, 0) < now + run_time) for key in keys)
        ]
        found: Ints = np.maximum(nodes.free[:, rows], 0).sum(axis=1)
        return found

    def _tasks(self, key: GangKey, node: str) -> list[Task]:
        gang = self._state.gangs.get(key)
        places = self._places[key].items()
        return [gang.tasks[uid] for uid, name in places if name == node and uid in gang.tasks] if gang else []

    def condition_ready(self, gang: GangState) -> bool:
        """R2: occupied and reserved are enough together, by role and in total."""
        return self.would_be_ready(gang, [gang.tasks[uid] for uid in self.of(gang) if uid in gang.tasks])

    def would_be_ready(self, gang: GangState, reserved: Sequence[Task]) -> bool:
        counts = gang.found_by_role()
        for task in reserved:
            counts[task.role] = counts.get(task.role, 0) + 1
        return gang.short_of(counts) <= 0 and all(counts.get(r, 0) >= n for r, n in gang.minima().items())

    # ---- who may not go there

    def closed_to(
        self, gang: GangState, task: Task, now: int | None, but_for: frozenset[GangKey] = frozenset()
    ) -> Bools | None:
        """R5: the rows that others have reserved. BestEffort tasks may go anywhere, and so may one that ends before the
        reservation is due (R8)."""
        if not self._places or task.cls.best_effort:
            return None
        ends = None if now is None or task.run_time is None else now + task.run_time
        if ends is None and gang.key not in self._places and not but_for:
            return self._all_rows()
        found = np.zeros(self._state.nodes.count, np.bool_)
        for node, keys in self._gangs_on.items():
            row = self._state.nodes.rows.get(node)
            others = [key for key in keys if key != gang.key and key not in but_for]
            if row is None or not others:
                continue
            found[row] = ends is None or any(self.due.get(key, 0) < ends for key in others)
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

    def make(self, gang: GangState, places: Sequence[tuple[Task, str]]) -> bool:
        """Keeps nodes for tasks. `False`: the record would be too long to be written."""
        size = 128 + sum(len(task.name) + len(node) + 16 for task, node in places)
        if size > RECORD_BYTES:
            return False
        self._put(gang, {task.uid: node for task, node in places})
        nodes = sorted({node for _, node in places})
        where = f"{', '.join(nodes[:8])}{f' and {len(nodes) - 8} more' if len(nodes) > 8 else ''}"
        self._write(gang, "Reserved", f"starving: room for {len(places)} pods is reserved on {where}")
        return True

    def _put(self, gang: GangState, places: dict[str, str]) -> None:
        self._places[gang.key] = places
        for node in places.values():
            self._gangs_on.setdefault(node, {})[gang.key] = None
        self._change(gang)

    def _take(self, key: GangKey) -> bool:
        places = self._places.pop(key, None)
        if places is None:
            return False
        for node in set(places.values()):
            del self._gangs_on[node][key]
            if not self._gangs_on[node]:
                del self._gangs_on[node]
        self.due.pop(key, None)
        self.version += 1
        self._state.events.any = self._state.events.everything = True  # whoever was kept out may come in
        return True

    def _change(self, gang: GangState) -> None:
        self.version += 1
        self._state.touch(gang)

    def end(self, gang: GangState, reason: str, message: str) -> None:
        """Its job is bound, or the reservation no longer helps (R7)."""
        if self._take(gang.key):
            self._state.touch(gang)
            self._write(gang, reason, message)

    # ---- nodes and gangs that change

    def see_again(self) -> None:
        """Nodes go: what was reserved there is not reserved any more."""
        events = self._state.events
        if events.everything or events.volumes or events.claims or (events.any and self._state.queues.guarantees):
            for gang in self.gangs():
                self._review(gang)

    def forget(self, key: GangKey) -> None:
        """A gang is gone: so is what was reserved for it."""
        self._take(key)
        self._records.forget(key)

    def follow(self, gang: GangState) -> None:
        """A gang is read: what its record says is taken over if nothing is known of it; else it is kept up to date."""
        earlier = self._records.unread(gang)
        if earlier is not None:
            self._adopt(gang, earlier)
        if gang.key in self._places:
            self._review(gang)
        if gang.key in self._places and self._records.has_moved(gang):
            self._write(gang, "Reserved", "its reservation is written on another pod of it")

    def _adopt(self, gang: GangState, record: Record) -> None:
        """After a restart: what was reserved is reserved again."""
        tasks = {task.name: task for task in gang.tasks.values() if task.status in WAITS}
        places = {tasks[name].uid: next(iter(nodes)) for name, nodes in record.slots.items() if name in tasks and nodes}
        if places:
            self._put(gang, places)
        else:
            self._write(gang, "ReservationEnded", "the pods it was for wait no longer")

    def _review(self, gang: GangState) -> None:
        """R7: whether what is reserved still makes the gang condition-ready."""
        tasks = [gang.tasks.get(uid) for uid in self.of(gang)]
        if gang.satisfied or gang.ready():
            self.end(gang, "ReservationUsed", "its pods are bound")
        elif not all(task is not None and task.status in WAITS for task in tasks):
            self.end(gang, "ReservationEnded", "pods that it was for are gone")
        elif not all(
            self._stands(task, node) for task, node in zip(tasks, self.of(gang).values(), strict=True) if task
        ):
            self.end(gang, "ReservationEnded", "a node that was reserved is no longer good for its pods")
        elif self._is_kept_out(gang):
            self.end(gang, "ReservationEnded", "its queue may not use so much")
        elif not self.condition_ready(gang):
            self.end(gang, "ReservationEnded", "what was reserved would no longer be enough")

    def _is_kept_out(self, gang: GangState) -> bool:
        """Whether room would not help it: a capability, or what is guaranteed to others, is in its way for good."""
        asked: Amounts = {}
        for uid in self.of(gang):
            for column, amount in gang.tasks[uid].cls.request:
                asked[column] = asked.get(column, 0) + amount
        return is_beyond_queue(self._state, gang, asked)

    def _stands(self, task: Task, node: str) -> bool:
        """Whether a node still is what its task asks for, free room aside, and still has as much as is reserved."""
        nodes = self._state.nodes
        row = nodes.rows.get(node)
        if row is None:
            return False
        if not self._state.candidates(task.cls).passes(row):
            return False
        return all(amount <= nodes.allocatable[column, row] for column, amount in self.on(node).items())

    # ---- what is written

    def record(self, gang: GangState) -> Record | None:
        places = self._places.get(gang.key)
        if places is None:
            return None
        tasks = sorted((gang.tasks[uid] for uid in places if uid in gang.tasks), key=lambda task: task.order)
        return Record(RESERVE, 0, {task.name: {places[task.uid]: 1} for task in tasks})

    def refused(self, key: GangKey) -> None:
        """A record could not be written: nobody relies on it, and nothing is reserved. What the API says holds."""
        self._records.forget(key)
        gang = self._state.gangs.get(key)
        if self._take(key) and gang is not None:
            self._state.touch(gang)

    def _write(self, gang: GangState, reason: str, message: str) -> None:
        self._records.write(gang, self.record(gang), reason, message)


def is_beyond_queue(state: State, gang: GangState, asked: Mapping[int, int]) -> bool:
    """Whether a gang's queue could not use so much even if it used nothing else."""
    queues, queue = state.queues, state.queue_of(gang)
    for place in queue.ancestors:
        if any(asked.get(column, 0) > limit for column, limit in place.limits.items()):
            return True
    if not queues.guarantees:
        return False
    totals, kept = state.nodes.totals(), queues.guaranteed_to_others(queue)
    return any(kept[column] and amount > int(totals[column]) - int(kept[column]) for column, amount in asked.items())
