"""Nodes that are reserved for members of starving gangs (R2, R4, R5, R7).

A reservation takes no room: its node takes no new tasks but those it is reserved for, so that room accumulates there as
running pods end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from enbloc.engine.core.claims.claim import Claim, Ending, Slot, pod_slots
from enbloc.engine.core.claims.claims import ClaimPolicy, Claims
from enbloc.engine.core.claims.placeholders import make_placeholders
from enbloc.engine.core.claims.room import is_beyond_queue, passes_filters, take_reserved
from enbloc.engine.core.placement.attempt import Placer
from enbloc.engine.core.placement.domain_choices import is_together
from enbloc.engine.core.placement.request import needed_members, reaches_minima
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.resources import total
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import ALL_KINDS, BEYOND_ROOM, EventKind
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.listing import listed, plural


class Reservations(ClaimPolicy):
    kind = ClaimKind.RESERVE
    used = "ReservationUsed"
    ends_with_unit = True
    notes_need_a_start = True

    def __init__(self, state: State, claims: Claims, units: Units) -> None:
        super().__init__(state, claims)
        self._units = units
        self.closing = claims.closing

    def condition_ready(self, gang: GangState) -> bool:
        """R2: occupied plus reserved tasks reach the minima, by role and in total."""
        claim = self._claims.of(gang, self.kind)
        counts = Counter(task.role for task in claim.tasks) if claim is not None else Counter[str]()
        later = {} if gang.covered else gang.spec.later
        if any(counts[role] < template.count for role, template in later.items()):
            return False  # a whole-job gang starts with room for all its waves (D5)
        return reaches_minima(gang, counts)

    # ---- made and ended

    def claim(self, gang: GangState, places: Sequence[tuple[Task, str]], since_ns: int) -> Claim:
        """A claim that reserves nodes for tasks, since then."""
        claim = Claim(gang, self.kind, [Slot(task.name, node, task) for task, node in places])
        claim.clock_ns = since_ns
        return claim

    def make(self, claim: Claim) -> bool:
        """Reserves nodes. `False`: the record would be too long to be written."""
        message = f"starving: room for {plural(len(claim.slots), 'pod')} is reserved on {listed(claim.nodes, 8)}"
        return self._claims.make(claim, "Reserved", message)

    def end(self, gang: GangState, reason: str, message: str) -> None:
        self._claims.end(gang, self.kind, reason, message)

    def post_bind(self, gang: GangState, *, commits: bool) -> None:
        if commits or gang.need.ready:
            self.end(gang, "ReservationUsed", "its pods are bound")
        else:
            self._drop_used(gang)

    # ---- policy

    def occupy(self, claim: Claim) -> None:
        self.closing.occupy(claim)

    def vacate(self, claim: Claim) -> None:
        self.closing.vacate(claim)

    def take(self, placer: Placer, transaction: Transaction, gang: GangState, later: Sequence[Task]) -> None:
        take_reserved(placer, transaction, gang, self.closing.of(gang), later)

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        nodes = pod_slots(gang, record)
        known = [Slot(task.name, nodes[task.name], task) for task in gang.tasks.values() if task.name in nodes]
        slots = [slot for slot in known if slot.waits]  # also those that are held elsewhere meanwhile (K6)
        for role, template in gang.spec.later.items() if not gang.covered else ():
            for task in make_placeholders(self._state, gang, role, template, 0, template.count):
                for node in list(record.places(task.name))[:1]:
                    slots.append(Slot(task.name, node, task))
        claim = Claim(gang, self.kind, slots)
        claim.clock_ns = min(record.clock_ns or now_ns, now_ns)
        return claim if slots else None

    def reviewed_on(self) -> frozenset[EventKind]:
        """What other queues are guaranteed and do not use bounds what its queue may use (V4)."""
        return ALL_KINDS if self._state.queues.guarantees else BEYOND_ROOM

    def is_used(self, claim: Claim) -> bool:
        return claim.gang.need.ready

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        """R7: whether the reservation can still make the gang condition-ready."""
        self._drop_unneeded(claim)
        why = _why_not_waiting(claim, obstacle) or self._why_of_no_use(claim)
        return Ending(self.kind.ended, why) if why else None

    def _why_of_no_use(self, claim: Claim) -> str:
        gang, slots = claim.gang, claim.slots.values()
        own = self._with_members(gang)
        if unfit := sorted({slot.node for slot in slots if not self._holds(slot, own)}):
            return f"reserved nodes cannot take the pods any more: {listed(unfit, 8)}"
        if gang.is_constrained and not is_together(self._state, gang, self.closing.of(gang)):
            return "reserved nodes are in different domains now"
        if is_beyond_queue(self._state, gang, total(task.cls.request for task in claim.tasks)):
            return f"its pods request more than queue {gang.spec.queue} may use"
        is_recreating = any(slot.task is None for slot in slots)
        if not is_recreating and not self.condition_ready(gang):
            return "the pods with reserved nodes are too few for the gang's minimum"
        return ""

    def _drop_unneeded(self, claim: Claim) -> None:
        """The gang became smaller: nodes of pods that it no longer needs are open at once."""
        unneeded = claim.beyond_templates()
        absent = [slot for slot in claim.slots.values() if slot.task is None]
        unneeded += absent if absent and self.condition_ready(claim.gang) else _beyond_minima(claim)
        self._drop(claim, unneeded)

    def _drop_used(self, gang: GangState) -> None:
        """Some of its lost members were replaced: the nodes of the others stay closed."""
        claim = self._claims.of(gang, self.kind)
        if claim is not None:
            self._drop(claim, [slot for slot in claim.slots.values() if slot.task is not None and not slot.waits])

    def _drop(self, claim: Claim, slots: Sequence[Slot]) -> None:
        for slot in slots:
            del claim.slots[slot.name]
        if slots:
            self.vacate(Claim(claim.gang, self.kind, slots))

    def _with_members(self, gang: GangState) -> Mapping[str, Mapping[int, int]]:
        """Node → what is reserved there for gangs that start together, and what members have there that these need: no
        room that will come free (R4)."""
        tasks: dict[str, list[Task]] = {}
        for mate in self._units.partners(gang):
            for task, node in [*self.closing.tasks_of(mate), *((task, task.node) for task in needed_members(mate))]:
                tasks.setdefault(node, []).append(task)
        return {node: total(task.cls.request for task in on_node) for node, on_node in tasks.items()}

    def _holds(self, slot: Slot, own: Mapping[str, Mapping[int, int]]) -> bool:
        """Whether a node still passes the filters, free room aside, and has as much as is reserved on it; with what the
        gang's `own` members have there as much as is reserved for it."""
        nodes = self._state.nodes
        if slot.task is None:
            return slot.node in nodes.rows
        if not passes_filters(self._state, slot.task, slot.node):
            return False
        row = nodes.rows[slot.node]
        sums = (self.closing.on(slot.node), own[slot.node])
        return all(amount <= nodes.allocatable[column, row] for amounts in sums for column, amount in amounts.items())


