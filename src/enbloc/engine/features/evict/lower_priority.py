"""Claims of gangs of lower priority: they are released before any pod is evicted (R5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.spine import attempt_unit
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.features.evict.nominations import EvictedGangs
from enbloc.engine.features.evict.requests import reaches_min_resources, with_later
from enbloc.engine.features.groups.holds import Holds
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey

RELEASED = {
    ClaimKind.HOLD: "HoldReleased",
    ClaimKind.RESERVE: "ReservationReleased",
    ClaimKind.PREEMPT: "PreemptionReleased",
    ClaimKind.WAVE: "ClaimReleased",
}
"""The event reason of a claim that is released for a gang of higher priority."""

_STATUS_BY: Final = {ClaimKind.HOLD: TaskStatus.HELD, ClaimKind.PREEMPT: TaskStatus.NOMINATED}
"""What tasks are by a claim that takes room for them."""


class LowerPriorityClaim(NamedTuple):
    """The claims of one kind of a gang, or for holds of a group, that are released together."""

    kind: ClaimKind
    claims: tuple[Claim, ...]

    @property
    def gang(self) -> GangState:
        return self.claims[0].gang

    @property
    def keys(self) -> frozenset[GangKey]:
        return frozenset(claim.gang.key for claim in self.claims)

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(node for claim in self.claims for node in claim.nodes)

    def lift(self, state: State, transaction: Transaction) -> None:
        """Within a transaction: as if the room were not claimed. Reservations take none; constraints exclude them. A
        task may have claims of several kinds: what it has by another one stays."""
        for task in (task for claim in self.claims for task in claim.tasks):
            if self.kind is ClaimKind.WAVE:
                transaction.remove(task, state.nodes.rows[task.node])
            elif task.status is _STATUS_BY.get(self.kind):
                transaction.lift(task)

    def release(self, cycle: Cycle, by: GangState) -> None:
        """Released for a gang of higher priority."""
        for claim in self.claims:
            title = cycle.titles.of(by, claim.gang.key.namespace)
            cycle.claims.end(claim.gang, self.kind, RELEASED[self.kind], f"released for {title}, of higher priority")


def lower_priority_claims(cycle: Cycle, unit: Sequence[GangState]) -> list[LowerPriorityClaim]:
    """The claims that could be released for gangs that start together: lowest priority first, then last in order."""
    claims = cycle.claims
    found = [
        LowerPriorityClaim(kind, (claim,))
        for kind in (ClaimKind.RESERVE, ClaimKind.PREEMPT, ClaimKind.WAVE)
        for claim in claims.all(kind)
    ]
    for group in cycle.features.get(Holds).holders():
        held = (claims.of(gang, ClaimKind.HOLD) or Claim(gang, ClaimKind.HOLD, ()) for gang in group.gangs)
        found.append(LowerPriorityClaim(ClaimKind.HOLD, tuple(held)))
    found = [one for one in found if all(_is_lower(cycle, claim, unit) for claim in one.claims)]
    found.sort(key=lambda one: cycle.order(one.gang), reverse=True)
    return sorted(found, key=lambda one: one.gang.priority)


def _is_lower(cycle: Cycle, claim: Claim, unit: Sequence[GangState]) -> bool:
    gang, priority = claim.gang, min(gang.priority for gang in unit)  # S1: no gang is given the priority of its group
    if gang.priority >= priority or any(gang.key == own.key for own in unit):
        return False
    if claim.kind is ClaimKind.PREEMPT and gang.spec.queue != unit[0].spec.queue:
        return False  # room that was reclaimed for another queue is that queue's by its share
    evicted = cycle.features.get(EvictedGangs)
    return not any(evicted.has(gang, one.key) for one in unit)  # no gang takes it back (P3)


def start_without(cycle: Cycle, unit: Sequence[GangState], lower: Sequence[LowerPriorityClaim]) -> bool:
    """If the gang fits once claims of lower priority are released, releases them, no more than it takes, and places
    the gang; whether it does."""
    if not lower or not _fits_without(cycle, unit, lower):
        return False
    chosen = list(lower)
    for one in reversed(lower):
        others = [other for other in chosen if other is not one]
        if others and _fits_without(cycle, unit, others):
            chosen = others
    for one in chosen:
        one.release(cycle, unit[0])
    failure = attempt_unit(cycle, unit[0], cycle.constraints(unit[0]))
    assert failure is None, f"{unit[0]} was planned and not placed: {failure}; {unit[0].story}"
    return True


def _fits_without(cycle: Cycle, unit: Sequence[GangState], released: Sequence[LowerPriorityClaim]) -> bool:
    opened = frozenset(key for one in released if one.kind is ClaimKind.RESERVE for key in one.keys)
    constraints, reaches = cycle.constraints(unit[0], opened), reaches_min_resources(cycle, unit)
    transaction = Transaction(cycle.state)

    def fits(gang: GangState) -> bool:
        request = with_later(cycle, gang)
        cycle.take_claimed_room(transaction, gang, request.later)
        return bool(gang.need.missing) or attempt(cycle.placer, [request], transaction, constraints) is None

    for one in released:
        one.lift(cycle.state, transaction)
    found = (reaches is None or reaches()) and all(map(fits, unit))
    transaction.rollback()
    return found and any(not gang.need.missing for gang in unit)
