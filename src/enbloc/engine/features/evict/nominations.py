"""Room that is freed for a gang by evictions: its members are nominated to it until they are bound or give up (P3).

A nominated task waits like any other and has its room and its queue's use already, though the victims may still be
terminating. When they are gone the gang is placed, there or anywhere else it fits by then. It is recorded, too, which
gangs were evicted for it: they evict none of its pods in turn, as long as it exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter

from enbloc.engine.core.claims.claim import Claim, Ending, Slot, pending_slots
from enbloc.engine.core.claims.claims import ClaimPolicy, Claims
from enbloc.engine.core.claims.room import will_fit
from enbloc.engine.core.placement.request import reaches_minima
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.resources import total
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import EventKind
from enbloc.gangs.claim_records import EVICTED_GANGS, ClaimKind, Record, digest_of
from enbloc.gangs.model import GangKey
from enbloc.listing import listed


class EvictedGangs(ClaimPolicy):
    """Which gangs were evicted for a gang, by digests: the victims may be gone, and come back under their names. It is
    recorded like a claim, so that it counts after a restart too, and sets no room aside."""

    kind = ClaimKind.EVICTED
    used = "EvictionsForgotten"
    is_shared = True
    sets_room_aside = False

    def reviewed_on(self) -> frozenset[EventKind]:
        return frozenset()

    def has(self, gang: GangState, victim: GangKey) -> bool:
        """Whether pods of the victim were evicted for the gang."""
        claim = self._claims.of(gang, self.kind)
        return claim is not None and _digest(victim) in claim.evicted

    def in_turn(self, unit: Sequence[GangState], tasks: Iterable[Task]) -> bool:
        """Whether one of the gangs that start together was evicted for the gang of one of these tasks."""
        others = {task.gang.key: task.gang for task in tasks}
        return any(self.has(other, gang.key) for gang in unit for other in others.values())

    def claim(self, gang: GangState, victims: Iterable[GangKey]) -> Claim | None:
        """The record that pods of the victims, too, are evicted for the gang; `None`: it says so already."""
        known = self._claims.of(gang, self.kind)
        before = known.evicted if known is not None else ()
        new = [digest for digest in dict.fromkeys(map(_digest, victims)) if digest not in before]
        if not new:
            return None
        claim = Claim(gang, self.kind, ())
        claim.evicted = (*before, *new)[-EVICTED_GANGS:]
        return claim

    def make(self, claim: Claim) -> bool:
        """Records it. `False`: the record would be too long."""
        return self._claims.make(claim, "", "")

    # ---- policy

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        claim = Claim(gang, self.kind, ())
        claim.evicted = record.evicted or ()
        return claim if claim.evicted else None


def _digest(key: GangKey) -> str:
    return digest_of("/".join(key))


class Nominations(ClaimPolicy):
    kind = ClaimKind.PREEMPT
    used = "PreemptionSucceeded"
    status = TaskStatus.NOMINATED
    ends_with_unit = True
    frees = (ClaimKind.WAVE,)

    def __init__(self, state: State, claims: Claims, units: Units, evicted: EvictedGangs) -> None:
        super().__init__(state, claims)
        self._units = units
        self._evicted = evicted

    def post_bind(self, gang: GangState, *, commits: bool) -> None:
        if self.claim_of(gang) is not None and (gang.need.ready or not self._claims.nominated(gang)):
            self._claims.end(gang, self.kind, "PreemptionSucceeded", "its pods are bound")

    def claim(self, gang: GangState, places: Sequence[tuple[Task, str]]) -> Claim:
        """A claim for tasks on these nodes, to be made before the victims leave."""
        return Claim(gang, self.kind, [Slot(task.name, node, task) for task, node in places])

    def make(self, claim: Claim, message: str) -> bool:
        """Claims the room. `False`: it could not be recorded."""
        return self._claims.make(claim, "Preempting", message)

    def lift(self, transaction: Transaction, gang: GangState) -> list[tuple[Task, int]]:
        """Takes a gang's nominated tasks off their nodes, so that the gang can be placed anew with that room. Tasks of
        other gangs that are nominated there, and whose room is still to be freed, are taken off too, and returned: the
        room that is there already was not freed for them (P3)."""
        nodes = self._state.nodes
        own = {task.node: nodes.rows[task.node] for task in self._claims.nominated(gang)}
        for task in self._claims.nominated(gang):
            transaction.lift(task)
        aside = [(task, row) for name, row in own.items() for task in self._to_be_freed(name)]
        for task, _ in aside:
            transaction.lift(task)
        return aside

    def _to_be_freed(self, node: str) -> list[Task]:
        """Nominated tasks whose room on a node is used by pods that were evicted for their gangs and have not left."""
        there = self._state.stateful.assigned_to(node)
        leaving = [task for task in there if task.status is TaskStatus.RELEASING]
        waiting: dict[GangKey, list[Task]] = {}
        for task in there if leaving else ():
            if task.status is TaskStatus.NOMINATED:
                waiting.setdefault(task.gang.key, []).append(task)
        return [task for tasks in waiting.values() for task in self._within(leaving, tasks)]

    def _within(self, leaving: Sequence[Task], tasks: Sequence[Task]) -> list[Task]:
        """Of tasks of one gang those that fit into what pods that were evicted for it still use."""
        mates = self._units.partners(tasks[0].gang)
        used = total(
            task.cls.request for task in leaving if any(self._evicted.has(one, task.gang.key) for one in mates)
        )
        found: list[Task] = []
        for task in sorted(tasks, key=attrgetter("name")):
            if all(used.get(column, 0) >= amount for column, amount in task.cls.request):
                found.append(task)
                for column, amount in task.cls.request:
                    used[column] -= amount
        return found

    # ---- policy

    def occupy(self, claim: Claim) -> None:
        for slot in claim.slots.values():
            if slot.task is not None and slot.task.status is TaskStatus.PENDING:
                self._state.nominate(slot.task, slot.node)

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        slots = pending_slots(gang, record, self._state.nodes.rows)
        return Claim(gang, self.kind, slots) if slots else None

    def is_used(self, claim: Claim) -> bool:
        return claim.gang.need.ready

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        for slot in list(claim.slots.values()):
            if slot.task is not None and slot.task.status is not TaskStatus.NOMINATED:
                del claim.slots[slot.name]
        if claim.gang.status.finished or not claim.slots:
            return Ending(self.kind.ended, "no pod of the gang waits for the room")
        if obstacle is not None:
            return Ending(self.kind.ended, f"the gang cannot start: {obstacle.message}")
        if not self._reaches_minima(claim):
            return Ending(self.kind.ended, "the gang needs more than the room that is being freed for it")
        if not self._has_later_waves(claim.gang):
            return Ending(self.kind.ended, "room is not set aside any more for all pods of its later waves")
        if unfit := sorted({task.node for task in claim.tasks if not will_fit(self._state, task, task.node)}):
            return Ending(self.kind.ended, f"its pods will not fit once terminating pods are gone: {listed(unfit, 8)}")
        return None

    def _reaches_minima(self, claim: Claim) -> bool:
        """Whether the minima are reached with the nominated pods; its minimum was raised, or some of them are gone, if
        not. A pod that is being recreated is waited for."""
        gang, wave = claim.gang, self._claims.of(claim.gang, ClaimKind.WAVE)
        if gang.satisfied or any(slot.task is None for slot in claim.slots.values()):
            return True
        if all(task.role in gang.ran for task in claim.tasks):  # lost members of an earlier wave need no later one (D3)
            return True
        return reaches_minima(gang, Counter(task.role for task in [*claim.tasks, *(wave.tasks if wave else ())]))

    def _has_later_waves(self, gang: GangState) -> bool:
        """Whether a whole-job gang that has not started has room for its later waves, too (D5)."""
        if gang.covered or not gang.spec.later:
            return True
        wave = self._claims.of(gang, ClaimKind.WAVE)
        known = Counter(task.role for task in wave.tasks) if wave is not None else Counter[str]()
        return all(known[role] >= template.count for role, template in gang.spec.later.items())
