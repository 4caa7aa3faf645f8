"""Members of NonStrict gangs that are held until the others fit too, and the clock of their groups (K6, K8).

What is held is written down, one record a gang, so that a restart finds it. In memory it is the tasks themselves that
stand as held. When a group's time is up it lets go of everything, and its pods are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from enbloc.engine.decisions import Decision, SetAside, TimeOut
from enbloc.engine.state.groups import Group, Groups
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.claim_records import HOLD, Record
from enbloc.gangs.model import GangKey

RECORD_BYTES = 192 * 1024
"""A record that is longer might not be taken: what does not go in is not held."""


class Holds:
    """What is held for whom, and until when."""

    def __init__(self, state: State, groups: Groups, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._groups = groups
        self._decide = decide
        self._until: dict[GangKey, int] = {}
        self._written: dict[GangKey, tuple[str, Record | None]] = {}
        """What we wrote last of a gang, and on what. A gang that is not in here is known by its record alone."""
        self.changed = False
        """Whether somebody who holds was looked at since it was last asked who waits for whom (K12)."""

    def __bool__(self) -> bool:
        return bool(self._until)

    def due(self) -> int | None:
        return min(self._until.values(), default=None)

    def of(self, gang: GangState) -> list[Task]:
        return [task for task in gang.tasks.values() if task.status is TaskStatus.HELD] if gang.total_held else []

    def holders(self) -> list[Group]:
        """Groups that hold something."""
        found: dict[int, Group] = {}
        for key in self._until:
            gang = self._state.gangs.get(key)
            group = self._groups.of(gang) if gang is not None and gang.total_held else None
            if group is not None:
                found[id(group)] = group
        return list(found.values())

    def clock(self, group: Group) -> int | None:
        """When a group's time is up, if its clock runs."""
        return min((self._until[key] for key in group.keys if key in self._until), default=None)

    # ---- held, let go

    def start(self, group: Group, gang: GangState, now: int) -> None:
        """A group's clock starts, though nothing is held yet: some of its gangs are there and others are not."""
        if group.waiting and self.clock(group) is None:
            self._until[gang.key] = now + group.waiting
            self._write(gang, "Waiting", "waits for the other gangs of its group")

    def hold(self, group: Group, gang: GangState, placed: Sequence[Task], now: int) -> None:
        """Tasks that were placed are held where they are. The first one starts the clock."""
        until = self.clock(group)
        self._until.setdefault(gang.key, now + group.waiting if until is None else until)
        size = 128 + sum(map(_size, self.of(gang)))
        for task in placed:
            self._state.hold(task)
            size += _size(task)
            if size > RECORD_BYTES:
                self._state.let_go(task)
        self.changed = True
        self._write(gang, "Held", f"{gang.total_held} pods are held until the others fit too")

    def let_go(self, group: Group, reason: str, message: str) -> None:
        """What a group holds is for anybody again, and its clock stands."""
        for gang in self._groups.gangs(group):
            self._let_go(gang)
            if self._until.pop(gang.key, None) is not None:
                self._write(gang, reason, message)

    def _let_go(self, gang: GangState) -> None:
        for task in self.of(gang):
            self._state.let_go(task)
            self._state.touch(gang)

    def take(self, gang: GangState) -> list[Task]:
        """Its gang is complete: what is held is placed."""
        held = self.of(gang)
        for task in held:
            self._state.place_held(task)
        return held

    def end(self, group: Group) -> None:
        """The group is bound: nothing is held any more."""
        for gang in self._groups.gangs(group):
            if self._until.pop(gang.key, None) is not None:
                self._write(gang, "HoldUsed", "its pods are bound where they were held")

    # ---- time, nodes and gangs that go

    def expire(self, now: int) -> list[TimeOut]:
        """Groups whose time is up let go of everything; every pod of theirs that has no node is to be marked."""
        found: list[TimeOut] = []
        for key in [key for key, until in self._until.items() if until <= now]:
            gang = self._state.gangs.get(key)
            group = self._groups.of(gang) if gang is not None else None
            if group is None:
                self._until.pop(key, None)
                if gang is not None:
                    self._state.touch(gang)  # what is written of it is to go
            elif key in self._until:
                waiting = [mate for mate in self._groups.gangs(group) if not mate.satisfied]
                self.let_go(group, "TimedOut", "its time is up, and what was held is let go")
                found += [self._time_out(mate) for mate in waiting]
        return found

    def _time_out(self, gang: GangState) -> TimeOut:
        waiting = [task for task in gang.tasks.values() if task.status is TaskStatus.PENDING and task.ours]
        waiting.sort(key=lambda task: task.order)
        for task in waiting:
            self._state.time_out(task)
        return TimeOut(gang.key, tuple((task.namespace, task.name, task.uid) for task in waiting))

    def see_again(self) -> None:
        """Nodes go: what was held there is not held any more."""
        for key in list(self._until):
            gang = self._state.gangs[key]
            lost = [task for task in self.of(gang) if not self._stands(task)] if self._state.events.any else []
            for task in lost:
                self._state.let_go(task)
            if lost:
                self._state.touch(gang)

    def _stands(self, task: Task) -> bool:
        nodes = self._state.nodes
        row = nodes.rows.get(task.node)
        if row is None or any(nodes.free[column, row] < 0 for column, _ in task.cls.request):
            return False
        return self._state.candidates(task.cls).passes(row)

    # ---- what the API says

    def record(self, gang: GangState) -> Record | None:
        """What is to be written down of a gang now."""
        until = self._until.get(gang.key)
        if until is None:
            return None
        return Record(HOLD, until, {task.name: {task.node: 1} for task in sorted(self.of(gang), key=lambda t: t.order)})

    def follow(self, gang: GangState, now: int) -> None:
        """A gang is read: what its record says is taken over if nothing is known of it; else it is kept up to date."""
        claim = gang.spec.claim
        said = claim if claim is not None and claim.kind == HOLD else None
        if gang.key not in self._written:
            if said is None:
                return
            self._adopt(gang, said, now)
        elif gang.satisfied or self._groups.of(gang) is None:  # it waits for nobody, and no clock runs on it
            self._let_go(gang)
            self._until.pop(gang.key, None)
        home, wrote = self._written[gang.key]
        mine = self.record(gang)
        if mine is None and said is None:
            del self._written[gang.key]
        elif mine != wrote or home != gang.spec.claim_home:  # somebody went, perhaps the very pod that carried it
            held = f"{gang.total_held} pods are held until the others fit too"
            self._write(gang, *(("Held", held) if mine is not None else ("LetGo", "nothing is held for it any more")))

    def _adopt(self, gang: GangState, record: Record, now: int) -> None:
        """After a restart: what was held is held again, where that is still possible. No record of ours is for longer
        than the waiting time."""
        self._written[gang.key] = (gang.spec.claim_home, record)
        group = self._groups.of(gang)
        if gang.satisfied or group is None:
            self._until.pop(gang.key, None)
            return
        self._until[gang.key] = min(record.until, now + group.waiting)
        for task in sorted(gang.tasks.values(), key=lambda task: task.order):
            node = next(iter(record.slots.get(task.name, ())), "")
            if task.status is TaskStatus.PENDING and task.ours and node in self._state.nodes.rows:
                self._state.hold_on(task, node)
                if not self._stands(task):
                    self._state.let_go(task)
        self.changed = True

    def forget(self, key: GangKey) -> None:
        """A gang is gone."""
        self._until.pop(key, None)
        self._written.pop(key, None)

    def refused(self, key: GangKey) -> None:
        """A record could not be written: nobody relies on it, and nothing is held."""
        gang = self._state.gangs.get(key)
        self.forget(key)
        if gang is not None:
            self._let_go(gang)
            self._state.touch(gang)

    def _write(self, gang: GangState, reason: str, message: str) -> None:
        record = self.record(gang)
        self._written[gang.key] = (gang.spec.claim_home, record)
        gang.spec = msgspec.structs.replace(gang.spec, claim=record)
        self._decide(SetAside(gang.key, HOLD, record, reason, message))


def _size(task: Task) -> int:
    return len(task.name) + len(task.node) + 16
