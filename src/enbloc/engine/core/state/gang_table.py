"""All gangs by key: their priorities, what they add to their queues, and which of them the next cycle reads.

A gang is known as long as it has an object or pods. Its tasks are `State`'s, and are counted by `TaskCounts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec

from enbloc.engine.core.state.gang_demand import GangDemand
from enbloc.engine.core.state.task_counts import TaskCounts
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.gang_priority import granted_priority
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.events import ClusterEvents, EventKind
from enbloc.gangs import gang_tree
from enbloc.gangs.model import GangKey, GangSpec


class GangTable:
    def __init__(
        self,
        nodes: NodeTable,
        counts: TaskCounts,
        demand: GangDemand,
        events: ClusterEvents,
        class_of: Callable[[GangState, Task], TaskClass],
    ) -> None:
        self._nodes = nodes
        self._counts = counts
        self._demand = demand
        self._events = events
        self._class_of = class_of
        self.gangs: dict[GangKey, GangState] = {}
        self.dirty: dict[GangKey, GangState] = {}
        """Gangs whose facts changed: the next cycle reads them."""
        self.unmarked: dict[GangKey, GangState] = {}
        """Gangs that lost the pod with their commit mark (G11)."""
        self.priorities: Counter[int] = Counter()
        """Priority → number of gangs."""
        self.forgotten = 0
        """Number of gangs that were forgotten so far."""
        self.when_forgotten: Callable[[GangState], None] = lambda gang: None
        """Called for each of them, so that others drop what they keep of it."""

    def add(self, spec: GangSpec) -> GangState:
        gang = self.gangs[spec.key] = GangState(spec)
        gang.priority = granted_priority(gang)
        self.priorities[gang.priority] += 1
        return gang

    def put(self, spec: GangSpec) -> None:
        """A gang was added or changed."""
        gang = self.gangs.get(spec.key)
        if gang is None:
            self.touch(self.add(spec))
            return
        if gang.assumed is not None and gang.assumed == spec.observed:
            gang.spec = msgspec.structs.replace(gang.spec, observed=gang.assumed)  # the echo of what was decided
        gang.assumed = None
        spec = _with_choice(gang, spec)
        if gang.spec == spec:
            return
        if _eviction_facts(gang.spec) != _eviction_facts(spec):
            self.touch_rows(gang)
        if gang.spec.queue != spec.queue:
            for task in gang.tasks.values():
                self._counts.count_queue(task, -1)
            gang.spec = spec
            for task in gang.tasks.values():
                self._counts.count_queue(task, 1)
            self._events.add(EventKind.QUEUE_USES_LESS)
        reselected = gang.spec.node_selector != spec.node_selector
        gang.spec = spec
        if reselected:
            for task in gang.tasks.values():
                self._counts.remove(task)
                task.cls = self._class_of(gang, task)
                self._counts.add(task)
        self.set_priority(gang)
        self.touch(gang)

    def remove(self, key: GangKey) -> None:
        """The object of a gang was deleted."""
        gang = self.gangs.get(key)
        if gang is not None and not gang.tasks:
            self.forget(gang)

    def forget(self, gang: GangState) -> None:
        """The gang has neither an object nor pods any more."""
        self._demand.remove(gang)
        self.forgotten += 1
        if self.gangs.pop(gang.key, None) is not None:
            self._count_priority(gang.priority, -1)
        self.dirty.pop(gang.key, None)
        self.unmarked.pop(gang.key, None)
        self.when_forgotten(gang)

    def touch(self, gang: GangState) -> None:
        """The next cycle reads the gang again."""
        self.dirty[gang.key] = gang

    def touch_known(self, key: GangKey | None) -> None:
        gang = self.gangs.get(key) if key is not None else None
        if gang is not None:
            self.touch(gang)

    def set_priority(self, gang: GangState) -> None:
        was = gang.priority
        gang.priority = granted_priority(gang)
        if gang.priority != was:
            self._count_priority(was, -1)
            self._count_priority(gang.priority, 1)
            self.touch_rows(gang)

    def _count_priority(self, priority: int, by: int) -> None:
        self.priorities[priority] += by
        if not self.priorities[priority]:
            del self.priorities[priority]

    def touch_rows(self, gang: GangState) -> None:
        """Invalidates the cache of evictable resources for the gang's nodes."""
        for task in gang.tasks.values():
            self.touch_row(task)

    def touch_row(self, task: Task) -> None:
        task.gang.version += 1
        row = self._nodes.rows.get(task.node)
        if row is not None:
            self._nodes.touch(row)
            self._events.add(EventKind.VICTIMS_CHANGED)


def _with_choice(gang: GangState, spec: GangSpec) -> GangSpec:
    """The spec with the minima of the sub-groups that are chosen now (T0)."""
    if spec.tree is None:
        return spec
    minima = next(gang_tree.choices(spec.tree, gang.members()))
    return msgspec.structs.replace(spec, minima=minima, minimum=max(spec.total, sum(minima.values())))


def _eviction_facts(spec: GangSpec) -> object:
    """What decides which tasks of a gang may be evicted, and for which gangs."""
    return (spec.queue, spec.hints, spec.minimum, spec.minima, spec.evict_as_unit, spec.group)
