"""Room that is made for a gang by evicting others: its members keep it until they land or give up (P3).

A member for which room is made is nominated: it waits like any other, and has its room and its queue's use already,
though those who leave are still there. When they are gone the gang is placed, there or anywhere else it fits by then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.claims.records import Records
from enbloc.engine.decisions import Decision
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.claim_records import PREEMPT, Record
from enbloc.gangs.model import GangKey


class Nominations:
    """Who waits for room that is being made."""

    def __init__(self, state: State, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._records = Records(PREEMPT, decide)
        self._gangs: dict[GangKey, GangState] = {}

    def __bool__(self) -> bool:
        return bool(self._gangs)

    def of(self, gang: GangState) -> list[Task]:
        if gang.key not in self._gangs:
            return []
        return [task for task in gang.tasks.values() if task.status is TaskStatus.NOMINATED]

    def gangs(self) -> list[GangState]:
        return list(self._gangs.values())

    # ---- made, used, given up

    def make(self, gang: GangState, places: Sequence[tuple[Task, str]], message: str) -> None:
        """Room on these nodes is the gang's from now on."""
        for task, node in places:
            self._state.nominate(task, node)
        self._gangs[gang.key] = gang
        self._state.touch(gang)
        self._write(gang, "Preempting", message)

    def lift(self, transaction: Transaction, gang: GangState) -> list[tuple[Task, int]]:
        """Takes a gang's room off, so that it can be placed anew with it. Where others wait for room on the same node
        that is not all there yet, what is there is for whoever is tried first: they stand aside, and are returned."""
        nodes = self._state.nodes
        own = {task.node: nodes.rows[task.node] for task in self.of(gang)}
        self.lift_own(transaction, gang)
        aside: list[tuple[Task, int]] = []
        for name, row in own.items():
            there = self._state.stateful.assigned_to(name)
            if any(one.status is TaskStatus.RELEASING for one in there):
                aside += [(one, row) for one in there if one.status is TaskStatus.NOMINATED]
        for task, _ in aside:
            transaction.let_go(task)
        return aside

    def lift_own(self, transaction: Transaction, gang: GangState) -> None:
        for task in self.of(gang):
            transaction.let_go(task)

    def end(self, gang: GangState, reason: str, message: str) -> None:
        """It landed, or nothing will come of it: nobody keeps anything for it."""
        if gang.key not in self._gangs:
            return
        for task in self.of(gang):
            self._state.let_go(task)
        del self._gangs[gang.key]
        self._state.touch(gang)
        self._write(gang, reason, message)

    # ---- nodes and gangs that change

    def see_again(self) -> None:
        """Nodes go, and those who were to leave may stay."""
        if not self._state.events.any:
            return
        for gang in list(self._gangs.values()):
            if not all(map(self._will_have_room, self.of(gang))):
                self.end(gang, "GaveUp", "the room that was to be made for it will not be there")

    def forget(self, key: GangKey) -> None:
        """A gang is gone."""
        self._gangs.pop(key, None)
        self._records.forget(key)

    def _will_have_room(self, task: Task) -> bool:
        """Whether its node has its room, or will have when those who are leaving have left."""
        nodes = self._state.nodes
        row = nodes.rows.get(task.node)
        if row is None:
            return False
        if not self._state.candidates(task.cls).passes(row):
            return False
        lacking = {column: -int(nodes.free[column, row]) for column, _ in task.cls.request}
        if max(lacking.values()) <= 0:
            return True
        for other in self._state.stateful.assigned_to(task.node):
            if other.status is TaskStatus.RELEASING:
                for column, amount in other.cls.request:
                    if column in lacking:
                        lacking[column] -= amount
        return max(lacking.values()) <= 0

    def follow(self, gang: GangState) -> None:
        """A gang is read: what its record says is taken over if nothing is known of it; else it is kept up to date."""
        earlier = self._records.unread(gang)
        if earlier is not None:
            self._adopt(gang, earlier)
        if gang.key not in self._gangs:
            return
        if gang.ready() or gang.spec.finished or not self.of(gang):
            self.end(gang, "Landed" if gang.ready() else "GaveUp", "nothing is kept for it any more")
        elif self._records.has_moved(gang):
            self._write(gang, "Preempting", "what is kept for it is written on another pod of it")

    def _adopt(self, gang: GangState, record: Record) -> None:
        """After a restart: room that was being made is kept again, where it still is to be had."""
        self._gangs[gang.key] = gang
        for task in sorted(gang.tasks.values(), key=lambda task: task.order):
            node = next(iter(record.slots.get(task.name, ())), "")
            if task.status is TaskStatus.PENDING and task.ours and node in self._state.nodes.rows:
                self._state.nominate(task, node)
        if not self.of(gang) or not all(map(self._will_have_room, self.of(gang))):
            self.end(gang, "GaveUp", "the room that was to be made for it will not be there")

    # ---- what is written

    def record(self, gang: GangState) -> Record | None:
        if gang.key not in self._gangs:
            return None
        tasks = sorted(self.of(gang), key=lambda task: task.order)
        return Record(PREEMPT, 0, {task.name: {task.node: 1} for task in tasks})

    def refused(self, key: GangKey) -> None:
        """A record could not be written: nobody relies on it. What the API says holds."""
        self._records.forget(key)
        gang = self._gangs.pop(key, None)
        if gang is not None:
            for task in [task for task in gang.tasks.values() if task.status is TaskStatus.NOMINATED]:
                self._state.let_go(task)
            self._state.touch(gang)

    def _write(self, gang: GangState, reason: str, message: str) -> None:
        self._records.write(gang, self.record(gang), reason, message)
