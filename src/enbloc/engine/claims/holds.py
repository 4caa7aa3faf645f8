"""Members of NonStrict gangs that keep their room until the others fit too, and the clock of their groups (K6, K8).

A held task has the status `HELD` and takes its room. When a group's time is up it releases everything, and its pods
are annotated as timed out.
"""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.claims.claim import Claim, Ending, Slot, pod_slots
from enbloc.engine.claims.registry import ClaimRegistry
from enbloc.engine.claims.room import still_fits
from enbloc.engine.decisions import TimeOut
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.events import ALL_KINDS
from enbloc.engine.state.groups import Group, Groups
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs.claim_records import ClaimKind, Record


class Holds:
    kind = ClaimKind.HOLD
    ended = "HoldReleased"
    used = "HoldBound"
    reviewed_on = ALL_KINDS

    def __init__(self, state: State, groups: Groups, claims: ClaimRegistry) -> None:
        self._state = state
        self._groups = groups
        self._claims = claims
        self.changed = False
        """Whether a group that holds pods was attempted since deadlocks were last looked for (K12)."""

    def of(self, gang: GangState) -> list[Task]:
        """The tasks of a gang that are held."""
        return [task for task in gang.tasks.values() if task.status is TaskStatus.HELD] if gang.total_held else []

    def holders(self) -> list[Group]:
        """Groups that hold pods."""
        found: dict[int, Group] = {}
        for claim in self._claims.all(self.kind):
            group = self._groups.of(claim.gang) if claim.gang.total_held else None
            if group is not None:
                found[id(group)] = group
        return list(found.values())

    def clock(self, group: Group) -> int | None:
        """When a group's time is up, if its clock runs."""
        claims = [self._claims.of(gang, self.kind) for gang in self._groups.gangs(group)]
        return min((claim.until_ns for claim in claims if claim is not None), default=None)

    def start_clock(self, group: Group, gang: GangState, now_ns: int) -> None:
        """The clock starts though nothing is held: gangs that start together are not all complete."""
        if group.waiting_ns and self.clock(group) is None:
            claim = Claim(gang, self.kind, (), now_ns + group.waiting_ns)
            self._claims.make(claim, "Waiting", "waits for the other gangs of its group")

    def hold(self, group: Group, gang: GangState, placed: Sequence[Task], now_ns: int) -> None:
        """Tasks that a transaction placed are held where they are. The first one starts the clock."""
        until_ns = self.clock(group)
        claim = Claim(
            gang,
            self.kind,
            [Slot(task.name, task.node, task) for task in placed],
            now_ns + group.waiting_ns if until_ns is None else until_ns,
        )
        self.changed = True
        held = gang.total_held + len(placed)
        if not self._claims.extend(claim, "Held", f"{held} pods are held until the other members fit"):
            for task in placed:
                self._state.hold(task)
                self._state.unreserve(task)

    def release(self, group: Group, reason: str, message: str) -> None:
        """Everything that a group holds is released, and its clock stops."""
        for gang in self._groups.gangs(group):
            self._claims.end(gang, self.kind, reason, message)

    def take(self, gang: GangState) -> list[Task]:
        """The gang is complete: its held tasks are assumed where they are."""
        held = self.of(gang)
        for task in held:
            self._state.assume_held(task)
        return held

    def expire(self, now_ns: int) -> list[TimeOut]:
        """Groups whose time is up release everything; every pod of theirs without a node is to be annotated (K8)."""
        found: list[TimeOut] = []
        for claim in self._claims.all(self.kind):
            group = self._groups.of(claim.gang)
            if claim.until_ns > now_ns or group is None or self._claims.of(claim.gang, self.kind) is not claim:
                continue
            waiting = [mate for mate in self._groups.gangs(group) if not mate.satisfied]
            self.release(group, "TimedOut", "the waiting time is over; held pods are released")
            found += [self._time_out(mate) for mate in waiting]
        return found

    def _time_out(self, gang: GangState) -> TimeOut:
        waiting = [task for task in gang.tasks.values() if task.status is TaskStatus.PENDING and task.ours]
        waiting.sort(key=lambda task: task.order)
        for task in waiting:
            self._state.time_out(task)
        return TimeOut(gang.key, tuple((task.namespace, task.name, task.uid) for task in waiting))

    # ---- policy

    def occupy(self, claim: Claim) -> None:
        for slot in claim.slots.values():
            if slot.task is not None and slot.task.status is TaskStatus.ASSUMED:
                self._state.hold(slot.task)
            elif slot.task is not None and slot.task.status is TaskStatus.PENDING:
                self._state.restore_hold(slot.task, slot.node)

    def vacate(self, claim: Claim) -> None:
        for task in claim.members:
            if task.status is TaskStatus.HELD:
                self._state.unreserve(task)

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        """No record of this scheduler outlasts the group's waiting time."""
        group = self._groups.of(gang)
        if gang.satisfied or group is None:
            return None
        nodes = pod_slots(gang, record)
        tasks = [task for task in gang.tasks.values() if task.status is TaskStatus.PENDING and task.ours]
        slots = [
            Slot(task.name, nodes[task.name], task)
            for task in sorted(tasks, key=lambda task: task.order)
            if nodes.get(task.name) in self._state.nodes.rows
        ]
        self.changed = True
        return Claim(gang, self.kind, slots, min(record.until, now_ns + group.waiting_ns))

    def is_used(self, claim: Claim) -> bool:
        return claim.gang.satisfied

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        """Only the slots that no longer help are released: the clock runs on, and other members may be held."""
        group = self._groups.of(claim.gang)
        if group is None:
            return Ending(self.ended, "the gang waits for no other gang")
        if claim.slots and not group.holds:
            return Ending(self.ended, "its group has a Strict gang, and holds nothing")
        for slot in list(claim.slots.values()):
            task = slot.task
            if task is None:
                continue
            if task.status is not TaskStatus.HELD:
                del claim.slots[slot.name]
            elif obstacle is not None or not still_fits(self._state, task, slot.node):
                del claim.slots[slot.name]
                self._state.unreserve(task)
                self._state.touch(claim.gang)
        return None
