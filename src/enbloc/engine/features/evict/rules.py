"""Which tasks may be evicted for a gang: by priority inside its queue (preempt), or by shares of queues (reclaim)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import ClassVar

import numpy as np

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.placement.request import PlacementRequest
from enbloc.engine.core.tables.queues import ROOT, Queue
from enbloc.engine.core.tables.resources import PODS, Request, least, total
from enbloc.engine.core.tables.tasks import GangState, Task, TaskStatus
from enbloc.engine.features.evict.evictable import Cell
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.nominations import EvictedGangs


class Rules:
    """Which tasks may be evicted for gangs that start together. The base is what both have in common."""

    action: ClassVar[str]
    reason: ClassVar[str]
    """That of the event on a victim."""
    releases_claims = False
    """Whether all claims of lower priority are released for the gangs, not only reservations as the last resort."""
    by_use = False
    """Whether it depends on what queues use."""

    def __init__(self, cycle: Cycle, unit: Sequence[GangState]) -> None:
        self._state = cycle.state
        self._evictions = cycle.features.get(EvictionHistory)
        self._features = cycle.features
        self._unit = unit

    @classmethod
    def of(cls, cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> Rules:
        raise NotImplementedError

    def cells(self) -> Sequence[Cell]:
        """The queues and priorities whose tasks may be evicted, in the order in which victims are taken."""
        raise NotImplementedError

    def begin(self, requests: Sequence[PlacementRequest]) -> None:
        """A plan for these begins: terminating pods and claims that it may use do not count any more."""

    def not_barred(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """Those with tasks that an accepted plan could evict."""
        return cells

    def bars(self, tasks: Sequence[Task]) -> bool:
        """Whether no plan that evicts these tasks would be accepted, whatever else it evicts."""
        return False

    def allows(self, tasks: Sequence[Task]) -> bool:
        """Whether these tasks may be evicted, given what the plan evicts already."""
        raise NotImplementedError

    def _in_turn(self, tasks: Sequence[Task]) -> bool:
        return self._features.get(EvictedGangs).in_turn(self._unit, tasks)

    def accepts(self, victims: Sequence[Task]) -> bool:
        """Whether the plan is valid as a whole, with its victims evicted and its tasks placed."""
        return True


class ByPriority(Rules):
    """preempt: tasks in the same queue, of gangs of lower priority. For BestEffort tasks, which lack only a place among
    a node's pods, only BestEffort tasks are evicted."""

    action, reason, releases_claims = "preempt", "Preempted", True

    def __init__(self, cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> None:
        super().__init__(cycle, unit)
        self._best_effort_only = all(task.cls.best_effort for request in requests for task in request.everything)
        priority = min(gang.priority for gang in unit)  # S1: no gang is given the priority of its group
        queue, cells = unit[0].spec.queue, self._evictions.evictable.cells()
        self._cells = sorted((cell for cell in cells if cell[0] == queue and cell[1] < priority), key=itemgetter(1))

    @classmethod
    def of(cls, cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> ByPriority:
        return cls(cycle, unit, requests)

    def cells(self) -> Sequence[Cell]:
        return self._cells

    def allows(self, tasks: Sequence[Task]) -> bool:
        if self._best_effort_only and not all(task.cls.best_effort for task in tasks):
            return False
        return not self._in_turn(tasks)


class ByShare(Rules):
    """reclaim: tasks in queues that are above their share, judged before each eviction (P2)."""

    action, reason = "reclaim", "Reclaimed"
    by_use = True

    def __init__(self, cycle: Cycle, unit: Sequence[GangState], asked: Mapping[int, int]) -> None:
        super().__init__(cycle, unit)
        self._asked = asked
        self._queues = self._state.queues
        self._queues.update_deserved(self._state.foreign_room.shared())
        self._own = self._state.queue_of(unit[0])
        self._found: list[Cell] | None = None
        self._is_simple = (
            self._own.name != ROOT
            and not self._own.children
            and all(place.name == ROOT for place in self._own.ancestors[1:])
        )
        """Our queue is above none and below none but the root: the same queues give to it as to others like it."""
        self._within: dict[str, bool] = {}
        self._barred: dict[str, frozenset[int]] | None = None
        """By queue: the columns of which it could take back what a plan evicts; `None`: our queue may still be within
        its share when the plan is carried out, and then all are accepted."""

    @classmethod
    def of(cls, cycle: Cycle, unit: Sequence[GangState], requests: Sequence[PlacementRequest]) -> ByShare:
        return cls(cycle, unit, total(task.cls.request for request in requests for task in request.everything))

    def cells(self) -> Sequence[Cell]:
        if self._found is None:
            if not self._is_simple:
                self._found = self._above_share(self._may_take_from)
            elif self._is_within_share(self._own):
                above = self._evictions.by_use("above their share", lambda: self._above_share(lambda queue: True))
                self._found = [cell for cell in above if cell[0] != self._own.name]
            else:
                self._found = []
        return self._found

    def _above_share(self, may_take_from: Callable[[Queue], bool]) -> list[Cell]:
        found = list(self._evictions.evictable.cells())
        queues = map(self._queues.get, {cell[0] for cell in found})  # those that use nothing are not looked at
        above = {
            queue.name: self._furthest_first(queue) for queue in queues if may_take_from(queue) and self._gives(queue)
        }
        return sorted((cell for cell in found if cell[0] in above), key=lambda cell: (above[cell[0]], cell[1]))

    def _apart(self, queue: Queue) -> list[Queue]:
        """A queue and those above it, without the ones that are above us too."""
        if self._is_simple:
            return [place for place in queue.ancestors if place.name != ROOT]
        return [place for place in _below_root(queue) if place not in self._own.ancestors]

    def _may_take_from(self, queue: Queue) -> bool:
        """Whether, with what is asked for, our queue and those above it would be within their share; not those that are
        above the other one too, which have it already."""
        if queue is self._own:
            return False
        places = [place for place in _below_root(self._own) if place not in queue.ancestors]
        return all(map(self._is_within_share, places))

    def _is_within_share(self, place: Queue) -> bool:
        """Of our queue or one above it: the same for all that it could take from."""
        known = self._within.get(place.name)
        if known is None:
            known = self._within[place.name] = self._queues.within_share(place, self._asked)
        return known

    def _gives(self, queue: Queue) -> bool:
        """Whether a queue, and those above it that are not above us too, have more than their share. One that was
        deleted gives nothing: its pods run on (V5)."""
        return queue.exists and all(
            place.facts.reclaimable and self._queues.above_share(place) for place in self._apart(queue)
        )

    def _furthest_first(self, queue: Queue) -> tuple[tuple[float, int, str], ...]:
        """Sort key: the queue furthest above its share, among equals the least important; from the top down."""
        places = self._apart(queue)
        return tuple((-self._queues.share(place), place.facts.priority, place.name) for place in reversed(places))

    def begin(self, requests: Sequence[PlacementRequest]) -> None:
        is_alone = all(self._state.queue_of(one.gang) is self._own for one in requests)
        more = _at_least(requests) if is_alone else {}
        self._barred = {} if is_alone and self._queues.above_share(self._own, more) else None

    def not_barred(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        if self._barred is None:
            return cells
        if not self._is_simple:
            return [cell for cell in cells if not self._bars_cell(cell)]

        def compute() -> set[Cell]:
            return {cell for cell in self._evictions.evictable.cells() if not self._bars_cell(cell)}

        left = self._evictions.by_use("not barred", compute)
        return [cell for cell in cells if cell in left] if left else []

    def _bars_cell(self, cell: Cell) -> bool:
        columns = self._columns_barred(cell[0])
        return bool(columns) and all(columns.intersection(kind) for kind in self._evictions.evictable.kinds(cell))

    def bars(self, tasks: Sequence[Task]) -> bool:
        if self._barred is None:
            return False
        return any(
            column in self._columns_barred(task.gang.spec.queue) for task in tasks for column, _ in task.cls.request
        )

    def _columns_barred(self, name: str) -> frozenset[int]:
        """With its victims a queue uses as much as before. So whether it could take them back (`accepts`) depends on
        the resources that they use, and on nothing else that a plan evicts."""
        if self._barred is None:
            return frozenset()
        known = self._barred.get(name)
        if known is None:
            queue = self._queues.get(name)
            is_above_us = name == ROOT if self._is_simple else queue in self._own.ancestors
            columns = [] if is_above_us else np.flatnonzero(queue.used <= queue.deserved).tolist()
            known = self._barred[name] = frozenset(columns) - {PODS}
        return known

    def allows(self, tasks: Sequence[Task]) -> bool:
        queue = self._state.queue_of(tasks[0].gang)
        if queue is self._own or not self._gives(queue):
            return False
        if self._in_turn(tasks):
            return False
        less = total(task.cls.request for task in tasks)
        places = [place for place in queue.ancestors if place not in self._own.ancestors]
        return not any(self._queues.below_guarantee(place, less) for place in places)

    def accepts(self, victims: Sequence[Task]) -> bool:
        """Whether the victims could not take it back at once: no two gangs evict each other in turn (P3)."""
        if not self._queues.above_share(self._own):
            return True
        by_queue: dict[str, list[Task]] = {}
        for task in victims:
            by_queue.setdefault(task.gang.spec.queue, []).append(task)
        return not any(
            self._queues.within_share(self._queues.get(queue), total(task.cls.request for task in tasks))
            for queue, tasks in by_queue.items()
        )


def _at_least(requests: Sequence[PlacementRequest]) -> dict[int, int]:
    """What the tasks that a plan places use at least, by column, whichever of `rest` they are."""
    found: list[Request] = []
    for one in requests:
        found += [task.cls.request for task in one.needed if task.status is TaskStatus.PENDING and task.ours]
        pending = [task for task in one.rest if task.status is TaskStatus.PENDING] if one.short else []
        short = max(0, one.short - len(one.rest) + len(pending))
        found.append(tuple(least([task.cls.request if task.ours else () for task in pending], short).items()))
    return total(found)


def _below_root(queue: Queue) -> Iterator[Queue]:
    return (place for place in queue.ancestors if place.name != ROOT)
