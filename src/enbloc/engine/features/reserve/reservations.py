"""Nodes that are reserved for members of starving gangs (R2, R4, R5, R7).

A reservation takes no room: its node takes no new tasks but those it is reserved for, so that room accumulates there as
running pods end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from enbloc.engine.core.claims.claim import Claim, Ending, Slot, pod_slots
from enbloc.engine.core.claims.placeholders import make_placeholders
from enbloc.engine.core.claims.registry import ClaimRegistry
from enbloc.engine.core.claims.room import passes_filters
from enbloc.engine.core.placement.domain_choices import is_together
from enbloc.engine.core.placement.request import needed_members, replacements
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.resources import Bools, Ints, total
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import ALL_KINDS, BEYOND_ROOM, EventKind
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import GangKey
from enbloc.listing import listed, plural

ENDLESS = 2**63 - 1
"""The due time of a reservation behind pods of unknown run time."""


class Reservations:
    kind = ClaimKind.RESERVE
    ended = "ReservationEnded"
    used = "ReservationUsed"

    def __init__(self, state: State, claims: ClaimRegistry) -> None:
        self._state = state
        self._claims = claims
        self._gangs_on: dict[str, dict[GangKey, int]] = {}
        """Node → gangs that reserve it, and with how many slots."""
        self.due_ns: dict[GangKey, int] = {}
        """When each gang's reservation is due: the gang could start then (see `forecast`)."""
        self.version = 0
        """Goes up with every change."""
        self._mask: tuple[tuple[int, int, int], Bools] | None = None

    def __bool__(self) -> bool:
        return self._claims.has(self.kind)

    def of(self, gang: GangState) -> Mapping[str, str]:
        """Task UID → node."""
        claim = self._claims.of(gang, self.kind)
        return claim.places if claim is not None else {}

    def tasks_of(self, gang: GangState) -> list[tuple[Task, str]]:
        """Each task that nodes are reserved for, pods of later waves included, and its node."""
        claim = self._claims.of(gang, self.kind)
        slots = claim.slots.values() if claim is not None else ()
        return [(slot.task, slot.node) for slot in slots if slot.task is not None]

    def gangs(self) -> list[GangState]:
        return [claim.gang for claim in self._claims.all(self.kind)]

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
        found: list[Task] = []
        for key in self._gangs_on.get(node, ()):
            if key in exclude:
                continue
            gang = self._state.gangs.get(key)
            claim = self._claims.of(gang, self.kind) if gang is not None else None
            if claim is not None:
                found += [slot.task for slot in claim.slots.values() if slot.node == node and slot.task is not None]
        return total(task.cls.request for task in found)

    def since(self, node: str, exclude: frozenset[GangKey]) -> int | None:
        """When the oldest reservation on a node was made, the gangs in `exclude` aside; `None`: there is none."""
        gangs = [self._state.gangs.get(key) for key in self._gangs_on.get(node, ()) if key not in exclude]
        claims = [self._claims.of(gang, self.kind) for gang in gangs if gang is not None]
        return min((claim.clock_ns for claim in claims if claim is not None), default=None)

    def kept_from(self, gang: GangState, now_ns: int) -> Ints:
        """The free room, by column, on nodes that other gangs reserve and that the gang may not use: those are not of
        lower priority (R5), and it would run past the time when their reservations are due."""
        nodes, run_time_ns = self._state.nodes, gang.run_time_ns
        own = self.lower_than(gang.priority) | {gang.key}
        rows = [
            nodes.rows[node]
            for node, keys in self._gangs_on.items()
            if node in nodes.rows
            and any(
                key not in own and (run_time_ns is None or self.due_ns.get(key, 0) < now_ns + run_time_ns)
                for key in keys
            )
        ]
        found: Ints = np.maximum(nodes.free[:, rows], 0).sum(axis=1)
        return found

    def condition_ready(self, gang: GangState) -> bool:
        """R2: occupied plus reserved tasks reach the minima, by role and in total."""
        claim = self._claims.of(gang, self.kind)
        counts = Counter(task.role for task in claim.tasks) if claim is not None else Counter[str]()
        later = {} if gang.covered else gang.spec.later
        if any(counts[role] < template.count for role, template in later.items()):
            return False  # a whole-job gang starts with room for all its waves (D5)
        return reaches_minima(gang, counts)

    # ---- closed nodes

    def closed_to(
        self, gang: GangState, task: Task, now_ns: int | None, exclude: frozenset[GangKey] = frozenset()
    ) -> Bools | None:
        """R5: the rows that other gangs reserve. BestEffort tasks may use any; so may a task that ends before the
        reservation is due, where `now_ns` is given (R8)."""
        if not self._gangs_on or task.cls.best_effort:
            return None
        ends_ns = None if now_ns is None or task.run_time_ns is None else now_ns + task.run_time_ns
        if ends_ns is None and self._claims.of(gang, self.kind) is None and not exclude:
            return self._all_rows()
        found = np.zeros(self._state.nodes.count, np.bool_)
        for node, keys in self._gangs_on.items():
            row = self._state.nodes.rows.get(node)
            others = [key for key in keys if key != gang.key and key not in exclude]
            if row is None or not others:
                continue
            found[row] = ends_ns is None or any(self.due_ns.get(key, 0) < ends_ns for key in others)
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

    # ---- policy

    def occupy(self, claim: Claim) -> None:
        if self._claims.of(claim.gang, self.kind) is not claim:
            return  # a pod that was recreated takes its slot: the node is reserved already
        for slot in claim.slots.values():
            gangs = self._gangs_on.setdefault(slot.node, {})
            gangs[claim.gang.key] = gangs.get(claim.gang.key, 0) + 1
        self.version += 1

    def vacate(self, claim: Claim) -> None:
        key = claim.gang.key
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

    @property
    def reviewed_on(self) -> frozenset[EventKind]:
        """What other queues are guaranteed and do not use bounds what its queue may use (V4)."""
        return ALL_KINDS if self._state.queues.guarantees else BEYOND_ROOM

    def is_used(self, claim: Claim) -> bool:
        return claim.gang.ready()

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        """R7: whether the reservation can still make the gang condition-ready."""
        gang = claim.gang
        self._drop_unneeded(claim)
        if gang.status.finished:
            return Ending(self.ended, "the gang has finished")
        if obstacle is not None:
            return Ending(self.ended, f"the gang cannot start: {obstacle.message}")
        slots = claim.slots.values()
        if left := [slot.name for slot in slots if slot.task is not None and not slot.waits]:
            return Ending(self.ended, f"pods with a reserved node do not wait any more: {listed(left, 8)}")
        own = self._with_members(gang)
        if unfit := sorted({slot.node for slot in slots if not self._holds(slot, own)}):
            return Ending(self.ended, f"reserved nodes cannot take the pods any more: {listed(unfit, 8)}")
        if gang.is_constrained and not is_together(self._state, gang, self.of(gang)):
            return Ending(self.ended, "reserved nodes are in different domains now")
        if is_beyond_queue(self._state, gang, total(task.cls.request for task in claim.tasks)):
            return Ending(self.ended, f"its pods request more than queue {gang.spec.queue} may use")
        recreating = sum(slot.task is None for slot in claim.slots.values())
        if not recreating and not self.condition_ready(gang):
            return Ending(self.ended, "the pods with reserved nodes are too few for the gang's minimum")
        return None

    def _drop_unneeded(self, claim: Claim) -> None:
        """The gang became smaller: nodes of pods that it no longer needs are open at once."""
        unneeded = claim.beyond_templates()
        absent = [slot for slot in claim.slots.values() if slot.task is None]
        unneeded += absent if absent and self.condition_ready(claim.gang) else _beyond_minima(claim)
        self._drop(claim, unneeded)

    def drop_used(self, gang: GangState) -> None:
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
        for mate in self._claims.mates(gang):
            for task, node in [*self.tasks_of(mate), *((task, task.node) for task in needed_members(mate))]:
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
        sums = (self.on(slot.node), own[slot.node])
        return all(amount <= nodes.allocatable[column, row] for amounts in sums for column, amount in amounts.items())


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
    counts, minima = Counter(gang.found_by_role()), gang.minima()
    counts.update(task.role for _, task in waiting)
    spare = -gang.short_of(counts)
    found: list[Slot] = []
    for slot, task in sorted(waiting, key=lambda entry: entry[1].order, reverse=True) if spare > 0 else ():
        if len(found) < spare and counts[task.role] > minima.get(task.role, 0):
            counts[task.role] -= 1
            found.append(slot)
    return found


