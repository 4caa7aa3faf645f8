"""All claims: who holds room. Makes, adopts, reviews and releases them, whatever their kind.

A gang has at most one claim of a kind. A claim holds room in one of two ways: it takes room on its nodes for its tasks
(held, nominated, or placeholders), or it closes its nodes to the tasks of other gangs (`ClosedNodes`). How kinds differ
else, their policies say. What is written down of claims is the part of `records`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from enbloc.engine.core.claims.claim import RECREATION_NS, Claim, Ending, Slot
from enbloc.engine.core.claims.closed_nodes import ClosedNodes
from enbloc.engine.core.claims.placeholders import is_placeholder
from enbloc.engine.core.claims.records import ClaimRecords
from enbloc.engine.core.claims.room import is_beyond_queue
from enbloc.engine.core.commits import Commits
from enbloc.engine.core.feature import Feature, Unsignable
from enbloc.engine.core.obstacles import Obstacles
from enbloc.engine.core.placement.attempt import Placer
from enbloc.engine.core.placement.request import request_of
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.resources import least, total
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task, TaskStatus
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import RESERVED, Diagnosis
from enbloc.engine.decisions import Decision, SetAside
from enbloc.engine.events import ALL_KINDS, EventKind
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import GangKey
from enbloc.listing import listed

_OWN_USE: Final = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.HELD})
_NO_LONGER_HOLDS: Final = Ending("", "what was claimed before the restart no longer holds")


class ClaimPolicy(Feature):
    """What one kind of claim does differently."""

    kind: ClaimKind
    used: str
    """The event reason of a claim whose tasks were bound."""
    status: TaskStatus | None = None
    """What its tasks are on the nodes where they take room, if they are members of the gang."""
    sets_room_aside: bool = True
    """Whether its claims hold room; those that do not are reviewed when their own gang changed."""
    waits_for_members = False
    """Whether its claims last while gangs that start together lack members (K6)."""
    ends_with_unit = False
    """Whether a claim that no longer helps ends with those of all gangs that start together."""
    frees: tuple[ClaimKind, ...] = ()
    """The kinds of claims for which room is freed together with it."""
    is_shared = False
    """Whether gangs with such a claim are equal to others that ask for the same."""
    notes_need_a_start = False
    """Whether what a gang says of a claim that it does not have is said only while it could be made."""

    def __init__(self, state: State, claims: Claims) -> None:
        self._state = state
        self._claims = claims
        claims.add_policy(self)

    def claim_of(self, gang: GangState) -> Claim | None:
        return self._claims.of(gang, self.kind)

    def reviewed_on(self) -> frozenset[EventKind]:
        """The cluster events that could invalidate claims of this kind."""
        return ALL_KINDS

    def occupy(self, claim: Claim) -> None:
        """A claim is stored: takes its room, if its kind does."""

    def vacate(self, claim: Claim) -> None:
        """A claim, or some of its slots, is dropped: gives back what room they still have."""
        for task in claim.members:
            if task.status is self.status:
                self._state.unreserve(task)

    def lift(self, transaction: Transaction, gang: GangState) -> list[tuple[Task, int]]:
        """An attempt for the gang begins: its tasks leave the room that they claim. Returns tasks of other gangs that
        leave theirs meanwhile."""
        return []

    def take(self, placer: Placer, transaction: Transaction, gang: GangState, later: Sequence[Task]) -> None:
        """Places tasks of the gang, or of its `later` waves, where room is claimed for them, as far as they fit."""

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        """The claim of a record from before a restart, as far as it still holds."""
        raise NotImplementedError

    def is_used(self, claim: Claim) -> bool:
        """Whether the gang has what the claim was for."""
        return False

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        """Drops slots that no longer help; an ending if the whole claim does not. `obstacle`: what else keeps the gang
        from being attempted."""
        return None


class Claims(Feature):
    def __init__(
        self, state: State, units: Units, obstacles: Obstacles, commits: Commits, decide: Callable[[Decision], None]
    ) -> None:
        self._state = state
        self._units = units
        self._obstacles = obstacles
        self._commits = commits
        self.records = ClaimRecords(decide)
        self.closing = ClosedNodes(state)
        self._nominating: ClaimPolicy | None = None
        self._policies: dict[ClaimKind, ClaimPolicy] = {}
        self._claims: dict[ClaimKind, dict[GangKey, Claim]] = {kind: {} for kind in ClaimKind}
        self._aside: list[dict[GangKey, Claim]] = []
        """Those that hold room."""
        self._recreating: dict[tuple[GangKey, ClaimKind], int] = {}
        """Claims with slots whose pods are being recreated: when the first of these slots is given up."""
        self._notes: dict[GangKey, dict[ClaimKind, str]] = {}
        """What gangs say of claims that they do not have, until they start."""

    def add_policy(self, policy: ClaimPolicy) -> None:
        """Claims of a kind without a policy are not made, and their records are not adopted."""
        self._policies[policy.kind] = policy
        if policy.sets_room_aside:
            self._aside.append(self._claims[policy.kind])
        if policy.status is TaskStatus.NOMINATED:
            self._nominating = policy

    # ---- queries

    def of(self, gang: GangState, kind: ClaimKind) -> Claim | None:
        return self._claims[kind].get(gang.key)

    def all(self, kind: ClaimKind) -> list[Claim]:
        return list(self._claims[kind].values())

    def has(self, kind: ClaimKind) -> bool:
        return bool(self._claims[kind])

    def has_any(self, gang: GangState) -> bool:
        """Whether room is set aside for a gang."""
        return any(gang.key in claims for claims in self._aside)

    def note(self, gang: GangState, kind: ClaimKind, text: str) -> bool:
        """Sets what a gang says of a claim that it does not have; empty: nothing. Whether that is new."""
        notes = self._notes.setdefault(gang.key, {})
        was = notes.pop(kind, "")
        if text:
            notes[kind] = text
        return was != text

    def drop_notes(self, gang: GangState) -> None:
        """Nothing is noted of the gang any more."""
        self._notes.pop(gang.key, None)

    def placeholders(self, gang: GangState) -> list[Task]:
        """What has room for pods of a gang that do not exist yet (D5)."""
        found = (claims.get(gang.key) for claims in self._claims.values())
        return [task for claim in found if claim is not None for task in claim.tasks if is_placeholder(task)]

    def nominated(self, gang: GangState) -> list[Task]:
        """The nominated tasks of a gang: they wait, and have room on a node."""
        claim = self._nominating.claim_of(gang) if self._nominating is not None else None
        return [task for task in claim.tasks if task.status is TaskStatus.NOMINATED] if claim is not None else []

    def lift(self, transaction: Transaction, gang: GangState) -> list[tuple[Task, int]]:
        """Within a transaction: tasks of the gang leave the room that they claim while they wait. Tasks of other gangs
        that leave theirs meanwhile are returned, with their rows: they are to be put back."""
        return [one for policy in self._policies.values() for one in policy.lift(transaction, gang)]

    def take(
        self, placer: Placer, transaction: Transaction, gang: GangState, later: Sequence[Task] = ()
    ) -> list[tuple[Task, int]]:
        """The same, and its tasks, with pods of `later` waves, are placed where nodes are reserved for them (R7)."""
        if not any(self._claims.values()):  # most attempts
            return []
        lifted = self.lift(transaction, gang)
        for policy in self._policies.values():
            policy.take(placer, transaction, gang, later)
        return lifted

    def every(self) -> Iterator[Claim]:
        """All claims that set room aside."""
        return chain.from_iterable(claims.values() for claims in self._aside)

    def due(self) -> int | None:
        """When the first claim expires, or the first slot whose pod was not recreated in time."""
        ends = [claim.until_ns for claim in self.every() if claim.until_ns]
        return min([*ends, *self._recreating.values()], default=None)

    def _obstacle(self, gang: GangState, policy: ClaimPolicy) -> Diagnosis | None:
        """What makes a claim of some kind useless to a gang."""
        return self._obstacles.of_claim(gang, waits_for_members=policy.waits_for_members)

    # ---- points of the protocol

    def never_fits(self, gang: GangState) -> Diagnosis | None:
        """Its queue could not use what its minima and its later waves request even if it used nothing else."""
        queues, queue = self._state.queues, self._state.queue_of(gang)
        if not queues.guarantees and not any(place.limits for place in queue.ancestors):
            return None
        request, later = request_of(gang), self.placeholders(gang)
        roles = {placeholder.role for placeholder in later}
        tasks = [task for task in gang.tasks.values() if task.status in _OWN_USE]
        tasks += [task for task in request.needed if task.role not in roles]
        rest = least([task.cls.request for task in request.rest], request.short)
        asked = total([*(task.cls.request for task in [*tasks, *later]), tuple(rest.items())])
        return diagnosis.beyond_queue(gang) if is_beyond_queue(self._state, gang, asked) else None

    def sign(self, gang: GangState) -> Hashable:
        """A gang with room of its own is equal to no other. Its priority decides which closed nodes it uses (R5)."""
        if any(gang.key in self._claims[kind] for kind, policy in self._policies.items() if not policy.is_shared):
            return Unsignable(tuple(self.closing.of(gang).items()))
        return gang.priority if self.closing else 0

    def separates_run_times(self) -> bool:
        return bool(self.closing)

    def constrains_by_order(self) -> bool:
        return bool(self.closing)

    def reserve(self, gangs: Sequence[GangState]) -> None:
        """Room that members have on other nodes than those where they are bound now, or that are not needed, is free:
        gangs that were tried before are woken (G9)."""
        takes_room = [policy for policy in self._policies.values() if policy.status is not None]
        claims = [claim for policy in takes_room for gang in gangs if (claim := policy.claim_of(gang)) is not None]
        for slot in [slot for claim in claims for slot in claim.slots.values()]:
            if slot.task is not None and slot.task.node != slot.node:
                self._state.events.add_room_freed(slot.node)
                self._state.events.add(EventKind.QUEUE_USES_LESS)

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        if any(one.reason == RESERVED for one in why.reasons):
            for other in self.closing.gangs():
                if other is not gang:
                    yield other, "has nodes reserved that it could use"

    def about_room(self, gang: GangState) -> Iterator[str]:
        """Why it has no claim: it was released for another gang (K12), or could not be made (R6), which is said only
        while nodes would be reserved for it. Else where its claims are."""
        for kind, note in self._notes.get(gang.key, {}).items():
            policy = self._policies[kind]
            if not policy.notes_need_a_start or self._obstacle(gang, policy) is None:
                yield note
        reserved = self.closing.of(gang)
        nodes = sorted({*reserved.values(), *(task.node for task in self.nominated(gang))})
        if nodes:
            yield f"room {'is reserved' if reserved else 'is being freed'} for it on {listed(nodes, 5)}"

    # ---- made and ended

    def make(self, claim: Claim, reason: str, message: str) -> bool:
        """Stores a claim in place of the gang's earlier one of that kind. `False`: it cannot be recorded."""
        if not self.records.fit([claim]):
            return False
        known = self._claims[claim.kind].pop(claim.gang.key, None)
        if known is not None:
            self._policies[claim.kind].vacate(known)
        self._store(claim)
        self._state.touch(claim.gang)  # with room of its own it is no longer equal to other gangs
        self.records.write(claim.gang, claim.kind, claim, reason, message)
        return True

    def extend(self, claim: Claim, reason: str, message: str) -> bool:
        """Adds the slots of a claim to the gang's claim of that kind. `False`: it cannot be recorded."""
        known = self.of(claim.gang, claim.kind)
        slots = [*(known.slots.values() if known is not None else ()), *claim.slots.values()]
        if not self.records.fit([Claim(claim.gang, claim.kind, slots, claim.until_ns)]):
            return False
        if known is None:
            self._store(claim)
        else:
            known.slots.update(claim.slots)
            self._policies[claim.kind].occupy(claim)
        self.write(claim.gang, claim.kind, reason, message)
        return True

    def _store(self, claim: Claim) -> None:
        self._claims[claim.kind][claim.gang.key] = claim
        self._policies[claim.kind].occupy(claim)

    def write(self, gang: GangState, kind: ClaimKind, reason: str, message: str) -> None:
        """Decides that the record of a gang's claim is written as the claim is now."""
        self.records.write(gang, kind, self.of(gang, kind), reason, message)

    def end(self, gang: GangState, kind: ClaimKind, reason: str, message: str) -> bool:
        """Releases a gang's claim of a kind; `False`: it has none."""
        if not self._drop(gang, kind):
            return False
        self.write(gang, kind, reason, message)
        return True

    def _drop(self, gang: GangState, kind: ClaimKind) -> bool:
        claim = self._claims[kind].pop(gang.key, None)
        if claim is None:
            return False
        self._recreating.pop((gang.key, kind), None)
        self._policies[kind].vacate(claim)
        if self._state.gangs.get(gang.key) is gang:
            self._state.touch(gang)
        return True

    def refused(self, decision: Decision, uid: str) -> None:
        if isinstance(decision, SetAside) and self.records.refused(decision):
            gang = self._state.gangs.get(decision.gang)
            if gang is not None:
                self._drop(gang, decision.kind)
                self._state.touch(gang)

    def gang_gone(self, gang: GangState) -> None:
        for kind in ClaimKind:
            self._drop(gang, kind)
            self.records.forget((gang.key, kind))
        self._notes.pop(gang.key, None)

    # ---- every cycle

    def cycle_begins(self, now_ns: int) -> None:
        """Before gangs are woken: in the first cycle records are adopted, and claims that can no longer do what they
        are for end (R7, P3)."""
        recorded = [gang for gang in self._state.dirty.values() if gang.status.claims]
        for gang in self._changed_with((*recorded, *(claim.gang for claim in self.every()))):
            self._commits.update(gang)
        for gang, kind in [(one, kind) for one in recorded for kind in self._adopt(one, now_ns)]:
            if not gang.need.ready:
                self._end_of_group(gang, kind, _NO_LONGER_HOLDS._replace(reason=kind.ended))
        self.records.is_first_cycle = False
        for policy in self._policies.values():
            for claim in self._to_review(policy, now_ns):
                self._review(claim, now_ns)

    def _changed_with(self, gangs: Iterable[GangState]) -> list[GangState]:
        """Which gangs of their groups changed: whether claims still help depends on those that are satisfied, too."""
        found = {mate.key: mate for gang in gangs for mate in self._units.mates(gang) if mate.key in self._state.dirty}
        return list(found.values())

    def _adopt(self, gang: GangState, now_ns: int) -> Iterator[ClaimKind]:
        """Makes claims of the gang's records. Returns the kinds of which none is left."""
        for kind, record in self.records.found(gang):
            policy, named = self._policies.get(kind), claim_records.with_nodes(record, self._state.nodes.rows)
            claim = policy.adopt(gang, named, now_ns) if policy is not None else None
            if claim is not None:
                self._store(claim)
            else:
                self.write(gang, kind, kind.ended, _NO_LONGER_HOLDS.message)
                yield kind

    def _to_review(self, policy: ClaimPolicy, now_ns: int) -> Iterator[Claim]:
        """The claims of a kind that may have become useless: by an event, by time, or since a gang changed."""
        claims, dirty = self._claims[policy.kind], self._state.dirty
        if not claims:
            return
        everything = self._state.events.any_of(policy.reviewed_on())
        for claim in (
            list(claims.values()) if policy.sets_room_aside else [claims[key] for key in dirty if key in claims]
        ):
            if everything or self._is_due(claim, now_ns) or self._changed_with([claim.gang]):
                yield claim

    def _is_due(self, claim: Claim, now_ns: int) -> bool:
        given_up_ns = self._recreating.get((claim.gang.key, claim.kind))
        return 0 < claim.until_ns <= now_ns or (given_up_ns is not None and given_up_ns <= now_ns)

    def _review(self, claim: Claim, now_ns: int) -> None:
        gang, policy = claim.gang, self._policies[claim.kind]
        if self.of(gang, claim.kind) is not claim:
            return  # ended together with the claim of another gang of its group
        if policy.is_used(claim):
            self.end(gang, claim.kind, policy.used, "its pods are bound")
            return
        if claim.kind.names_pods:
            self._match_pods(claim, now_ns)
        obstacle = self._obstacle(gang, policy)
        if obstacle is not None and (gang.key, claim.kind) in self._recreating and obstacle.lacks_members:
            obstacle = None
        ending = policy.review(claim, now_ns, obstacle)
        if ending is None:
            self._keep(claim)
            return
        for mate in self._end_of_group(gang, claim.kind, ending):
            for freed in (self.of(mate, kind) for kind in policy.frees):
                if freed is not None:
                    self._review(freed, now_ns)

    def _keep(self, claim: Claim) -> None:
        self.records.keep(claim)
        if claim.gang.priority < claim.priority:  # it may be in the way of gangs of higher priority no longer (R3, R5)
            self._state.events.add(EventKind.NODES_REOPENED)
        claim.priority = claim.gang.priority

    def _end_of_group(self, gang: GangState, kind: ClaimKind, ending: Ending) -> list[GangState]:
        """Ends a gang's claim that no longer helps. What is reserved or freed for gangs that start together ends as a
        whole (R7, P3). Returns these gangs."""
        policy = self._policies.get(kind)
        gangs = self._units.partners(gang) if policy is not None and policy.ends_with_unit else [gang]
        for mate in gangs:
            self.end(mate, kind, *ending)
        return gangs

    def _match_pods(self, claim: Claim, now_ns: int) -> None:
        """Slots follow their pods: a pod that was recreated under its name takes its slot; one that a Job or QueueJob
        of ours is recreating keeps it for a while (R7)."""
        gang = claim.gang
        self._recreating.pop((gang.key, claim.kind), None)
        gone = [slot for slot in claim.slots.values() if not slot.is_for_member_of(gang) and not slot.is_later(gang)]
        by_name = (
            {task.name: task for task in gang.tasks.values() if task.status in WAITS and task.ours} if gone else {}
        )
        for slot in gone:
            slot.task = by_name.get(slot.name)
            if slot.task is not None:
                slot.absent_since_ns = None
                self._policies[claim.kind].occupy(Claim(gang, claim.kind, [slot], claim.until_ns))
            else:
                self._wait_for_pod(claim, slot, now_ns)

    def _wait_for_pod(self, claim: Claim, slot: Slot, now_ns: int) -> None:
        gang, key = claim.gang, (claim.gang.key, claim.kind)
        slot.absent_since_ns = now_ns if slot.absent_since_ns is None else slot.absent_since_ns
        deadline = slot.absent_since_ns + RECREATION_NS
        if gang.spec.recreated_by_us and now_ns < deadline:
            self._recreating[key] = min(deadline, self._recreating.get(key, deadline))
        else:
            del claim.slots[slot.name]
            self._policies[claim.kind].vacate(Claim(gang, claim.kind, [slot]))
