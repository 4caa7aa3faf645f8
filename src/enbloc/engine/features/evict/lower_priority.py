"""Claims of gangs of lower priority: they are released before any pod is evicted (R5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.claims.claims import Claims
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.core.why.titles import Titles
from enbloc.engine.features.evict.history import EvictionHistory
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

    def release(self, claims: Claims, titles: Titles, by: GangState) -> None:
        """Released for a gang of higher priority."""
        for claim in self.claims:
            title = titles.of(by, claim.gang.key.namespace)
            claims.end(claim.gang, self.kind, RELEASED[self.kind], f"released for {title}, of higher priority")


def lower_priority_claims(cycle: Cycle, unit: Sequence[GangState]) -> list[LowerPriorityClaim]:
    """The claims that could be released for gangs that start together: lowest priority first, then last in order."""
    priority = min(gang.priority for gang in unit)  # S1: no gang is given the priority of its group
    claims, history, own = cycle.claims, cycle.features.get(EvictionHistory), {gang.key for gang in unit}
    queue = unit[0].spec.queue

    def is_lower(claim: Claim) -> bool:
        gang = claim.gang
        if gang.key in own or gang.priority >= priority:
            return False
        if claim.kind is ClaimKind.PREEMPT and gang.spec.queue != queue:
            return False  # room that was reclaimed for another queue is that queue's by its share
        return not any(history.was_evicted_by(one, gang) for one in unit)  # no gang takes it back (P3)

    found: list[LowerPriorityClaim] = []
    for kind in (ClaimKind.RESERVE, ClaimKind.PREEMPT, ClaimKind.WAVE):
        found += [LowerPriorityClaim(kind, (claim,)) for claim in claims.all(kind) if is_lower(claim)]
    for group in cycle.features.get(Holds).holders():
        held = [claims.of(gang, ClaimKind.HOLD) or Claim(gang, ClaimKind.HOLD, ()) for gang in group.gangs]
        if all(map(is_lower, held)):
            found.append(LowerPriorityClaim(ClaimKind.HOLD, tuple(held)))
    found.sort(key=lambda one: cycle.order(one.gang), reverse=True)
    return sorted(found, key=lambda one: one.gang.priority)