def reaches_minima(gang: GangState, more: Mapping[str, int]) -> bool:
    """Whether a gang's minima would be reached with `more` tasks by role, and what earlier waves lost be replaced. Each
    wave is a gang of its own (D3): it is enough to replace that where the present one lacks pods."""
    lost = Counter(task.role for task in replacements(gang))
    if lost and (gang.missing() or any(more.get(role, 0) < count for role, count in lost.items())):
        return all(more.get(role, 0) >= count for role, count in lost.items())
    counts = gang.found_by_role()
    for role, count in more.items():
        counts[role] = counts.get(role, 0) + count
    return gang.short_of(counts) <= 0 and all(counts.get(role, 0) >= least for role, least in gang.minima().items())


def is_beyond_queue(state: State, gang: GangState, asked: Mapping[int, int]) -> bool:
    """Whether a gang's queue could not use what is asked for even if it used nothing else."""
    queues, queue = state.queues, state.queue_of(gang)
    for place in queue.ancestors:
        if any(asked.get(column, 0) > limit for column, limit in place.limits.items()):
            return True
    if not queues.guarantees:
        return False
    totals, kept = state.nodes.totals(), queues.guaranteed_to_others(queue)
    return any(kept[column] and amount > int(totals[column]) - int(kept[column]) for column, amount in asked.items())
