"""Which tasks may be evicted for a gang: by priority inside its queue (preempt), or by shares of queues (reclaim)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from enbloc.engine.eviction.evictable import Cell
from enbloc.engine.eviction.history import EvictionHistory
from enbloc.engine.state.state import State
from enbloc.engine.tables.queues import ROOT, Queue
from enbloc.engine.tables.resources import total
from enbloc.engine.tables.tasks import GangState, Task


class Rules(Protocol):
    """Which tasks may be evicted for a gang."""

    @property
    def by_use(self) -> bool:
        """Whether it depends on what queues use."""
        ...

    def cells(self) -> Sequence[Cell]:
        """The queues and priorities whose tasks may be evicted, in the order in which victims are taken (P1)."""
        ...

    def allows(self, tasks: Sequence[Task]) -> bool:
        """Whether these tasks may be evicted, given what the plan evicts already."""
        ...

    def accepts(self, victims: Sequence[Task]) -> bool:
        """Whether the plan is valid as a whole, with its victims evicted and its tasks placed."""
        ...


class ByPriority:
    """Tasks in the same queue, of gangs of lower priority than the one given. For BestEffort tasks, which lack nothing
    but a place among a node's pods, only BestEffort tasks are evicted."""

    by_use = False

    def __init__(self, evictions: EvictionHistory, gang: GangState, priority: int, *, best_effort_only: bool) -> None:
        self._evictions = evictions
        self._gang = gang
        self._best_effort_only = best_effort_only
        queue = gang.spec.queue
        lower = [cell for cell in evictions.evictable.cells() if cell[0] == queue and cell[1] < priority]
        self._cells = sorted(lower, key=lambda cell: cell[1])

    def cells(self) -> Sequence[Cell]:
        return self._cells

    def allows(self, tasks: Sequence[Task]) -> bool:
        if self._best_effort_only and not all(task.cls.best_effort for task in tasks):
            return False
        return not any(self._evictions.was_evicted_by(self._gang, task.gang) for task in tasks)

    def accepts(self, victims: Sequence[Task]) -> bool:
        return True


class ByShare:
    """Tasks in queues that are above their share, judged before each eviction."""

    by_use = True

    def __init__(self, state: State, evictions: EvictionHistory, gang: GangState, asked: Mapping[int, int]) -> None:
        self._state = state
        self._evictions = evictions
        self._gang = gang
        self._asked = asked
        self._queues = state.queues
        self._queues.update_deserved(state.foreign_room.shared())
        self._own = state.queue_of(gang)
        self._found: list[Cell] | None = None
        self._within: dict[str, bool] = {}

    def cells(self) -> Sequence[Cell]:
        if self._found is None:
            found = list(self._evictions.evictable.cells())
            queues = map(self._queues.get, {cell[0] for cell in found})  # those that use nothing are not looked at
            above = {
                queue.name: self._furthest_first(queue)
                for queue in queues
                if self._may_take_from(queue) and self._gives(queue)
            }
            self._found = sorted(
                (cell for cell in found if cell[0] in above), key=lambda cell: (above[cell[0]], cell[1])
            )
        return self._found

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
        """Whether a queue, and those above it that are not above us too, have more than their share."""
        places = [place for place in _below_root(queue) if place not in self._own.ancestors]
        return all(place.facts.reclaimable and self._queues.above_share(place) for place in places)

    def _furthest_first(self, queue: Queue) -> tuple[tuple[float, int, str], ...]:
        """Sort key: the queue furthest above its share, among equals the least important; from the top down."""
        places = [place for place in _below_root(queue) if place not in self._own.ancestors]
        return tuple((-self._queues.share(place), place.facts.priority, place.name) for place in reversed(places))

    def allows(self, tasks: Sequence[Task]) -> bool:
        queue = self._state.queue_of(tasks[0].gang)
        if queue is self._own or not self._gives(queue):
            return False
        if self._evictions.was_evicted_by(self._gang, tasks[0].gang):
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


def _below_root(queue: Queue) -> Iterator[Queue]:
    return (place for place in queue.ancestors if place.name != ROOT)
