"""Deadlocks between claims: gangs that keep room, by whatever kind of claim, without which another cannot start, and
that wait for each other (K12).

Gangs that start together are one party. A deadlock is a set of parties each of which would start now if all of them
released their claims. The lowest in order release, as many as it takes for one party to start at once. One starts each
time, so this terminates.
"""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.claims.room import still_fits
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.ordering import Order
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.queueing.scheduling_queue import SchedulingQueue
from enbloc.engine.core.spine import attempt_unit, place_unit
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.tasks import GangState, held_tasks
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.released import released_note, what_was_released
from enbloc.gangs.claim_records import ClaimKind

_KINDS = (ClaimKind.HOLD, ClaimKind.RESERVE, ClaimKind.PREEMPT)

Party = list[GangState]
"""Gangs that start together, in a group or alone."""


class Deadlocks(Feature):
    def __init__(self) -> None:
        self._suspected = False
        """Whether a gang with claims was attempted in vain since deadlocks were last looked for."""

    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        self._suspected = self._suspected or (
            not failure.waits_for_gangs and any(map(cycle.claims.has_any, cycle.units.mates(gang)))
        )
        return False

    def serving_ends(self, cycle: Cycle, queue: SchedulingQueue) -> None:
        if self._suspected and queue is cycle.queues.placement:
            self._suspected = False
            _resolve(cycle)


def _resolve(cycle: Cycle) -> None:
    """Of parties that wait for each other the lowest in order release their claims so that one can start."""
    stuck = _stuck(cycle, sorted(_claimants(cycle), key=lambda party: _order_of(cycle, party)))
    if len(stuck) < 2:
        return
    victims, winner = _victims(cycle, stuck)
    first = _unit(cycle, winner)[0]
    for victim in victims:
        _release(cycle, victim, cycle.titles.of(first, victim[0].key.namespace))
    failure = attempt_unit(cycle, first, cycle.constraints(first))
    assert failure is None, f"{first} was to start and did not: {failure}; {first.story}"


def _claimants(cycle: Cycle) -> list[Party]:
    """Parties with claims that terminating or running pods do not keep waiting. Reservations alone take no room:
    without a hold or a nomination there is no deadlock."""
    claims = cycle.claims
    if not claims.has(ClaimKind.HOLD) and not claims.has(ClaimKind.PREEMPT):
        return []
    found: dict[object, Party] = {}
    for claim in (claim for kind in _KINDS for claim in claims.all(kind)):
        party = cycle.units.mates(claim.gang)
        if claim.slots and party[0].key not in found:
            found[party[0].key] = party
    if len(found) < 2:
        return []
    return [party for party in found.values() if all(_has_its_room(cycle, gang) for gang in party)]


def _has_its_room(cycle: Cycle, gang: GangState) -> bool:
    """Whether what is nominated or reserved for a gang is free already: other pods do not keep it waiting."""
    state = cycle.state
    if not all(still_fits(state, task, task.node) for task in cycle.claims.nominated(gang)):
        return False
    rows, free = state.nodes.rows, state.nodes.free
    reserved = [(task, rows.get(node)) for task, node in cycle.claims.closing.tasks_of(gang)]
    return all(
        row is not None and all(free[column, row] >= amount for column, amount in task.cls.request)
        for task, row in reserved
    )


def _stuck(cycle: Cycle, parties: list[Party]) -> list[Party]:
    """Of parties with claims, those that wait only for each other: each would fit if all of them released theirs."""
    while len(parties) > 1:
        left = [party for party in parties if _fits_if(cycle, party, parties)]
        if len(left) == len(parties):
            return parties
        parties = left
    return []


def _victims(cycle: Cycle, stuck: list[Party]) -> tuple[list[Party], Party]:
    """The parties that release their claims, lowest in order first and no more than needed, and the one that starts."""
    victims: list[Party] = []
    winner: Party | None = None
    for victim in reversed(stuck[1:]):
        victims.append(victim)
        winner = next((party for party in stuck if party not in victims and _fits_if(cycle, party, victims)), None)
        if winner is not None:
            break
    assert winner is not None, f"{stuck[0]} fits if all others release their claims"
    for victim in reversed(list(victims)):
        others = [other for other in victims if other is not victim]
        if _fits_if(cycle, winner, others):
            victims = others
    return victims, winner


def _unit(cycle: Cycle, party: Party) -> list[GangState]:
    """The gangs of a party that are to be placed, in order."""
    return cycle.units.of(party[0]).to_start(cycle.order)


def _fits_if(cycle: Cycle, party: Party, released: Sequence[Party]) -> bool:
    """Whether a party could start now if these released their claims, its own holds being placed anew."""
    unit, gangs = cycle.units.of(party[0]), _unit(cycle, party)
    if not gangs or not cycle.obstacles.may_start(unit):
        return False
    transaction = Transaction(cycle.state)
    gone = [gang for one in released if one is not party for gang in one]
    for gang in (*gone, *party):
        for task in held_tasks(gang):
            transaction.lift(task)
    for gang in gone:
        for task in cycle.claims.nominated(gang):
            transaction.lift(task)
    constraints = cycle.constraints(gangs[0], frozenset(gang.key for gang in gone))
    fits = cycle.features.rejects(cycle, unit, gangs) is None
    fits = fits and place_unit(cycle, [cycle.asked(gang) for gang in gangs], transaction, constraints) is None
    transaction.rollback()
    return fits


def _release(cycle: Cycle, victim: Party, title: str) -> None:
    """A party releases all its claims, says so, and its clock starts anew with its next hold (K8)."""
    count = sum(len(claim.slots) for gang in victim for kind in _KINDS if (claim := cycle.claims.of(gang, kind)))
    held = sum(gang.total_held for gang in victim)
    what = what_was_released(held, count)
    for gang in victim:
        for kind in _KINDS:
            message = f"released {what} so that {title} can start: they blocked each other"
            cycle.claims.end(gang, kind, "HoldReleased" if kind is ClaimKind.HOLD else "ClaimReleased", message)
    said = released_note(held, count, title)
    for gang in _unit(cycle, victim):
        cycle.reporter.report(gang, Diagnosis(PendingReason.HOLD_RELEASED, said), of_gang=True)
    for gang in victim:
        cycle.claims.note(gang, ClaimKind.HOLD, said)


def _order_of(cycle: Cycle, party: Party) -> Order:
    return min(cycle.order(gang) for gang in party)