def _why_not_waiting(claim: Claim, obstacle: Diagnosis | None) -> str:
    if claim.gang.status.finished:
        return "the gang has finished"
    if obstacle is not None:
        return f"the gang cannot start: {obstacle.message}"
    left = [slot.name for slot in claim.slots.values() if slot.task is not None and not slot.waits]
    return f"pods with a reserved node do not wait any more: {listed(left, 8)}" if left else ""


def _beyond_minima(claim: Claim) -> list[Slot]:
    """Slots of pods that wait and without which the minima of the present wave are reached: the last in order (O2).
    Pods that are held count where they are held (K6)."""
    gang = claim.gang
    waiting = [
        (slot, slot.task)
        for slot in claim.slots.values()
        if slot.task is not None and slot.task.status in WAITS and slot.is_for_member_of(gang)
        if gang.in_wave(slot.task.role) and slot.task.role not in gang.spec.later
    ]
    counts, minima = Counter(gang.need.found), gang.need.minima
    counts.update(task.role for _, task in waiting)
    spare = -gang.need.short_of(counts)
    found: list[Slot] = []
    for slot, task in sorted(waiting, key=lambda entry: entry[1].order, reverse=True) if spare > 0 else ():
        if len(found) < spare and counts[task.role] > minima.get(task.role, 0):
            counts[task.role] -= 1
            found.append(slot)
    return found
