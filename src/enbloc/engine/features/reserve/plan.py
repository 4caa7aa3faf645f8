"""Which nodes are reserved for gangs, whether they are free now or not (R4, R6)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from enbloc.engine.core.claims.placeholders import is_claim
from enbloc.engine.core.claims.room import is_beyond_queue
from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.attempt import runs, walk
from enbloc.engine.core.placement.constraints import UNCONSTRAINED
from enbloc.engine.core.placement.domain_choices import domain_choices
from enbloc.engine.core.placement.request import needed_members, reaches_minima, request_of, waits_for
from enbloc.engine.core.tables.resources import CPU, MEMORY, PODS, Bools, Request, total
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

DOMAINS_TRIED: Final = 64
"""At most 64 domains are planned for a gang whose pods must be together."""

Place = tuple[Task, int]
Floats = NDArray[np.float64]
_N = TypeVar("_N", float, Floats)


class ReservationPlan:
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
        """A node for every task that the minima need, or `None`; in one domain for those that must be together,
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
        mates = [gang] if gang.satisfied else self._cycle.units.mates(gang)  # by itself
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

    # ---- which nodes are nearest to having room (R6)

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
