"""Room for the later waves of a whole-job gang: found with the first wave, used by the later ones, or released (D5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from enbloc.engine.core.claims.claim import Claim, Ending, Slot
from enbloc.engine.core.claims.claims import ClaimPolicy, Claims
from enbloc.engine.core.claims.placeholders import make_placeholders
from enbloc.engine.core.claims.room import replace_placeholders, still_fits, will_fit
from enbloc.engine.core.placement.attempt import Placer
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.gangs.claim_records import ClaimKind, Record, by_role
from enbloc.listing import listed, plural


class Waves(ClaimPolicy):
    kind = ClaimKind.WAVE
    used = "ClaimUsed"

    def __init__(self, state: State, claims: Claims, deadline_ns: int) -> None:
        super().__init__(state, claims)
        self.deadline_ns = deadline_ns
        self.lapsed: Callable[[Claim], None] = lambda claim: None
        """Called when a claim, or a part of it, ends unused; set by `LaterRoom` (S9)."""
        self.changed: Callable[[str], None] = lambda namespace: None
        """Called when claims of a namespace changed; set by `LaterRoom`."""

    def all(self) -> list[Claim]:
        return self._claims.all(self.kind)

    def any(self) -> bool:
        return self._claims.has(self.kind)

    def of(self, gang: GangState) -> list[Task]:
        """The placeholders of a gang."""
        claim = self._claims.of(gang, self.kind)
        return claim.tasks if claim is not None else []

    def later_tasks(self, gang: GangState) -> list[Task]:
        """For a whole-job gang that starts: placeholders for later waves that have no room yet."""
        found: list[Task] = []
        for role, count in self.lacking(gang).items():
            found += make_placeholders(self._state, gang, role, gang.spec.later[role], len(self.of(gang)), count)
        return found

    def lacking(self, gang: GangState) -> dict[str, int]:
        """The pods of later waves that a whole-job gang needs room for to start, and has none yet, by role."""
        if not gang.spec.later or gang.covered:
            return {}
        known = Counter(task.role for task in self.of(gang))
        counts = {role: template.count - known[role] for role, template in gang.spec.later.items()}
        return {role: count for role, count in counts.items() if count > 0}

    def take_places(self, placer: Placer, transaction: Transaction, request: PlacementRequest) -> list[Task]:
        """Tasks take the places of their placeholders; where one no longer fits, the transaction is rolled back and the
        claim released. Returns the placeholders whose places were taken."""
        placeholders = self.of(request.gang)
        taken = replace_placeholders(placer, transaction, request.needed, placeholders)
        if taken is None:
            transaction.rollback()
            self._lapse(self.claim_of(request.gang))
            self.release(request.gang, "ClaimDropped", "a pod differs from its template and does not fit in its room")
        return taken or []

    def without_room(self, gang: GangState, tasks: Sequence[Task]) -> list[Task]:
        """The tasks for which no placeholder keeps room."""
        kept = Counter(task.role for task in self.of(gang))
        found: list[Task] = []
        for task in tasks:
            if kept[task.role]:
                kept[task.role] -= 1
            else:
                found.append(task)
        return found

    def lacks_room(self, gang: GangState) -> bool:
        """Whether room of a placeholder is still being freed: other pods terminate there."""
        return not all(still_fits(self._state, task, task.node) for task in self.of(gang))

    def lift_places(self, transaction: Transaction, gang: GangState) -> None:
        """Takes the placeholders of a gang off their nodes, so that all its waves can be placed anew."""
        for task in self.of(gang):
            transaction.remove(task, self._state.nodes.rows[task.node])

    def being_freed(self, gang: GangState, places: Sequence[tuple[Task, str]], now_ns: int) -> Claim:
        """A claim for room that is being freed for later waves, together with that of the first (P3)."""
        slots = [Slot(task.name, node, task) for task, node in places]
        return Claim(gang, self.kind, slots, now_ns + self.deadline_ns)

    def make_being_freed(self, claim: Claim) -> bool:
        """Claims the room. `False`: it could not be recorded."""
        message = f"room for {plural(len(claim.slots), 'pod')} of later waves is being freed"
        return self._claims.make(claim, "ClaimMade", message)

    def check_record(self, gang: GangState, later: Sequence[Task]) -> bool:
        """Whether room for the placeholders of later waves can be recorded."""
        slots = [Slot(one.name, one.node, one) for one in [*self.of(gang), *later]]
        return not later or self._claims.records.fit([Claim(gang, self.kind, slots)])

    def keep(self, gang: GangState, taken: Sequence[Task], later: Sequence[Task], now_ns: int) -> None:
        """A wave is placed: tasks took the places of `taken`; the placeholders `later` keep theirs (`check_record`)."""
        if not taken and not later:
            return
        claim = self._claims.of(gang, self.kind)
        for placeholder in taken:
            assert claim is not None, f"{gang} has no placeholders; {gang.story}"
            del claim.slots[placeholder.name]
            self._state.remove_placeholder(placeholder, holds_room=False)
        if later:
            nodes = len({placeholder.node for placeholder in later})
            message = f"room for {plural(len(later), 'pod')} of later waves is claimed on {plural(nodes, 'node')}"
            slots = [Slot(one.name, one.node, one) for one in later]
            gang.evicted = False
            claim = Claim(gang, self.kind, slots, now_ns + self.deadline_ns)
            is_made = self._claims.extend(claim, "ClaimMade", message)
            assert is_made, f"{claim} cannot be recorded; {gang.story}"
            return
        them = "it" if len(taken) == 1 else "them"
        message = f"{plural(len(taken), 'pod')} took the room that was claimed for {them}"
        if claim is not None and not claim.slots:
            self._claims.end(gang, self.kind, self.used, message)
        else:
            self._claims.write(gang, self.kind, self.used, message)

    def release(self, gang: GangState, reason: str, message: str) -> None:
        self._claims.end(gang, self.kind, reason, message)

    # ---- policy

    def occupy(self, claim: Claim) -> None:
        self.changed(claim.gang.key.namespace)
        for slot in claim.slots.values():
            placeholder = slot.task
            assert placeholder is not None, "a placeholder is always there"
            if placeholder.node:
                self._state.keep_placeholder(placeholder)  # a transaction has placed it
            else:
                placeholder.node, placeholder.status = slot.node, TaskStatus.ASSUMED
                self._state.add_placeholder(placeholder)

    def vacate(self, claim: Claim) -> None:
        self.changed(claim.gang.key.namespace)
        for placeholder in claim.tasks:
            self._state.remove_placeholder(placeholder, holds_room=True)

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        """Its size is bounded by the templates, and its end by the deadline, before anything is allocated (S2)."""
        slots: list[Slot] = []
        for role, nodes in by_role(record, gang.spec.templates).items():
            template = gang.spec.templates.get(role)
            if template is None or not all(node in self._state.nodes.rows for node in nodes):
                return None
            counts = {node: min(count, template.count) for node, count in nodes.items()}
            if sum(counts.values()) > template.count:
                return None
            places = [node for node, count in counts.items() for _ in range(count)]
            tasks = make_placeholders(self._state, gang, role, template, len(slots), len(places))
            slots += [Slot(task.name, node, task) for task, node in zip(tasks, places, strict=True)]
        return Claim(gang, self.kind, slots, min(record.until_ns, now_ns + self.deadline_ns)) if slots else None

    def is_used(self, claim: Claim) -> bool:
        return not claim.slots

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        ending = self._unused(claim, now_ns, obstacle)
        if ending is not None:
            self._lapse(claim)
            return ending
        self._drop(claim, claim.beyond_templates())
        is_being_freed = self._is_being_freed(claim.gang)
        fits = will_fit if is_being_freed else still_fits
        if not all(fits(self._state, task, task.node) for task in claim.tasks):
            return Ending("ClaimDropped", f"the room that was claimed on {listed(claim.nodes, 5)} is no longer there")
        if not is_being_freed and not claim.gang.covered and not claim.gang.total_occupied:
            self._lapse(claim)
            return Ending(self.kind.ended, "its first wave was not started")
        self._drop_done(claim)
        return None if claim.slots else Ending(self.kind.ended, "its later waves are bound")

    def _unused(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        if claim.until_ns <= now_ns:
            return Ending("ClaimExpired", "the deadline for the later waves has passed")
        if claim.gang.status.finished:
            return Ending(self.kind.ended, "the gang has finished")
        if obstacle is not None and not obstacle.lacks_members:  # pods of later waves are created late (D2)
            return Ending(self.kind.ended, f"the gang cannot start: {obstacle.message}")
        return None

    def _is_being_freed(self, gang: GangState) -> bool:
        return self._claims.of(gang, ClaimKind.PREEMPT) is not None

    def _lapse(self, claim: Claim | None) -> None:
        """The pods that a claim was for did not come (S9). Of a gang whose pods were evicted that is no fault."""
        if claim is not None and not claim.gang.evicted:
            self.lapsed(claim)

    def _drop_done(self, claim: Claim) -> None:
        """Roles whose minimum is bound need their room no longer."""
        gang = claim.gang
        roles = {task.role for task in claim.tasks}
        done = {role for role in roles if gang.occupied.get(role, 0) >= gang.minima.by_role.get(role, 0)}
        done -= set(gang.spec.later)
        self._drop(claim, [slot for slot in claim.slots.values() if slot.task is not None and slot.task.role in done])

    def _drop(self, claim: Claim, slots: Sequence[Slot]) -> None:
        """Drops slots that no pod took."""
        if not slots:
            return
        self._lapse(claim)
        for slot in slots:
            del claim.slots[slot.name]
        self.vacate(Claim(claim.gang, self.kind, slots))
