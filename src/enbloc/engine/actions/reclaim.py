"""reclaim: queues within their share get back what others use beyond theirs (P2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from enbloc.engine.actions.evict import evict_for_all
from enbloc.engine.engine import Engine
from enbloc.engine.eviction.evictable import Cell
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.tables.queues import ROOT, Queue
from enbloc.engine.tables.tasks import GangState, Task


def run(engine: Engine) -> None:
    using = [queue for queue in engine.state.queues.queues.values() if not queue.children and queue.demand.any()]
    if len(using) > 1:  # else there is nobody to take from
        evict_for_all(engine, "reclaim", _rules, claims_first=False)


def _rules(engine: Engine, unit: Sequence[GangState], needs: Sequence[PlacementRequest]) -> ByShare | None:
    asked: dict[int, int] = {}
    for need in needs:
        for task in need.minimum:
            for column, amount in task.cls.request:
                asked[column] = asked.get(column, 0) + amount
    rules = ByShare(engine, unit[0], asked)
    return rules if rules.cells() else None


class ByShare:
    """Whoever is in a queue above its share, before each eviction."""

    by_use = True

    def __init__(self, engine: Engine, gang: GangState, asked: dict[int, int]) -> None:
        self._engine = engine
        self._gang = gang
        self._asked = asked
        self._queues = engine.state.queues
        self._queues.update_deserved(engine.state.nodes.totals())
        self._own = engine.state.queue_of(gang)
        self._found: list[Cell] | None = None

    def cells(self) -> Sequence[Cell]:
        if self._found is None:
            queues = self._queues.queues.items()
            above = {name for name, queue in queues if self._may_take_from(queue) and self._gives(queue)}
            self._found = [cell for cell in self._engine.evictions.evictable.cells() if cell[0] in above]
        return self._found

    def _may_take_from(self, queue: Queue) -> bool:
        """Whether, with what is asked for, our queue and those above it would be within their share; not those that are
        above the other one too, which have it already."""
        if queue is self._own:
            return False
        places = [place for place in _below_root(self._own) if place not in queue.ancestors]
        return all(self._queues.within_share(place, self._asked) for place in places)

    def _gives(self, queue: Queue) -> bool:
        """Whether a queue, and those above it that are not above us too, have more than their share."""
        places = [place for place in _below_root(queue) if place not in self._own.ancestors]
        return all(place.facts.reclaimable and self._queues.above_share(place) for place in places)

    def allows(self, tasks: Sequence[Task]) -> bool:
        queue = self._engine.state.queue_of(tasks[0].gang)
        if queue is self._own or not self._gives(queue):
            return False
        if self._engine.evictions.was_evicted_by(self._gang, tasks[0].gang):
            return False
        less = _sum(tasks)
        places = [place for place in queue.ancestors if place not in self._own.ancestors]
        return not any(self._queues.below_guarantee(place, less) for place in places)

    def accepts(self, victims: Sequence[Task]) -> bool:
        """Whether the victims could not take it back at once: nobody evicts in turn (P3)."""
        if not self._queues.above_share(self._own):
            return True
        by_queue: dict[str, list[Task]] = {}
        for task in victims:
            by_queue.setdefault(task.gang.spec.queue, []).append(task)
        return not any(
            self._queues.within_share(self._queues.get(queue), _sum(tasks)) for queue, tasks in by_queue.items()
        )


def _below_root(queue: Queue) -> Iterator[Queue]:
    return (place for place in queue.ancestors if place.name != ROOT)


def _sum(tasks: Sequence[Task]) -> dict[int, int]:
    found: dict[int, int] = {}
    for task in tasks:
        for column, amount in task.cls.request:
            found[column] = found.get(column, 0) + amount
    return found
