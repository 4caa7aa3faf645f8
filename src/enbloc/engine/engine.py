"""The engine: the state, who waits for what, and what actions may do to a gang.

Events go into `state`; `cycle` runs the actions. Nothing here knows a clock or a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from enbloc.config import Config
from enbloc.engine.claims.holds import Holds
from enbloc.engine.claims.nominations import Nominations
from enbloc.engine.claims.reservations import Reservations
from enbloc.engine.claims.waves import Waves
from enbloc.engine.decisions import Decision, Enqueue, Pending, SetAside
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.diagnosis.reporter import Reporter
from enbloc.engine.eviction.history import EvictionHistory
from enbloc.engine.forecast.easy_backfill import EasyBackfill
from enbloc.engine.forecast.expected_start import ExpectedStarts
from enbloc.engine.ordering import Band, GangOrder, Order
from enbloc.engine.partial_gangs import PartialGangs, mark_others, see_satisfied
from enbloc.engine.placement.attempt import Placer, take_reserved
from enbloc.engine.placement.binding import binding
from enbloc.engine.placement.constraints import UNCONSTRAINED, Constraints
from enbloc.engine.placement.request import pending_tasks, replacements, request_of
from enbloc.engine.plugins.plugin import load
from enbloc.engine.queueing import signature
from enbloc.engine.queueing.partial_allocations import PartialAllocations
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.queueing.starvation import Starving
from enbloc.engine.state.groups import Group, Groups
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.classes import TaskClass
from enbloc.engine.tables.resources import Bools
from enbloc.engine.tables.tasks import GangState, Task, TaskStatus
from enbloc.gangs import claim_records
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

_BEEN_PLACED = frozenset(
    {TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.RELEASING}
)

TOLD_OF_A_BUCKET = 16
"""How many gangs of a bucket hear each time that its reasons changed; those behind hear when they come near."""

PODS_EXPECTED_WITHIN = 5 * SECOND
"""How long surplus waits for the pods of a gang that was let in: a controller needs far less."""

STARVING, PREEMPTING, RECLAIMING = "Starving", "Preempting", "Reclaiming"
BEYOND_FREE_ROOM = frozenset({STARVING, PREEMPTING, RECLAIMING})
"""On these grounds a gang is let in though there is no room for it yet: it counts against nobody (M6)."""


class Engine:
    """State, who waits, and what was decided in the cycle that is under way."""

    def __init__(self, config: Config, plain: bool = False) -> None:
        self.config = config
        self.plugins = load(config)
        weights = config.scoring
        self.state = State(self.plugins, weights.node_affinity, weights.taint_toleration)
        self.order = GangOrder(self.state, self.plugins)
        self.placer = Placer(self.state, weights.pod_affinity, weights.spread, plain)
        self.allocating = SchedulingQueue()
        self.backfilling = SchedulingQueue()
        self.waves = Waves(self.state, config.depends_on.gang_deadline_ns, self.decide)
        self.groups = Groups(self.state)
        self.holds = Holds(self.state, self.groups, self.decide)
        self._groups_to_read: dict[int, Group] = {}
        self.reservations = Reservations(self.state, self.decide)
        self.nominations = Nominations(self.state, self.decide)
        self.partial_gangs = PartialGangs(self.state, self.groups, config.partial_gang_timeout_ns)
        self.knocking = SchedulingQueue()
        """Gangs that enqueue has not let in yet (M6)."""
        self.coming: dict[str, dict[GangKey, GangState]] = {}
        """Gangs that were let in and whose pods are still being made, by queue: in a FIFO queue their turn is kept."""
        self.now = 0
        self._decisions: list[Decision] = []
        self._surplus_until: int | None = None
        self._runs = {action.name for action in config.actions}
        after = config.sla_waiting_ns
        if after is None:
            after = config.reserve.starving_after_ns
        self.starving = Starving(self.state, after if "reserve" in self._runs else None)
        self.unreservable: dict[GangKey, object] = {}
        """Starving gangs for which there are no nodes to reserve, and the facts of which that is so (G9)."""
        listed = config.plugin("nodeorder")
        self.ranks_by_nearness = listed is None or listed.points.get("resourceNodeOrder", True)
        """R6, unless a flag says no."""
        self.served: list[tuple[str, Order]] = []
        """Who was served in this cycle."""
        easy = "backfill" in self._runs and config.backfill.mode == "easy"
        self.easy = EasyBackfill(self.state, self.placer, self.take_own_places) if easy else None
        self.expected_starts = ExpectedStarts(self.state, self.reservations, self.decide)
        self.reporter = Reporter(self)
        self.evictions = EvictionHistory(self.state, self.decide)
        self.kept = PartialAllocations(self.state, "backfill" in self._runs)
        self.state.when_forgotten = self._forget

    def decide(self, decision: Decision) -> None:
        """Something was decided in the cycle that is under way."""
        self._decisions.append(decision)

    # ---- the frame of a cycle (see `cycle`)

    def begin(self, now: int) -> None:
        """What changed is taken in: nodes settle, those it could help wake, gangs are read anew."""
        self.now = now
        self._decisions = []
        self._surplus_until = None
        self.served = []
        self.state.settle()
        self.starving.begin(now)
        self.partial_gangs.see_again(now)
        self.waves.end(now)
        self.holds.see_again()
        self.reservations.see_again()
        self.nominations.see_again()
        self.kept.see_again()
        self._tell_times_apart()
        self.evictions.begin(now)
        if self.easy is not None:
            self.easy.begin()
        self._wake()
        self._read_dirty()
        self._time_out()
        if self.reservations:
            self.expected_starts.foresee(now)

    def end(self) -> list[Decision]:
        self._decisions += self.partial_gangs.give_up(self.now)
        self.expected_starts.tell()
        self.tidy()
        return self._decisions

    def tidy(self) -> None:
        """Forgets what nobody uses any more, once it is much. Where there are no cycles somebody else has to ask."""
        if self.state.classes.needs_compaction():
            lanes = (self.allocating, self.backfilling)
            self.state.tidy(
                ident for lane in lanes for equivalence in lane.equivalences() for ident in equivalence.classes
            )
        if self.state.queues.needs_compaction():
            self.state.tidy_queues()

    def due(self) -> int | None:
        """When a cycle is needed though nothing happens."""
        timers = (
            self.partial_gangs.due(),
            self.waves.due(),
            self.holds.due(),
            self.starving.due(),
            self._surplus_until,
            self.evictions.due(),
        )
        return min((timer for timer in timers if timer is not None), default=None)

    def busy(self) -> bool:
        """Whether a cycle would have anything to look at. An idle cluster costs nothing."""
        return bool(self.state.dirty or self.state.unmarked or self.state.events.any)

    def force(self) -> None:
        """Wakes everybody: after quiet this must decide nothing (G9, for tests)."""
        for waiting in (self.allocating, self.backfilling, self.knocking):
            waiting.wake(lambda equivalence: True)
        for gang in self.state.gangs.values():
            self.state.touch(gang)

    def _wake(self) -> None:
        """What changed wakes those it could help (G9)."""
        events, state = self.state.events, self.state
        if not events.any:
            return
        rows = [state.nodes.rows[name] for name in sorted(events.rows) if name in state.nodes.rows]
        helped: dict[int, bool] = {}

        def helps_class(ident: int) -> bool:
            if ident not in helped:
                keys = state.candidates(self._class(ident)).keys()
                helped[ident] = any(keys[row] >= 0 for row in rows)
            return helped[ident]

        def could_help(equivalence: EquivalenceClass) -> bool:
            if events.everything or equivalence.volatile:
                return True
            if (events.volumes or events.claims) and any(
                self._hears_of_volumes(ident) for ident in equivalence.classes
            ):
                return True
            if events.less_used and isinstance(equivalence.diagnosis, Diagnosis) and equivalence.diagnosis.of_queue:
                return True
            return bool(rows) and any(helps_class(ident) for ident in equivalence.classes)

        if events.everything or events.volumes or events.claims:
            self.evictions.try_all_again()
            self.unreservable.clear()
        everything, less_used = events.everything, events.less_used or self._knocks_on_others()
        self.allocating.wake(could_help)
        self.backfilling.wake(could_help)
        if everything or less_used:
            self.knocking.wake(lambda equivalence: True)
        events.clear()

    def _hears_of_volumes(self, ident: int) -> bool:
        """Whether what changed of volumes could help a class."""
        cls, events = self._class(ident), self.state.events
        if not cls.spec.volumes or events.volumes:
            return bool(cls.spec.volumes)
        return any((cls.namespace, name) in events.claims for name in self.state.volumes.claims_of(cls))

    def _knocks_on_others(self) -> bool:
        """Whether somebody was placed who might have to leave again for one that was not let in (M6)."""
        return bool(self._runs & {"preempt", "reclaim"})

    def _class(self, ident: int) -> TaskClass:
        return self.state.classes.by_id[ident]

    def _read_dirty(self) -> None:
        self._decisions += self.groups.settle(self.state.dirty.values())
        dirty, self.state.dirty = self.state.dirty, {}
        for gang in dirty.values():
            if gang.key in self.state.gangs:
                self.read(gang)
        groups, self._groups_to_read = self._groups_to_read, {}
        for group in groups.values():
            self._read_group(group)
        unmarked, self.state.unmarked = self.state.unmarked, {}
        for gang in unmarked.values():
            self._decisions += mark_others(gang)

    def _time_out(self) -> None:
        """Groups whose time is up say so, and their pods are marked (K8); what they let go may help others."""
        expired = self.holds.expire(self.now)
        for mark in expired:
            gang = self.state.gangs[mark.gang]
            self.reporter.tell(gang, diagnosis.timed_out(gang), True, [gang.tasks[uid] for _, _, uid in mark.pods])
            self._decisions.append(mark)
        if expired:
            self._wake()
            self._read_dirty()

    def _forget(self, gang: GangState) -> None:
        """Nothing is left of a gang: nor is what we know of it. One that comes later under its name is another."""
        self.starving.forget(gang)
        self.holds.forget(gang.key)
        self.reservations.forget(gang.key)
        self.nominations.forget(gang.key)
        self.waves.claims.forget_key(gang.key)
        self.expected_starts.forget(gang.key)
        self.evictions.forget(gang)
        self.unreservable.pop(gang.key, None)
        self._expect_in(gang, "")

    # ---- one gang

    def read(self, gang: GangState) -> None:
        """Looks at a gang whose facts changed, and queues it where it belongs."""
        group = self.groups.of(gang)
        see_satisfied(self.state, gang, group)
        self.partial_gangs.see(gang, self.now)
        self.waves.follow(gang)
        self.holds.follow(gang, self.now)
        self.reservations.follow(gang)
        self.nominations.follow(gang)
        self.starving.see(gang)
        self.unreservable.pop(gang.key, None)
        self.evictions.see(gang)
        self._count(gang)
        self._expect(gang)
        if gang.spec.finished and not gang.total_pending:
            self._dequeue(gang)
            self.reporter.withdraw(gang)
        elif group is not None and not gang.satisfied:
            self._groups_to_read[id(group)] = group
        elif not gang.spec.enqueued and not self._obstacle(gang):
            self._knock(gang)
        else:
            self._stand(gang, self._obstacle(gang))

    def _stand(self, gang: GangState, told: Diagnosis | None) -> None:
        """A gang is put in line, or told why it is not."""
        if told is None:
            self.queue(gang)
        else:
            self._dequeue(gang)
            gang.why = told
            self.reporter.tell(gang, told, of_gang=True)

    def _obstacle(self, gang: GangState) -> Diagnosis | None:
        """What stands in a gang's way before anybody looks for room (G4)."""
        spec = gang.spec
        queue = self.state.queues.get(spec.queue)
        if spec.problem:
            return diagnosis.problem(gang, spec.problem)
        if not queue.exists:
            return diagnosis.problem(gang, f"queue {spec.queue} does not exist")
        if queue.facts.closed and spec.object is None and not gang.satisfied:
            return diagnosis.problem(gang, f"queue {spec.queue} is closed")
        if spec.enqueued and not gang.satisfied and gang.missing() and not replacements(gang):
            if any(task.status is TaskStatus.TIMED_OUT for task in gang.tasks.values()):
                return diagnosis.timed_out(gang)
            return diagnosis.not_enough_members(gang)
        return None

    # ---- gangs that start together

    def _read_group(self, group: Group) -> None:
        """Queues the gang that is first in order for all of its group, unless one of them cannot start yet (K7)."""
        gangs = self.groups.gangs(group)
        if not group.holds and any(gang.total_held for gang in gangs):
            self.holds.let_go(group, "LetGo", "its group has a Strict gang now, and holds nothing")
        obstacles = {gang.key: told for gang in gangs if (told := self._obstacle(gang)) is not None}
        unit = self.unit(group)
        absent = len(group.keys) - len(gangs)
        if absent or obstacles:
            whole = [gang for gang in unit if gang.key not in obstacles]
            if whole and len(group.keys) > 1:
                self.holds.start(group, whole[0], self.now)
            for gang in gangs:
                if not gang.satisfied:
                    other = diagnosis.others_missing(gang, group.keys, self.state.gangs, obstacles)
                    self._stand(gang, obstacles.get(gang.key) or other)
            return
        for gang in gangs:
            if gang not in unit and (gang.satisfied or not unit):
                self._stand(gang, None)
            else:  # the first in order stands in line for all; surplus waits until all have started
                self._dequeue(gang)
        if unit:
            self._queue_group(unit)

    def may_start(self, group: Group) -> bool:
        """Whether nothing but room is in its way (G4, K7)."""
        gangs = self.groups.gangs(group)
        return len(gangs) == len(group.keys) and all(self._obstacle(gang) is None for gang in gangs)

    def unit(self, group: Group) -> list[GangState]:
        """The gangs of a group whose minima are still to be bound, by order."""
        found = [gang for gang in self.groups.gangs(group) if not gang.satisfied and not gang.ready()]
        return sorted(found, key=self.order)

    def _queue_group(self, unit: list[GangState]) -> None:
        shape, classes = signature.of_unit(self.state, unit, self.reservations)
        first = unit[0]
        order = self.order(first)
        equivalence = self.allocating.put(first, first.spec.queue, order, shape, classes, volatile=True)
        for gang in unit:
            gang.why = equivalence.diagnosis if equivalence.unschedulable and gang is not first else None
        first.equivalence = equivalence
        self.unreservable.pop(first.key, None)  # what was tried for it in vain was tried for all of them
        self.evictions.try_again(first)

    def queue(self, gang: GangState) -> None:
        """Puts a gang in line for what it still needs, or takes it out if it needs nothing."""
        waiting = pending_tasks(gang)
        if not waiting:
            self._dequeue(gang)
            if gang.ready() or gang.satisfied:
                self.reporter.withdraw(gang)
            return
        _, needed, rest, short, _ = request_of(gang, waiting)
        # What was lost may have no replacement yet: then all that waits is surplus, though a minimum is not met.
        band = Band.SURPLUS if gang.ready() or (gang.satisfied and not needed and not short) else Band.MINIMA
        if band is Band.SURPLUS and gang.spec.more_waves:  # D4: what a later wave needs is not for surplus
            self._dequeue(gang)
            self.reporter.withdraw(gang)
            return
        wanted = waiting if band is Band.SURPLUS else [*replacements(gang), *needed, *(rest if short else ())]
        if not wanted:
            self._dequeue(gang)
            return
        asked = signature.asked_by(self.state, gang, wanted)
        alone = (
            asked.moves
            or gang.spec.later
            or gang.spec.waves
            or self.waves.claims.of(gang)
            or self.kept.applies_to(gang)
            or self.reservations.of(gang)
            or self.nominations.of(gang)
        )
        lane = self.allocating
        if "backfill" in self._runs and all(task.cls.best_effort for task in wanted):
            lane = self.backfilling
        own = signature.own_facts(gang, wanted, self.reservations) if alone else None
        never_preempts = gang.spec.never_preempts or any(task.never_preempts for task in wanted)
        times = signature.times_of(self.state, wanted)
        equivalence = lane.put(
            gang,
            gang.spec.queue,
            self.order(gang, band),
            (own, *asked.parts, len(needed), short, gang.satisfied, never_preempts, times),
            asked.classes,
            volatile=bool(alone) or len(asked.classes) > 1,
            shared=not alone,
        )
        gang.equivalence, gang.why = equivalence, None
        if equivalence.unschedulable:  # its like failed, and nothing has changed since
            gang.attempted = frozenset(gang.tasks)
            self._count(gang)
            self.reporter.tell(gang, equivalence.diagnosis, of_gang=band is Band.MINIMA)

    def stands_alone_now(self, gang: GangState) -> bool:
        """Whether it stands with its like, and others' placements have come to matter to it: they may not matter to the
        others, whose labels may differ. Then it gets a place in line of its own."""
        equivalence = gang.equivalence
        if not equivalence.shared or not any(self.state.stateful.applies(task) for task in pending_tasks(gang)):
            return False
        self.queue(gang)
        return gang.equivalence is not equivalence

    def _knock(self, gang: GangState) -> None:
        started = gang.total_occupied > 0  # what runs was let in once, though its object may be a new one (V5)
        spec = gang.spec
        if "enqueue" not in self._runs or spec.min_resources is None or started:
            self.enqueued(gang)
            return
        shape = signature.at_the_door(self.state, gang, self.starving.is_starving(gang))
        equivalence = self.knocking.put(gang, gang.spec.queue, self.order(gang), shape)
        gang.equivalence, gang.why = equivalence, None
        if equivalence.unschedulable:
            self.reporter.tell(gang, equivalence.diagnosis, of_gang=True)

    def _dequeue(self, gang: GangState) -> None:
        SchedulingQueue.take(gang)
        gang.equivalence = gang.why = None

    def _count(self, gang: GangState) -> None:
        """What it asks for before its pods do, and what it will take once tried (M6, V4)."""
        asked = gang.spec.min_resources
        if not asked or gang.spec.finished:
            self.state.count(gang, {}, {})
            return
        amounts = self.state.resources.amounts(asked)
        self.state.nodes.widen()
        gated = any(task.status is TaskStatus.GATED for task in gang.tasks.values())
        beyond = gang.spec.enqueued_by in BEYOND_FREE_ROOM
        tried = (
            not gang.attempted.isdisjoint(gang.tasks)
            or gang.spec.tried
            or any(task.status in _BEEN_PLACED for task in gang.tasks.values())
        )
        pending = gang.spec.enqueued and not tried and not gang.satisfied and not gated and not beyond
        self.state.count(gang, {} if gang.tasks else amounts, amounts if pending else {})

    def _expect(self, gang: GangState) -> None:
        """Notes whether its pods are still to come."""
        comes = gang.counted is not None and gang.counted[2] and gang.missing()
        self._expect_in(gang, gang.spec.queue if comes else "")

    def _expect_in(self, gang: GangState, queue: str) -> None:
        if gang.expected_in == queue:
            return
        if gang.expected_in:
            del self.coming[gang.expected_in][gang.key]
            if not self.coming[gang.expected_in]:
                del self.coming[gang.expected_in]
        if queue:
            self.coming.setdefault(queue, {})[gang.key] = gang
        gang.expected_in = queue

    def expected(self, queue: str) -> list[GangState]:
        """Gangs of a queue that were let in and whose pods do not exist yet."""
        return list(self.coming.get(queue, {}).values())

    def surplus_waits(self, queue: str, order: Order) -> bool:
        """G3: a gang that comes first was let in, and its pods are being made. It is not waited for without end."""
        for gang in self.expected(queue):
            since = gang.spec.enqueued_at
            if since is not None and self.now < since + PODS_EXPECTED_WITHIN and self.order(gang) < order:
                until = since + PODS_EXPECTED_WITHIN
                self._surplus_until = until if self._surplus_until is None else min(until, self._surplus_until)
                return True
        return False

    # ---- room that is kept for others, and for itself

    def constraints(
        self, gang: GangState, exclude: frozenset[GangKey] = frozenset(), *, honor_run_times: bool = True
    ) -> Constraints:
        """Closes nodes that are reserved for other gangs (R5), or needed by partially bound ones (G11). Reservations of
        the gangs in `exclude` are ignored. `honor_run_times=False` disables R8: a gang that waits for evictions may not
        end before a reservation is due."""
        kept = self.partial_gangs.closed_to(gang) if self.partial_gangs else None
        if kept is None and not self.reservations:
            return UNCONSTRAINED
        nominated = [task for mate in self.groups.mates(gang) for task in self.nominations.of(mate)]
        freed_rows = [self.state.nodes.rows[task.node] for task in nominated]
        now = self.now if honor_run_times else None

        def closed(task: Task) -> list[tuple[str, Bools]]:
            found = [(diagnosis.KEPT_FOR_PARTIAL, kept)] if kept is not None else []
            reserved = self.reservations.closed_to(task.gang, task, now, exclude)
            if reserved is not None and freed_rows:  # room that is freed for the gang is its own
                reserved = reserved.copy()
                reserved[freed_rows] = False
            return found if reserved is None else [*found, (diagnosis.RESERVED, reserved)]

        return Constraints(closed)

    def take_own_places(self, transaction: Transaction, gang: GangState) -> list[tuple[Task, int]]:
        """What is kept for a gang is there for it: room that was made is free for it, and reserved nodes take the tasks
        that they are reserved for, as far as there is room (R7). Others who wait for room on the same nodes stand aside
        meanwhile, and are returned: they come back with `give_back`."""
        others = self.nominations.lift(transaction, gang)
        take_reserved(self.placer, transaction, gang, self.reservations.of(gang))
        return others

    def give_back(self, transaction: Transaction, others: Sequence[tuple[Task, int]]) -> None:
        """Whoever stood aside is nominated again, unless the transaction was undone anyway."""
        for task, row in others:
            if task.status is TaskStatus.PENDING:
                transaction.hold_again(task, row, TaskStatus.NOMINATED)

    def _tell_times_apart(self) -> None:
        """While nodes are reserved, gangs of one shape and different run times may fare differently."""
        timed = bool(self.reservations) or self.easy is not None
        if timed != self.state.timed:
            self.state.timed = timed
            for gang in self.state.gangs.values():
                if gang.equivalence is not None and any(task.run_time is not None for task in pending_tasks(gang)):
                    self.state.touch(gang)

    # ---- what actions do

    def refused(self, decision: SetAside) -> None:
        """A record could not be written: nobody relies on it."""
        match decision.kind:
            case claim_records.HOLD:
                self.holds.refused(decision.gang)
            case claim_records.RESERVE:
                self.reservations.refused(decision.gang)
            case claim_records.PREEMPT:
                self.nominations.refused(decision.gang)
            case _:
                self.waves.claims.refused(decision.gang)

    def enqueued(self, gang: GangState, reason: str = "Enqueued") -> None:
        """M6: from now on its pods are created and tried."""
        self._dequeue(gang)
        self.reporter.withdraw(gang)
        gang.spec = msgspec.structs.replace(gang.spec, enqueued=True, enqueued_at=self.now, enqueued_by=reason)
        gang.attempted = frozenset()
        self._count(gang)
        self._decisions.append(Enqueue(gang.key, reason))
        if gang.missing():
            self._expect(gang)
            self.state.touch(gang)  # its pods are made now that it is let in: read once they are there
        else:
            self.read(gang)

    def bind(self, gang: GangState, placed: Sequence[Task], commits: bool) -> None:
        """The tasks that were placed are bound; if `commits`, the last of them completes the minima."""
        self.bind_together([gang], placed, commits)

    def bind_together(self, gangs: Sequence[GangState], placed: Sequence[Task], commits: bool) -> None:
        """The same for the gangs of a group, by one decision: the very last Binding completes them all (K7, G11)."""
        for one in gangs:
            one.attempted = frozenset(one.tasks)
            self._count(one)
            self.served.append((one.spec.queue, self.order(one)))
            self.evictions.see(one)
        self.state.events.any = True  # where others are may matter to those whose tasks look at it
        self.decide(binding(self.state, gangs, placed, commits))
        for one in gangs:
            self.reservations.end(one, "ReservationUsed", "its pods are bound")
            if one.ready() or not self.nominations.of(one):
                self.nominations.end(one, "Landed", "its pods are bound")
            if commits or one.ready():
                self.reporter.withdraw(one)

    def sleep(self, lane: SchedulingQueue, equivalence: EquivalenceClass, told: Diagnosis, of_gang: bool) -> None:
        """The first of a bucket failed: all of it sleeps, and hears why."""
        fresh = lane.sleep(equivalence, told)
        for gang in fresh:
            if gang.equivalence is equivalence:
                gang.attempted = frozenset(gang.tasks)
                self._count(gang)
        hearers = {
            gang.key: gang for gang in [*equivalence.first(TOLD_OF_A_BUCKET), *fresh] if gang.equivalence is equivalence
        }
        for gang in hearers.values():
            self.reporter.tell(gang, told, of_gang)
            for mate in self.groups.mates(gang) if of_gang and not gang.satisfied else ():
                if mate is not gang and not mate.satisfied:
                    mate.why = told
                    self.reporter.tell(mate, told, of_gang)

    def pending(self) -> list[Pending]:
        """Every gang whose minima are not all placed, and why (G10)."""
        return self.reporter.pending()
