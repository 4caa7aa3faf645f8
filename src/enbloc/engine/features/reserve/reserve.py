"""reserve: reserves nodes for starving gangs, on which resources become free until the gang can start (R)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.claims.placeholders import is_claim
from enbloc.engine.core.claims.room import is_beyond_queue
from enbloc.engine.core.cycle import Cycle, Turn
from enbloc.engine.core.placement.attempt import runs, walk
from enbloc.engine.core.placement.constraints import UNCONSTRAINED
from enbloc.engine.core.placement.domain_choices import domain_choices
from enbloc.engine.core.placement.request import needed_members, reaches_minima, request_of, waits_for
from enbloc.engine.core.queue_loop import is_blocked
from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Bools, Request, total
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus, pending_tasks
from enbloc.engine.events import EventKind
from enbloc.engine.features.admission.awaited_pods import AwaitedPods
from enbloc.engine.features.backfill.expected_start import ExpectedStarts
from enbloc.engine.features.reserve.reservations import Reservations
from enbloc.engine.features.reserve.starvation import Starvation
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

DOMAINS_TRIED: Final = 64
"""At most 64 domains are planned for a gang whose pods must be together."""

Place = tuple[Task, int]
Floats = NDArray[np.float64]
_N = TypeVar("_N", float, Floats)


def run(cycle: Cycle) -> None:
    for unit in _starving(cycle):
        with Turn(cycle, unit[0]):
            if not _is_settled(cycle, unit):
                _serve(cycle, unit)
    cycle.features.get(ExpectedStarts).forecast()


def _serve(cycle: Cycle, unit: Sequence[GangState]) -> None:
    """Reserves nodes for gangs that start together, if no gang of higher order was scheduled."""
    if _higher_order_was_scheduled(cycle, unit[0]):
        cycle.state.events.add(EventKind.RESERVE_DEFERRED)
        return
    if cycle.features.get(AwaitedPods).above(unit[0].priority):
        return  # G8: pods of a gang of higher priority are being created; a cycle follows when they exist
    lower = cycle.claims.closing.lower_than(min(gang.priority for gang in unit))
    plan = _Plan(cycle, lower)
    places = plan.places(unit)
    if places is None:
        cycle.features.get(Starvation).note_failed(unit[0], _facts(cycle, unit))
        _report(cycle, unit, _why_not(cycle, unit))
        return
    claims = _claims_to_make(cycle, unit, places)
    if not cycle.claims.records.fit(claims):
        cycle.features.get(Starvation).note_failed(unit[0], _facts(cycle, unit))
        _report(cycle, unit, "no nodes are reserved for it: the record of its pods is too long for one object")
        return
    _report(cycle, unit, "")
    _end_those_taken_over(cycle, plan, lower, unit[0])
    for claim in claims:
        cycle.features.get(Reservations).make(claim)


def _claims_to_make(cycle: Cycle, unit: Sequence[GangState], places: Sequence[tuple[Task, int]]) -> list[Claim]:
    """One for each gang of the unit that has tasks to place."""
    names, found = cycle.state.nodes.names, []
    for gang in unit:
        of_gang = [(task, names[row]) for task, row in places if task.gang.key == gang.key]
        if of_gang:
            found.append(cycle.features.get(Reservations).claim(gang, of_gang, cycle.now_ns))
    return found


def _why_not(cycle: Cycle, unit: Sequence[GangState]) -> str:
    """R6: what gangs say that need more nodes than may be reserved; empty: something else keeps them waiting."""
    everyone = frozenset(gang.key for gang in cycle.claims.closing.gangs())
    bounded, unbounded = _Plan(cycle, everyone), _Plan(cycle, everyone, percent=100)
    if bounded.places(unit) is not None or unbounded.places(unit) is None:
        return ""
    share = f"{bounded.limit} of {unbounded.limit} nodes, which may be reserved at once"
    return f"no nodes are reserved for it: it needs more than {share} (reservedNodePercent)"


def _report(cycle: Cycle, unit: Sequence[GangState], note: str) -> None:
    """Reports why no nodes are reserved for gangs; an empty note ends what was reported before."""
    for gang in unit:
        why = cycle.queues.why(gang)
        if cycle.claims.note(gang, ClaimKind.RESERVE, note) and note and why is not None:
            cycle.reporter.report(gang, why, of_gang=True)


def _end_those_taken_over(cycle: Cycle, plan: _Plan, lower: frozenset[GangKey], by: GangState) -> None:
    """R3: reservations of lower priority that no longer fit beside a planned one end, before it is made. The first in
    order are kept."""
    reviewed: set[GangKey] = set()
    for gang in sorted((cycle.state.gangs[key] for key in lower), key=cycle.order.across_queues):
        mates = cycle.units.partners(gang)
        if gang.key in reviewed:
            continue
        reviewed |= {mate.key for mate in mates}
        if not plan.try_keeping(mates):
            for mate in mates:
                message = f"its nodes are reserved for {cycle.titles.of(by, mate.key.namespace)}, of higher priority"
                cycle.features.get(Reservations).end(mate, "ReservationEnded", message)


def mend(cycle: Cycle, lower: frozenset[GangKey], by: Sequence[GangState]) -> None:
    """R5: a gang of higher priority was placed on nodes that are reserved for lower ones. The slots there are given up;
    their tasks are reserved for elsewhere at once, or the reservation ends."""
    taken = {task.node for gang in by for task in gang.tasks.values() if task.status is TaskStatus.ASSUMED}
    taken |= {task.node for gang in by for task in cycle.features.get(Waves).of(gang)}
    reservations = cycle.features.get(Reservations)
    gangs = [cycle.state.gangs[key] for key in lower if key in cycle.state.gangs]
    for gang in sorted(gangs, key=cycle.order.across_queues):
        claim = cycle.claims.of(gang, ClaimKind.RESERVE)
        if claim is None or taken.isdisjoint(claim.nodes):
            continue
        kept = [(slot.task, slot.node) for slot in claim.slots.values() if slot.node not in taken and slot.task]
        lost = [slot.task for slot in claim.slots.values() if slot.node in taken and slot.task]
        plan = _Plan(cycle, frozenset({gang.key}), with_started=False)
        for task, node in kept:
            plan.keep(task, node)
        found = plan.places_of(gang, lost) if not gang.is_constrained else None  # T7: elsewhere may be another domain
        places = [*kept, *((task, cycle.state.nodes.names[row]) for task, row in found or ())]
        if found is None or not reservations.make(reservations.claim(gang, places, claim.clock_ns)):
            for mate in cycle.units.partners(gang):
                title = cycle.titles.of(by[0], mate.key.namespace)
                reservations.end(mate, "ReservationEnded", f"its nodes were used by {title}, of higher priority")


def _starving(cycle: Cycle) -> list[list[GangState]]:
    """Starving units whose attempt failed, the highest in order first; gangs that start together are one unit. Settled
    ones are among them if another is not: once nodes are taken over for that one they may be so no longer (R3)."""
    found: dict[int, list[GangState]] = {}
    for gang in cycle.features.get(Starvation).gangs.values():
        unit = cycle.starting(gang)
        equivalence = cycle.queues.equivalence_of(unit[0]) if unit else None
        if equivalence is not None and equivalence.unschedulable and cycle.queues.placement.holds(equivalence):
            found[id(unit[0])] = unit
    if all(_is_settled(cycle, unit) for unit in found.values()):
        return []
    units = [unit for unit in found.values() if _may_reserve(cycle, unit)]
    return sorted(units, key=lambda unit: cycle.order.across_queues(unit[0]))


def _is_settled(cycle: Cycle, unit: Sequence[GangState]) -> bool:
    """Whether nodes are reserved for all that the unit needs, or could not be and no fact that bears on it changed."""
    if cycle.features.get(Starvation).has_failed(unit[0], _facts(cycle, unit)):
        return True
    return all(cycle.features.get(Reservations).condition_ready(gang) for gang in unit)


def _may_reserve(cycle: Cycle, unit: Sequence[GangState]) -> bool:
    if not unit[0].may_claim or any(cycle.claims.nominated(gang) for gang in unit):
        return False  # victims are being evicted for it already
    return not is_blocked(cycle, unit[0]) and not any(cycle.obstacles.of_claim(gang) for gang in unit)


def _higher_order_was_scheduled(cycle: Cycle, gang: GangState) -> bool:
    """R3: whether a gang of higher order was scheduled in this cycle."""
    queues, totals = cycle.state.queues, cycle.state.foreign_room.shared()
    own, order = gang.spec.queue, cycle.order(gang)
    turn = queues.order(queues.get(own), totals)
    return any(
        other_order < order if queue == own else queues.order(queues.get(queue), totals) < turn
        for queue, other_order in cycle.served
    )


def _facts(cycle: Cycle, unit: Sequence[GangState]) -> object:
    """What decides whether nodes could be reserved for gangs: a failed plan is not retried while it is equal (G9)."""
    state = cycle.state
    later = cycle.features.get(Waves).later_tasks  # nodes are reserved for them, too (D5)
    tasks = [task for gang in unit for task in (*pending_tasks(gang), *later(gang))]
    stateful = any(map(state.stateful.applies, tasks))
    limited = state.queues.guarantees or any(place.limits for gang in unit for place in state.queue_of(gang).ancestors)
    claimed = any(True for _ in cycle.claims.every())  # beside reservations, what started since counts (R4)
    # R6: which nodes are the nearest ones depends on what is free, and where tasks differ also which ones are left.
    ranked = cycle.config.reserve.node_percent < 100 or len({task.cls.id for task in tasks}) > 1
    by_use = state.nodes.version if stateful or limited or claimed or ranked else 0
    return (state.nodes.static_version, cycle.claims.closing.version, by_use)


class _Plan:
    """Chooses the nodes to reserve for a gang's tasks, whether they are free now or not (R4)."""

    def __init__(
        self, cycle: Cycle, ignored: frozenset[GangKey], percent: int | None = None, *, with_started: bool = True
    ) -> None:
        """Reservations of the gangs in `ignored` do not count. `percent` of all nodes hold reservations at once, by
        default as configured. `with_started`: tasks count that started on a node after it was reserved for others."""
        self._cycle = cycle
        self._ignored = ignored
        self._with_started = with_started
        self._state = cycle.state
        closing = cycle.claims.closing
        alive = int(self._state.nodes.alive[: self._state.nodes.count].sum())
        rows = self._state.nodes.rows
        names = closing.nodes_of_others(ignored)
        self._reserved = {rows[name]: dict(closing.on(name, ignored)) for name in names if name in rows}
        percent = cycle.config.reserve.node_percent if percent is None else percent
        self.limit = -(-alive * percent // 100)
        listed = cycle.config.plugin("nodeorder")
        self._ranks_by_nearness = listed is None or listed.points.get("resourceNodeOrder", True)
        """R6, unless disabled in the config."""
        self._within = UNCONSTRAINED
        """Closes the nodes outside of the domain that is planned for (T7)."""
        self._staying: frozenset[str] = frozenset()
        """Members that stay on their nodes: those that the gangs which are planned for need themselves (R4)."""
        self._idle: dict[int, dict[int, int]] = {}
        """Row → column → what this plan leaves free; a reserved task counts only if it fits now."""

    def places(self, unit: Sequence[GangState]) -> list[Place] | None:
        """A node for every task that the minima need, or `None` (R3); in one domain for those that must be together,
        the one with the most room now (T7)."""
        before = {row: dict(amounts) for row, amounts in self._reserved.items()}
        self._stay(unit[0])
        for within in domain_choices(self._state, [request_of(gang) for gang in unit], UNCONSTRAINED, DOMAINS_TRIED):
            self._reserved, self._idle = {row: dict(amounts) for row, amounts in before.items()}, {}
            self._within = within
            found = self._places(unit)
            if found is not None:
                return found
        return None

    def _places(self, unit: Sequence[GangState]) -> list[Place] | None:
        moved: list[Place] = []
        found: list[Place] = []
        try:
            for gang in unit:
                if self._queue_is_full(gang):
                    return None
                chosen = self._of_gang(gang, moved)
                if chosen is None or not reaches_minima(gang, Counter(task.role for task, _ in chosen)):
                    return None
                found += chosen
        finally:
            for task, row in reversed(moved):
                self._state.stateful.remove(task, row)
        return found

    def _stay(self, gang: GangState) -> None:
        mates = [gang] if gang.satisfied else self._cycle.units.mates(gang)  # by itself (R1)
        self._staying = frozenset(task.uid for mate in mates for task in needed_members(mate))

    def keep(self, task: Task, node: str) -> None:
        """A task keeps its reserved node."""
        self._take(self._state.nodes.rows[node], task.cls.request)

    def places_of(self, gang: GangState, tasks: Sequence[Task]) -> list[Place] | None:
        """A node for each of these tasks of a gang, or `None`."""
        moved: list[Place] = []
        found: list[Place] = []
        self._stay(gang)
        for run in runs(self._state, sorted(tasks, key=lambda task: task.order)):
            found += self._claim(run, len(run), moved)
        for task, row in reversed(moved):
            self._state.stateful.remove(task, row)
        return found if len(found) == len(tasks) else None

    def try_keeping(self, gangs: Sequence[GangState]) -> bool:
        """Keeps what these gangs reserve where it is, if it fits beside what is planned (R4, R6); whether it does."""
        before = {row: dict(amounts) for row, amounts in self._reserved.items()}
        self._with_started, self._staying = False, frozenset()  # they stand already
        for gang in gangs:
            claim = self._cycle.claims.of(gang, ClaimKind.RESERVE)
            for slot in claim.slots.values() if claim is not None else ():
                row = self._state.nodes.rows.get(slot.node)
                if row is None or slot.task is None or not self._may_claim(row, slot.task.cls.request):
                    self._reserved = before
                    return False
                self._take(row, slot.task.cls.request)
        return True

    def _queue_is_full(self, gang: GangState) -> bool:
        """Whether the queue of the gang may not use more, so that a reservation would not help."""
        wanted = (*waits_for(gang).minimum, *self._cycle.features.get(Waves).later_tasks(gang))
        asked = total(task.cls.request for task in wanted)
        queues, queue = self._state.queues, self._state.queue_of(gang)
        if queues.over_capability(queue, asked, with_enqueued=False) is not None:
            return True
        return is_beyond_queue(self._state, gang, asked)

    def _of_gang(self, gang: GangState, moved: list[Place]) -> list[Place] | None:
        request, later = waits_for(gang), self._cycle.features.get(Waves).later_tasks(gang)
        found: list[Place] = []

        def place(run: Sequence[Task], count: int, of_total: bool) -> int:
            placed = self._claim(run, count, moved)
            found.extend(placed)
            return len(placed)

        return found if walk(self._state, request._replace(later=later), place) else None

    def _claim(self, run: Sequence[Task], count: int, moved: list[Place]) -> list[Place]:
        """The nearest rows for the first tasks of a run. A row is only less near the more is claimed of it, so of
        `count` tasks none goes beyond the `count` nearest rows that may be claimed, and those that hold reservations
        already."""
        task, request = run[0], run[0].cls.request
        open_rows = self._open(task)
        near = self._nearness(request)
        reserved = [row for row in self._reserved if open_rows[row]]
        open_rows[reserved] = False
        others = np.flatnonzero(open_rows) if len(self._reserved) < self.limit else np.zeros(0, np.intp)
        nearest = others[np.lexsort((others, -near[others]))].tolist()
        allowed = [*reserved, *islice((row for row in nearest if self._may_claim(row, request)), count)]
        heap = [(-self._near_now(row, request), row) for row in allowed]
        heapq.heapify(heap)
        found: list[Place] = []
        while heap and len(found) < count:
            _, row = heapq.heappop(heap)
            if not self._may_claim(row, request):
                continue
            one = run[len(found)]
            self._take(row, request)
            found.append((one, row))
            if self._state.stateful.applies(one):
                self._state.stateful.add(one, row)
                moved.append((one, row))
            heapq.heappush(heap, (-self._near_now(row, request), row))
        return found

    def _open(self, task: Task) -> Bools:
        """Nodes that pass every filter but free resources, and whose allocatable is large enough."""
        nodes = self._state.nodes
        found: Bools = self._state.candidates(task.cls).passing().copy()
        for column, amount in task.cls.request:
            found &= nodes.allocatable[column, : nodes.count] >= amount
        if self._state.stateful.applies(task):
            for _, passes in self._state.stateful.masks(task):
                found &= passes[: nodes.count]
        outside = self._within.closed_rows(task)
        if outside is not None:
            found &= ~outside[: nodes.count]
        for _, kept in self._cycle.features.filter(task.gang):
            found &= ~kept[: nodes.count]
        return found

    def _may_claim(self, row: int, request: Request) -> bool:
        """R4, R6: reservations stay within the allocatable of a node, and within `reservedNodePercent` of the nodes."""
        if row not in self._reserved and len(self._reserved) >= self.limit:
            return False
        claimed = self._claimed_on(row)
        allocatable = self._state.nodes.allocatable
        return all(claimed.get(column, 0) + amount <= allocatable[column, row] for column, amount in request)

    def _claimed_on(self, row: int) -> Mapping[int, int]:
        """What is reserved on a row, plus what is held or nominated there, what members have there that the gang needs,
        and what started there since it was reserved for others: else gangs that are reserved for beside them, one after
        the other, would keep them waiting."""
        claimed = dict(self._reserved.get(row, {}))
        node = self._state.nodes.names[row]
        since_ns = self._cycle.claims.closing.since(node, self._ignored) if self._with_started else None
        for task in self._state.stateful.assigned_to(node):
            if is_claim(task) or task.uid in self._staying or (since_ns is not None and _started_since(task, since_ns)):
                for column, amount in task.cls.request:
                    claimed[column] = claimed.get(column, 0) + amount
        return claimed

    def _take(self, row: int, request: Request) -> None:
        reserved = self._reserved.setdefault(row, {})
        idle = self._idle_of(row)
        has_room = all(idle[column] >= amount for column, amount in request)
        for column, amount in request:
            reserved[column] = reserved.get(column, 0) + amount
            if has_room:
                idle[column] -= amount

    def _idle_of(self, row: int) -> dict[int, int]:
        found = self._idle.get(row)
        if found is None:
            column_of = self._state.nodes.free[:, row].tolist()
            found = self._idle[row] = dict(enumerate(column_of))
        return found

    # ---- R6

    def _nearness(self, request: Request) -> Floats:
        """How near each row is to having the request free."""
        nodes = self._state.nodes
        if not self._ranks_by_nearness:
            return np.zeros(nodes.count)
        free = nodes.free[:, : nodes.count].astype(np.float64)
        parts = {column: np.clip(free[column], 0, float(amount)) / float(amount) for column, amount in request}
        return _near(parts, np.ones(nodes.count))

    def _near_now(self, row: int, request: Request) -> float:
        """The same for one row, less what this plan reserved on it."""
        if not self._ranks_by_nearness:
            return 0.0
        idle = self._idle_of(row)
        parts = {c: min(max(float(idle[c]), 0.0), float(amount)) / float(amount) for c, amount in request}
        return _near(parts, 1.0)


def _started_since(task: Task, since_ns: int) -> bool:
    """Whether a task was bound on its node since then; times of pods are in whole seconds."""
    if task.status is TaskStatus.RELEASING:
        return False
    return task.since_ns is None or task.since_ns >= since_ns // SECOND * SECOND


def _near(parts: Mapping[int, _N], whole: _N) -> _N:
    """`((cpu+mem)/2 + 2·scalar)/3` of the free part of each requested resource, 10 for all of it."""
    plain = (10 * parts.get(CPU, whole) + 10 * parts.get(MEMORY, whole)) / 2
    scalars = [10 * part for column, part in parts.items() if column not in (CPU, MEMORY, PODS)]
    if not scalars:
        return plain
    scalars_together = scalars[0]
    for scalar in scalars[1:]:
        scalars_together = scalars_together + scalar
    return (plain + 2 * (scalars_together / len(scalars))) / 3
