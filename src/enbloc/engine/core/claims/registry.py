"""All claims: one registry for every kind. Makes, adopts, reviews, releases and records them.

A gang has at most one claim of a kind. Every change is a decision (`SetAside`), so that the claim is written down
before anything relies on it. Records are adopted in the first cycle of a scheduler, which is the one after it started
or took the lead. From then on memory counts (S2): what the API says of a claim is an echo, or older; a record that this
scheduler did not write is removed.

What differs between kinds is in their policies: `holds`, `reservations`, `nominations`, `waves`, and `evicted_gangs`,
whose claims set no room aside (`ClaimKind.sets_room_aside`): `has_any`, `every` and `due` leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import Final

from enbloc.engine.core.claims.claim import RECREATION_NS, Claim, Ending
from enbloc.engine.core.claims.closed_nodes import ClosedNodes
from enbloc.engine.core.claims.placeholders import is_placeholder
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
from enbloc.engine.decisions import RECORD_REMOVED, Complain, Decision, SetAside
from enbloc.engine.events import ALL_KINDS, EventKind
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import GangKey
from enbloc.listing import listed, plural

_NO_LONGER_HOLDS: Final = "what was claimed before the restart no longer holds"
_OWN_USE: Final = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.HELD})
_MOST_KIB: Final = claim_records.OBJECT_BYTES // 1024

Decide = Callable[[Decision], None]


class ClaimPolicy(Feature):
    """What one kind of claim does differently."""

    kind: ClaimKind
    used: str
    """The event reason of a claim whose tasks were bound."""
    closes_nodes = False
    """Whether its claims take no room, but close their nodes to the tasks of other gangs."""
    nominates = False
    """Whether its tasks are nominated to the nodes that they claim, while they wait like others."""
    ends_with_unit = False
    """Whether a claim that no longer helps ends with those of all gangs that start together."""
    frees: tuple[ClaimKind, ...] = ()
    """The kinds of claims for which room is freed together with it."""
    is_shared = False
    """Whether gangs with such a claim are equal to others that ask for the same."""
    waits_for_members = False
    """Whether its claims last while gangs that start together lack members (K6)."""
    notes_need_a_start = False
    """Whether what a gang says of a claim that it does not have is said only while it could be made."""

    def __init__(self, state: State, claims: ClaimRegistry) -> None:
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

    def note_room_left(self, gang: GangState) -> None:
        """Room that was claimed for tasks which are now bound elsewhere, or are not needed, is free: gangs that were
        tried before are woken (G9)."""
        claim = self.claim_of(gang)
        for slot in claim.slots.values() if claim is not None else ():
            if slot.task is not None and slot.task.node != slot.node:
                self._state.events.add_room_freed(slot.node)
                self._state.events.add(EventKind.QUEUE_USES_LESS)


class _Written:
    """The last record that was written for a gang and kind, the one before it, and the UID of the object that carries
    it."""

    __slots__ = ("before", "home", "record")

    def __init__(self, home: str, record: Record | None, before: Record | None = None) -> None:
        self.home = home
        self.record = record
        self.before = before


class ClaimRegistry(Feature):
    def __init__(self, state: State, units: Units, obstacles: Obstacles, commits: Commits, decide: Decide) -> None:
        self._state = state
        self._units = units
        self._obstacles = obstacles
        self._commits = commits
        self._decide = decide
        self.closing = ClosedNodes(state, self)
        self._nominating: ClaimPolicy | None = None
        self._policies: dict[ClaimKind, ClaimPolicy] = {}
        self._claims: dict[ClaimKind, dict[GangKey, Claim]] = {kind: {} for kind in ClaimKind}
        self._written: dict[tuple[GangKey, ClaimKind], _Written] = {}
        """Gangs whose records were read or written. Any other record was not written by this scheduler."""
        self._is_first_cycle = True
        self._before_refusal: dict[tuple[GangKey, ClaimKind], Record] = {}
        """Records that count again, since the write that would have replaced them was refused."""
        self._not_removed: set[tuple[GangKey, ClaimKind]] = set()
        """Claims that have ended and whose records are left: the write that would have removed them was refused."""
        self._recreating: dict[tuple[GangKey, ClaimKind], int] = {}
        """Claims with slots whose pods are being recreated: when the first of these slots is given up."""
        self._notes: dict[GangKey, dict[ClaimKind, str]] = {}
        """What gangs say of claims that they do not have, until they start."""
        self._unrecorded: set[tuple[GangKey, ClaimKind]] = set()
        """Gangs whose objects say that a claim is too large to be recorded."""

    def add_policy(self, policy: ClaimPolicy) -> None:
        """Claims of a kind without a policy are not made, and their records are not adopted."""
        self._policies[policy.kind] = policy
        if policy.closes_nodes:
            self.closing.kind = policy.kind
        if policy.nominates:
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
        return any(gang.key in claims for kind, claims in self._claims.items() if kind.sets_room_aside)

    def notes_of(self, gang: GangState) -> list[str]:
        """Why it has no claim: it was released for another gang (K12), or could not be made (R6), which is said only
        while nodes would be reserved for it."""
        notes = self._notes.get(gang.key)
        if not notes:
            return []
        return [
            note
            for kind, note in notes.items()
            if not self._policies[kind].notes_need_a_start or self._obstacle(gang, kind) is None
        ]

    def note(self, gang: GangState, kind: ClaimKind, text: str) -> bool:
        """Sets what a gang says of a claim that it does not have; empty: nothing. Whether that is new."""
        notes = self._notes.setdefault(gang.key, {})
        was, now = notes.pop(kind, ""), text
        if now:
            notes[kind] = now
        if not notes:
            del self._notes[gang.key]
        return was != now

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
        lifted = self.lift(transaction, gang)
        for policy in self._policies.values():
            policy.take(placer, transaction, gang, later)
        return lifted

    def every(self) -> Iterator[Claim]:
        """All claims that set room aside."""
        for kind, claims in self._claims.items():
            if kind.sets_room_aside:
                yield from claims.values()

    def due(self) -> int | None:
        """When the first claim expires, or the first slot whose pod was not recreated in time."""
        ends = [claim.until_ns for claim in self.every() if claim.until_ns]
        return min([*ends, *self._recreating.values()], default=None)

    def _obstacle(self, gang: GangState, kind: ClaimKind) -> Diagnosis | None:
        """What makes a claim of some kind useless to a gang."""
        return self._obstacles.of_claim(gang, waits_for_members=self._policies[kind].waits_for_members)

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

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        if any(one.reason == RESERVED for one in why.reasons):
            for other in self.closing.gangs():
                if other is not gang:
                    yield other, "has nodes reserved that it could use"

    def about_room(self, gang: GangState) -> Iterator[str]:
        yield from self.notes_of(gang)
        reserved = self.closing.of(gang)
        nodes = sorted({*reserved.values(), *(task.node for task in self.nominated(gang))})
        if nodes:
            yield f"room {'is reserved' if reserved else 'is being freed'} for it on {listed(nodes, 5)}"

    # ---- made and ended

    def make(self, claim: Claim, reason: str, message: str) -> bool:
        """Stores a claim in place of the gang's earlier one of that kind. `False`: it cannot be recorded."""
        if not self.check_record(claim):
            return False
        known = self._claims[claim.kind].pop(claim.gang.key, None)
        if known is not None:
            self._policies[claim.kind].vacate(known)
        self._store(claim)
        self._state.touch(claim.gang)  # with room of its own it is no longer equal to other gangs
        self.write(claim.gang, claim.kind, reason, message)
        return True

    def extend(self, claim: Claim, reason: str, message: str) -> bool:
        """Adds the slots of a claim to the gang's claim of that kind. `False`: it cannot be recorded."""
        known = self.of(claim.gang, claim.kind)
        slots = [*(known.slots.values() if known is not None else ()), *claim.slots.values()]
        if not self.check_record(Claim(claim.gang, claim.kind, slots, claim.until_ns)):
            return False
        if known is None:
            self._store(claim)
        else:
            known.slots.update(claim.slots)
            self._policies[claim.kind].occupy(claim)
        self.write(claim.gang, claim.kind, reason, message)
        return True

    def check_record(
        self, claim: Claim, beside: Sequence[Claim] = (), ending: Collection[ClaimKind] = frozenset()
    ) -> bool:
        """Whether the gang's object can hold the record of a claim beside its records of other kinds and its other
        annotations. If not, that is written on it once (R1). `beside`: claims that are made with it; `ending`: kinds
        whose claims end before."""
        key, count, status = (claim.gang.key, claim.kind), len(claim.slots), claim.gang.status
        anew = {claim.kind, *(one.kind for one in beside), *ending}
        others = [record for kind, record in status.claims.items() if kind not in anew]
        others += [one.record() for one in beside]
        if claim_records.fits(claim.record(), others, status.records_bytes):
            self._unrecorded.discard(key)
            return True
        if key not in self._unrecorded:
            self._unrecorded.add(key)
            text = f"no room is set aside for its {plural(count, 'pod')} ({claim.kind}): the record is too large"
            limit = f"all annotations of an object may have {_MOST_KIB} KiB"
            self._decide(Complain(claim.gang.key, f"{text}, {limit}; use gangs of fewer pods or fewer annotations"))
        return False

    def check_records(self, claims: Sequence[Claim], ending: Collection[ClaimKind] = frozenset()) -> bool:
        """Whether claims of gangs that start together can be recorded all; if not, none of them is made (R1)."""
        return all(
            self.check_record(one, [other for other in claims if other.gang is one.gang and other is not one], ending)
            for one in claims
        )

    def _store(self, claim: Claim) -> None:
        self._claims[claim.kind][claim.gang.key] = claim
        self._policies[claim.kind].occupy(claim)

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

    # ---- every cycle

    def cycle_begins(self, now_ns: int) -> None:
        """Before gangs are woken: in the first cycle records are adopted, and claims that can no longer do what they
        are for end (R7, P3)."""
        dirty = self._state.dirty
        recorded = [gang for gang in dirty.values() if gang.status.claims]
        for gang in self._changed_with((*recorded, *(claim.gang for claim in self.every()))):
            self._commits.update(gang)
        given_up = [one for gang in recorded for one in self._adopt(gang, now_ns)]
        for gang, kind in given_up:
            if not gang.need.ready:
                self._end_of_group(gang, kind, Ending(kind.ended, _NO_LONGER_HOLDS))
        self._is_first_cycle = False
        for kind, policy in self._policies.items():
            everything = self._state.events.any_of(policy.reviewed_on())
            claims = self.all(kind) if kind.sets_room_aside else self._of_gangs(dirty, kind)
            for claim in claims:
                is_changed = any(mate.key in dirty for mate in self._units.mates(claim.gang))
                is_due = (
                    0 < claim.until_ns <= now_ns or self._recreating.get((claim.gang.key, kind), now_ns + 1) <= now_ns
                )
                if everything or is_changed or is_due:
                    self._review(claim, now_ns)

    def _changed_with(self, gangs: Iterable[GangState]) -> list[GangState]:
        """Which gangs of their groups changed: whether claims still help depends on those that are satisfied, too."""
        found = {mate.key: mate for gang in gangs for mate in self._units.mates(gang) if mate.key in self._state.dirty}
        return list(found.values())

    def _of_gangs(self, keys: Iterable[GangKey], kind: ClaimKind) -> list[Claim]:
        claims = self._claims[kind]
        return [claims[key] for key in keys if key in claims] if claims else []

    def _adopt(self, gang: GangState, now_ns: int) -> Iterator[tuple[GangState, ClaimKind]]:
        """Makes claims of the gang's records. Returns the kinds of which none is left."""
        for kind, record in gang.status.claims.items():
            if (gang.key, kind) in self._written:
                continue
            if (gang.key, kind) in self._not_removed:
                self.write(gang, kind, kind.ended, "the claim has ended; its record is removed")
                continue
            if not self._is_first_cycle and self._before_refusal.pop((gang.key, kind), None) != record:
                self.write(gang, kind, RECORD_REMOVED, f"{kind.annotation} was not written by this scheduler")
                continue
            self._written[gang.key, kind] = _Written(gang.status.claim_home, record)
            named = claim_records.with_nodes(record, self._state.nodes.rows)
            policy = self._policies.get(kind)
            claim = policy.adopt(gang, named, now_ns) if policy is not None else None
            if claim is None:
                self.write(gang, kind, kind.ended, _NO_LONGER_HOLDS)
                yield gang, kind
            else:
                self._store(claim)

    def _review(self, claim: Claim, now_ns: int) -> None:
        gang, policy = claim.gang, self._policies[claim.kind]
        if self.of(gang, claim.kind) is not claim:
            return  # ended together with the claim of another gang of its group
        if policy.is_used(claim):
            self.end(gang, claim.kind, policy.used, "its pods are bound")
            return
        if claim.kind.names_pods:
            self._match_pods(claim, now_ns)
        obstacle = self._obstacle(gang, claim.kind)
        if obstacle is not None and (gang.key, claim.kind) in self._recreating and obstacle.lacks_members:
            obstacle = None
        ending = policy.review(claim, now_ns, obstacle)
        if ending is None:
            self._keep_written(claim)
            if gang.priority < claim.priority:  # it may be in the way of gangs of higher priority no longer (R3, R5)
                self._state.events.add(EventKind.NODES_REOPENED)
            claim.priority = gang.priority
            return
        for mate in self._end_of_group(gang, claim.kind, ending):
            for freed in (self.of(mate, kind) for kind in policy.frees):
                if freed is not None:
                    self._review(freed, now_ns)

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
        if not gone:
            return
        by_name = {task.name: task for task in gang.tasks.values() if task.status in WAITS and task.ours}
        deadlines: list[int] = []
        for slot in gone:
            slot.task = by_name.get(slot.name)
            if slot.task is not None:
                slot.absent_since_ns = None
                self._policies[claim.kind].occupy(Claim(gang, claim.kind, [slot], claim.until_ns))
                continue
            slot.absent_since_ns = now_ns if slot.absent_since_ns is None else slot.absent_since_ns
            deadline = slot.absent_since_ns + RECREATION_NS
            if gang.spec.recreated_by_us and now_ns < deadline:
                deadlines.append(deadline)
            else:
                del claim.slots[slot.name]
                self._policies[claim.kind].vacate(Claim(gang, claim.kind, [slot]))
        if deadlines:
            self._recreating[gang.key, claim.kind] = min(deadlines)

    # ---- records

    def _keep_written(self, claim: Claim) -> None:
        """Writes the record again if it changed, or if the pod that carried it is gone."""
        written = self._written.get((claim.gang.key, claim.kind))
        if written is None or written.record != claim.record() or written.home != claim.gang.status.claim_home:
            text = f"room is set aside for {plural(len(claim.slots), 'pod')}"
            self.write(claim.gang, claim.kind, "ClaimChanged", text)

    def write(self, gang: GangState, kind: ClaimKind, reason: str, message: str) -> None:
        """Decides that the record of a gang's claim is written as the claim is now."""
        claim = self.of(gang, kind)
        record = claim.record() if claim is not None else None
        known = self._written.get((gang.key, kind))
        self._written[gang.key, kind] = _Written(gang.status.claim_home, record, known.record if known else None)
        self._not_removed.discard((gang.key, kind))
        others = {other: known for other, known in gang.status.claims.items() if other is not kind}
        gang.assume(claims=others if record is None else {**others, kind: record})
        self._decide(SetAside(gang.key, kind, record, reason, message))

    def refused(self, decision: Decision, uid: str) -> None:
        if isinstance(decision, SetAside):
            self._not_written(decision.gang, decision.kind, decision.record)

    def _not_written(self, key: GangKey, kind: ClaimKind, record: Record | None) -> None:
        """A record could not be written: nothing relies on the claim. What was written before it counts again. A claim
        whose record could not be removed has ended all the same: the record is removed again."""
        written = self._written.get((key, kind))
        if written is None or written.record != record:
            return  # another write has been decided since: what becomes of that one counts
        del self._written[key, kind]
        if record is None:
            self._not_removed.add((key, kind))
        elif written.before is not None:
            self._before_refusal[key, kind] = written.before
        gang = self._state.gangs.get(key)
        if gang is not None:
            self._drop(gang, kind)
            self._state.touch(gang)

    def gang_gone(self, gang: GangState) -> None:
        for kind in ClaimKind:
            self._drop(gang, kind)
            self._written.pop((gang.key, kind), None)
            self._before_refusal.pop((gang.key, kind), None)
            self._not_removed.discard((gang.key, kind))
            self._unrecorded.discard((gang.key, kind))
        self._notes.pop(gang.key, None)
