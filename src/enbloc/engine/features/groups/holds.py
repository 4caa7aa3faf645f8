"""Members of NonStrict gangs that keep their room until the others fit too, and the clock of units (K6, K8).

A held task has the status `HELD` and takes its room. When a unit's time is up it releases everything, and its pods
are annotated as timed out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from enbloc.api.reasons import PendingReason
from enbloc.engine.core.claims.claim import Claim, Ending, Slot, pending_slots
from enbloc.engine.core.claims.claims import ClaimPolicy, Claims
from enbloc.engine.core.claims.room import still_fits
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.obstacles import Obstacles
from enbloc.engine.core.ordering import GangOrder
from enbloc.engine.core.placement.attempt import one_by_one
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.state.units import Unit, Units
from enbloc.engine.core.tables.queues import QUEUE_WAKES_ON
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, held_tasks, pending_tasks
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.core.why.reporter import Reporter
from enbloc.engine.decisions import Decision, TimeOut
from enbloc.engine.events import NODE_EVENTS
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import GangKey
from enbloc.listing import plural

_OURS = (PendingReason.NOT_ENOUGH_PODS, PendingReason.FAILED_CREATE)


class Holds(ClaimPolicy):
    kind = ClaimKind.HOLD
    used = "HoldBound"
    is_shared = True
    status = TaskStatus.HELD
    waits_for_members = True
    retried_on = NODE_EVENTS | QUEUE_WAKES_ON

    def __init__(
        self,
        state: State,
        claims: Claims,
        units: Units,
        order: GangOrder,
        obstacles: Obstacles,
        reporter: Reporter,
        decide: Callable[[Decision], None],
    ) -> None:
        super().__init__(state, claims)
        self._units = units
        self._order = order
        self._obstacles = obstacles
        self._reporter = reporter
        self._decide = decide
        self._now_ns = 0
        self._beyond: dict[tuple[GangKey, ...], Unit] = {}
        """Units that hold nothing since the cluster, or a queue, is too small for them."""

    def time_passes(self, now_ns: int) -> None:
        self._now_ns = now_ns

    def time_out(self, now_ns: int) -> bool:
        """Groups whose time is up say so, and their pods are annotated (K8); what they release may help others."""
        expired = self.expire(now_ns)
        for mark in expired:
            gang = self._state.gangs[mark.gang]
            also = [gang.tasks[uid] for _, _, uid in mark.pods]
            self._reporter.report(gang, diagnosis.timed_out(gang), of_gang=True, also=also)
            self._decide(mark)
        return bool(expired)

    # ---- a unit that does not fit

    def alternatives(
        self, cycle: Cycle, gangs: Sequence[GangState], transaction: Transaction
    ) -> Iterator[list[PlacementRequest]]:
        """What is held is placed anew: held tasks may block their own unit."""
        held = [task for gang in gangs for task in held_tasks(gang)]
        for task in held:
            transaction.lift(task)
        if held:
            yield [cycle.asked(gang) for gang in gangs]

    def alike(self, cycle: Cycle, gang: GangState) -> Hashable:
        """With no claims, and if other pods do not matter to it: then it holds nothing either."""
        unit = self._units.of(gang)
        if not unit.holds or not gang.starts or not self._obstacles.may_start(unit):
            return None
        found = [_shape(cycle, one) for one in unit.to_start(self._order)]
        return tuple(found) if None not in found else None

    def permit(self, cycle: Cycle, gang: GangState, constraints: Constraints, failure: Diagnosis) -> None:
        """Of a NonStrict unit that was attempted what fits is held, unless the hold would end at once."""
        unit = self._units.of(gang)
        if failure.waits_for_gangs:
            apart = self.attempted_apart(unit)
            if apart:  # what its queue may use changes within a cycle, too
                self._hold_each(cycle, unit, apart, constraints)
        elif unit.holds and failure.attempted_with_others:
            gangs = unit.to_start(self._order)
            if any(cycle.claims.nominated(one) for one in gangs) or cycle.features.rejects(cycle, unit, gangs):
                return
            if not any(map(self._obstacles.of_claim, gangs)):
                self._hold_each(cycle, unit, gangs, constraints)

    def _hold_each(self, cycle: Cycle, unit: Unit, gangs: Sequence[GangState], constraints: Constraints) -> None:
        """Holds the tasks that fit, of each gang at most as many as its minima require. R8 does not count: a held pod
        has not started, and may not end before a gang that comes first is due."""
        shadow = constraints.shadow
        constraints = cycle.constraints(gangs[0], honor_run_times=False, together=False)
        constraints = constraints._replace(shadow=shadow, starts=False)
        for gang in gangs:
            transaction = Transaction(cycle.state)
            request = request_of(gang)
            one_by_one(cycle.placer, gang, transaction, request.needed, constraints)
            if request.short:
                one_by_one(cycle.placer, gang, transaction, request.rest, constraints, request.short)
            if transaction.placed:
                self.hold(unit, gang, transaction.placed, cycle.now_ns)

    # ---- a unit of which gangs cannot start

    def retry_all(self) -> None:
        """The cluster may have become large enough for units that held nothing since it was not."""
        for gang in [gang for unit in self._beyond.values() for gang in unit.gangs]:
            self._state.touch(gang)
        self._beyond.clear()

    def attempted_apart(self, unit: Unit) -> Sequence[GangState]:
        """The complete gangs of a NonStrict unit keep what they get while all that it lacks are members of other gangs,
        or gangs that do not exist yet (K6)."""
        if not unit.holds or any(map(self._units.is_declared, unit.unsatisfied)):
            return ()
        lacking = self._obstacles.of_each(unit)
        if not (lacking or unit.unsatisfied):
            return ()
        if any(map(self._obstacles.never_fits, unit.gangs)):
            self._beyond[unit.keys] = unit
            return ()
        if not all(why.lacks_members or why.not_enqueued for why in lacking.values()):
            return ()
        return [gang for gang in unit.to_start(self._order) if gang.key not in lacking]

    def unit_judged(self, unit: Unit, obstacles: Mapping[GangKey, Diagnosis]) -> None:
        """The clock of a unit runs unless all that it lacks are pods that our own controllers create (K8). That of a
        Strict one starts though nothing is held, once a gang is complete and another that it needs cannot start."""
        lacks = bool(obstacles) and not unit.unsatisfied
        self._stand(unit, lacks and all(self._is_created_by_us(key, why) for key, why in obstacles.items()))
        if (obstacles or unit.unsatisfied) and not unit.stands:
            self._start_clock(unit, [gang for gang in unit.gangs if gang.key not in obstacles and _waits(gang)])

    def _start_clock(self, unit: Unit, complete: Sequence[GangState]) -> None:
        if complete and unit.waiting_ns and not unit.holds and self.clock(unit) is None:
            claim = self._claim(unit, complete[0], (), self._now_ns)
            self._claims.make(claim, "Waiting", "waits for the other gangs of its group")

    def _is_created_by_us(self, key: GangKey, why: Diagnosis) -> bool:
        return self._state.gangs[key].spec.recreated_by_us and (why.not_enqueued or why.reason in _OURS)

    # ---- claims

    def post_bind(self, gang: GangState, *, commits: bool) -> None:
        """Its unit has started."""
        if commits and self._claims.has(self.kind):
            for mate in self._units.mates(gang):
                self._claims.end(mate, self.kind, self.used, "its pods are bound")

    def holders(self) -> list[Unit]:
        """Groups that hold pods."""
        found: dict[int, Unit] = {}
        for claim in self._claims.all(self.kind):
            unit = self._units.of(claim.gang)
            if claim.gang.total_held and not unit.is_alone:
                found[id(unit)] = unit
        return list(found.values())

    def clock(self, unit: Unit) -> int | None:
        """When a unit's clock started, if it runs: when gangs join, the earliest start counts."""
        return min((claim.clock_ns for claim in self._claims_of(unit)), default=None)

    def _stand(self, unit: Unit, stands: bool) -> None:
        """The clock stands, or runs on from where it stood."""
        unit.stands = stands
        for claim in self._claims_of(unit):
            if stands == bool(claim.stands_ns):
                continue
            claim.clock_ns += self._now_ns - claim.stands_ns if claim.stands_ns else 0
            claim.stands_ns = self._now_ns if stands else 0
            self._claims.write(claim.gang, self.kind, "", "")

    def _claims_of(self, unit: Unit) -> list[Claim]:
        found = (self._claims.of(gang, self.kind) for gang in unit.gangs)
        return [claim for claim in found if claim is not None]

    def _claim(self, unit: Unit, gang: GangState, slots: Sequence[Slot], now_ns: int) -> Claim:
        first = min(self._claims_of(unit), key=lambda claim: claim.clock_ns, default=None)
        claim = Claim(gang, self.kind, slots)
        claim.clock_ns = now_ns if first is None else first.clock_ns
        claim.stands_ns = now_ns if first is None and unit.stands else first.stands_ns if first is not None else 0
        claim.until_ns = claim.clock_ns + unit.waiting_ns
        claim.held = bool(slots)
        return claim

    def hold(self, unit: Unit, gang: GangState, placed: Sequence[Task], now_ns: int) -> None:
        """Tasks that a transaction placed are held where they are. The first one starts the clock."""
        claim = self._claim(unit, gang, [Slot(task.name, task.node, task) for task in placed], now_ns)
        held = gang.total_held + len(placed)
        if not self._claims.extend(
            claim, "Held", f"{plural(held, 'pod')} {'is' if held == 1 else 'are'} held until the other members fit"
        ):
            for task in placed:
                self._state.hold(task)
                self._state.unreserve(task)

    def expire(self, now_ns: int) -> list[TimeOut]:
        """Groups whose time is up give up every claim; every pod of theirs without a node is to be annotated. How long
        they may wait is what their gangs declare now (K8)."""
        units: dict[int, tuple[Unit, list[Claim]]] = {}
        for claim in self._claims.all(self.kind):
            unit = self._units.of(claim.gang)
            if not unit.is_alone:
                units.setdefault(id(unit), (unit, []))[1].append(claim)
        found: list[TimeOut] = []
        for unit, claims in units.values():
            until_ns = min(claim.clock_ns for claim in claims) + unit.waiting_ns
            stands_ns = max(claim.stands_ns for claim in claims)
            for claim in claims:
                claim.until_ns = 0 if stands_ns else until_ns
            if until_ns <= (stands_ns or now_ns):
                found += self._time_out_all(unit)
        return found

    def _time_out_all(self, unit: Unit) -> list[TimeOut]:
        waiting = [mate for mate in unit.gangs if not mate.satisfied]
        for kind in (self.kind, ClaimKind.RESERVE, ClaimKind.PREEMPT):
            for mate in unit.gangs:
                self._claims.end(mate, kind, "TimedOut", "the waiting time is over; its room is released")
        return [self._time_out(mate) for mate in waiting]

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

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        """The clock of a record that was written before clocks were recorded started no later than now."""
        unit = self._units.of(gang)
        if gang.satisfied or unit.is_alone:
            return None
        claim = Claim(gang, self.kind, pending_slots(gang, record, self._state.nodes.rows))
        claim.clock_ns = min(record.clock_ns or record.until_ns - unit.waiting_ns, now_ns)
        claim.stands_ns = min(record.until_ns, now_ns) if record.clock_ns else 0
        claim.until_ns = claim.clock_ns + unit.waiting_ns
        claim.held = record.held or bool(record.slots)
        return claim

    def is_used(self, claim: Claim) -> bool:
        return claim.gang.satisfied

    def review(self, claim: Claim, now_ns: int, obstacle: Diagnosis | None) -> Ending | None:
        """Only the slots that no longer help are released: the clock runs on, and other members may be held."""
        unit = self._units.of(claim.gang)
        if unit.is_alone:
            return Ending(self.kind.ended, "the gang waits for no other gang")
        if claim.held and not unit.holds:
            return Ending(self.kind.ended, "its group has a Strict gang, and holds nothing")
        if not claim.held and unit.holds:
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


def _waits(gang: GangState) -> bool:
    return not gang.satisfied and bool(not gang.need.ready or gang.total_pending)


def _shape(cycle: Cycle, gang: GangState) -> Hashable:
    """What a gang asks for that has no claims, and to which nothing matters but the room of nodes."""
    spec, pending = gang.spec, pending_tasks(gang)
    if gang.total_held or gang.ran or spec.waves or spec.tree or cycle.claims.has_any(gang):
        return None
    if any(map(cycle.state.stateful.applies, pending)) or PlacementRequest(gang, pending).is_constrained:
        return None
    tasks = tuple((task.role, task.cls.id) for task in pending)
    counts = tuple(sorted(gang.need.found.items())), tuple(sorted(gang.need.minima.items()))
    return spec.queue, gang.minima.total, len(gang.tasks), counts, tasks
