"""Members of NonStrict gangs that keep their room until the others fit too, and the clock of their groups (K6, K8).

A held task has the status `HELD` and takes its room. When a group's time is up it releases everything, and its pods
are annotated as timed out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.core.claims.claim import Claim, Ending, Slot, pending_slots
from enbloc.engine.core.claims.registry import ClaimPolicy, ClaimRegistry
from enbloc.engine.core.claims.room import still_fits
from enbloc.engine.core.state.groups import Group, Groups
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, held_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.reporter import Reporter
from enbloc.engine.decisions import Decision, TimeOut
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.listing import plural


class Holds(ClaimPolicy):
    kind = ClaimKind.HOLD
    used = "HoldBound"
    is_shared = True

    def __init__(
        self,
        state: State,
        claims: ClaimRegistry,
        groups: Groups,
        reporter: Reporter,
        decide: Callable[[Decision], None],
    ) -> None:
        super().__init__(state, claims)
        self._groups = groups
        self._reporter = reporter
        self._decide = decide

    def time_out(self, now_ns: int) -> bool:
        """Groups whose time is up say so, and their pods are annotated (K8); what they release may help others."""
        expired = self.expire(now_ns)
        for mark in expired:
            gang = self._state.gangs[mark.gang]
            also = [gang.tasks[uid] for _, _, uid in mark.pods]
            self._reporter.report(gang, diagnosis.timed_out(gang), of_gang=True, also=also)
            self._decide(mark)
        return bool(expired)

    def reserve(self, gangs: Sequence[GangState]) -> None:
        for gang in gangs:
            self.note_room_left(gang)

    def holders(self) -> list[Group]:
        """Groups that hold pods."""
        found: dict[int, Group] = {}
        for claim in self._claims.all(self.kind):
            group = self._groups.of(claim.gang) if claim.gang.total_held else None
            if group is not None:
                found[id(group)] = group
        return list(found.values())

    def clock(self, group: Group) -> int | None:
        """When a group's clock started, if it runs: when gangs join, the earliest start counts."""
        return min((claim.clock_ns for claim in self._of_group(group)), default=None)

    def start_clock(self, group: Group, gang: GangState, now_ns: int) -> None:
        """The clock of a Strict group starts though nothing is held: a gang that it needs cannot start."""
        if group.waiting_ns and not group.holds and self.clock(group) is None:
            claim = self._claim(group, gang, (), now_ns)
            self._claims.make(claim, "Waiting", "waits for the other gangs of its group")

    def stand(self, group: Group, stands: bool, now_ns: int) -> None:
        """The clock of a group stands, or runs on from where it stood."""
        group.stands = stands
        for claim in self._of_group(group):
            if stands == bool(claim.stands_ns):
                continue
            claim.clock_ns += now_ns - claim.stands_ns if claim.stands_ns else 0
            claim.stands_ns = now_ns if stands else 0
            self._claims.write(claim.gang, self.kind, "", "")

    def _of_group(self, group: Group) -> list[Claim]:
        found = (self._claims.of(gang, self.kind) for gang in self._groups.gangs(group))
        return [claim for claim in found if claim is not None]

    def _claim(self, group: Group, gang: GangState, slots: Sequence[Slot], now_ns: int) -> Claim:
        first = min(self._of_group(group), key=lambda claim: claim.clock_ns, default=None)
        claim = Claim(gang, self.kind, slots)
        claim.clock_ns = now_ns if first is None else first.clock_ns
        claim.stands_ns = now_ns if first is None and group.stands else first.stands_ns if first is not None else 0
        claim.until_ns = claim.clock_ns + group.waiting_ns
        claim.held = bool(slots)
        return claim

    def hold(self, group: Group, gang: GangState, placed: Sequence[Task], now_ns: int) -> None:
        """Tasks that a transaction placed are held where they are. The first one starts the clock."""
        claim = self._claim(group, gang, [Slot(task.name, task.node, task) for task in placed], now_ns)
        held = gang.total_held + len(placed)
        if not self._claims.extend(
            claim, "Held", f"{plural(held, 'pod')} {'is' if held == 1 else 'are'} held until the other members fit"
        ):
            for task in placed:
                self._state.hold(task)
                self._state.unreserve(task)

    def release(self, group: Group, reason: str, message: str) -> None:
        """Everything that a group holds is released, and its clock stops."""
        for gang in self._groups.gangs(group):
            self._claims.end(gang, self.kind, reason, message)

    def bind_held(self, gang: GangState) -> list[Task]:
        """The gang is complete: its held tasks are assumed where they are."""
        held = held_tasks(gang)
        for task in held:
            self._state.assume_held(task)
        return held

    def expire(self, now_ns: int) -> list[TimeOut]:
        """Groups whose time is up give up every claim; every pod of theirs without a node is to be annotated. How long
        they may wait is what their gangs declare now (K8)."""
        groups: dict[int, tuple[Group, list[Claim]]] = {}
        for claim in self._claims.all(self.kind):
            group = self._groups.of(claim.gang)
            if group is not None:
                groups.setdefault(id(group), (group, []))[1].append(claim)
        found: list[TimeOut] = []
        for group, claims in groups.values():
            until_ns = min(claim.clock_ns for claim in claims) + group.waiting_ns
            stands_ns = max(claim.stands_ns for claim in claims)
            for claim in claims:
                claim.until_ns = 0 if stands_ns else until_ns
            if until_ns <= (stands_ns or now_ns):
                waiting = [mate for mate in self._groups.gangs(group) if not mate.satisfied]
                for kind in (self.kind, ClaimKind.RESERVE, ClaimKind.PREEMPT):
                    for mate in self._groups.gangs(group):
                        self._claims.end(mate, kind, "TimedOut", "the waiting time is over; its room is released")
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
        """The clock of a record that was written before clocks were recorded started no later than now."""
        group = self._groups.of(gang)
        if gang.satisfied or group is None:
            return None
        claim = Claim(gang, self.kind, pending_slots(gang, record, self._state.nodes.rows))
        claim.clock_ns = min(record.clock_ns or record.until_ns - group.waiting_ns, now_ns)
        claim.stands_ns = min(record.until_ns, now_ns) if record.clock_ns else 0
        claim.until_ns = claim.clock_ns + group.waiting_ns
        claim.held = record.held or bool(record.slots)
        return claim

    def is_used(self, claim: Claim) -> bool:
        return claim.gang.satisfied

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        """Only the slots that no longer help are released: the clock runs on, and other members may be held."""
        group = self._groups.of(claim.gang)
        if group is None:
            return Ending(self.kind.ended, "the gang waits for no other gang")
        if claim.held and not group.holds:
            return Ending(self.kind.ended, "its group has a Strict gang, and holds nothing")
        if not claim.held and group.holds:
            return Ending(self.kind.ended, "its group is NonStrict: its clock starts with the first held pod")
        slots = [(slot.task, slot) for slot in claim.slots.values() if slot.task is not None]
        for task, slot in sorted(slots, key=lambda one: one[0].order, reverse=True):  # of too many the last leave (O2)
            if task.status is not TaskStatus.HELD:
                del claim.slots[slot.name]
            elif obstacle is not None or not still_fits(self._state, task, slot.node):
                del claim.slots[slot.name]
                self._state.unreserve(task)
                self._state.touch(claim.gang)
        return None
