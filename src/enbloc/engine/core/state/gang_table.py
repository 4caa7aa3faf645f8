"""All gangs by key: their priorities, what they add to their queues, and which of them the next cycle reads.

A gang is known as long as it has an object or pods. Its tasks are `State`'s, and are counted by `TaskCounts`. What it
adds to its queue besides them is kept gang by gang, so that it can be subtracted again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from enbloc.engine.core.state.task_counts import TaskCounts
from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.need import choices
from enbloc.engine.core.tables.nodes import NodeTable
from enbloc.engine.core.tables.queues import Queue, QueueTree
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.events import ClusterEvents, EventKind
from enbloc.gangs.model import GangKey, GangSpec


def follows_pods(spec: GangSpec) -> bool:
    """Whether its pods bear on its priority."""
    return spec.priority is None or spec.at_most_pods or bool(spec.limited_class)


def granted_priority(gang: GangState) -> int:
    spec = gang.spec
    if not follows_pods(spec):
        return spec.priority or 0
    of_pods = max((task.priority for task in gang.tasks.values()), default=spec.pods_priority)
    if spec.priority is None:
        return of_pods
    if spec.limited_class and not _is_carried(gang):
        return of_pods
    return min(spec.priority, of_pods) if spec.at_most_pods else spec.priority


def _is_carried(gang: GangState) -> bool:
    """Whether all its pods carry its own class; before they exist, whether they will."""
    if not gang.tasks:
        return gang.spec.pods_priority == gang.spec.priority
    return all(_carries(task) for task in gang.tasks.values())


def _carries(task: Task) -> bool:
    return task.spec.get("priorityClassName") == task.gang.spec.limited_class


def may_change_priority(gang: GangState, task: Task) -> bool:
    """Whether a task that was added may change the priority of its gang."""
    spec = gang.spec
    if not follows_pods(spec):
        return False
    if gang.priority == spec.priority:  # all that its own class gives: only a limited class can be lost
        return bool(spec.limited_class) and not _carries(task)
    return task.priority > gang.priority


class PodNotes:
    """Pods without a note are not kept."""

    def __init__(self) -> None:
        self._gangs: dict[str, GangKey] = {}
        self._texts: dict[GangKey, dict[str, str]] = {}

    def put(self, uid: str, gang: GangKey, text: str) -> bool:
        """Whether this is news."""
        if self._gangs.get(uid) == gang and self._texts[gang][uid] == text:
            return False
        self.remove(uid)
        self._gangs[uid] = gang
        self._texts.setdefault(gang, {})[uid] = text
        return True

    def remove(self, uid: str) -> GangKey | None:
        """The gang that the pod belonged to, if there was a note on it."""
        gang = self._gangs.pop(uid, None)
        if gang is not None:
            pods = self._texts[gang]
            del pods[uid]
            if not pods:
                del self._texts[gang]
        return gang

    def of(self, gang: GangKey) -> Mapping[str, int]:
        """Text → number of the gang's pods that it is on."""
        return Counter(self._texts.get(gang, {}).values())

    def first_of(self, gang: GangKey) -> str:
        """The first text in order; empty if there is none."""
        return min(self._texts.get(gang, {}).values(), default="")


class Demand(NamedTuple):
    queue: Queue
    to_come: Mapping[int, int]
    """By column: what its pods will request, as long as none of them exists."""
    enqueued: Mapping[int, int]
    """By column: what it was enqueued with, until it is attempted."""


class GangDemand:
    def __init__(self, queues: QueueTree, events: ClusterEvents) -> None:
        self._queues = queues
        self._events = events
        self._of: dict[GangKey, Demand] = {}

    def set(self, gang: GangState, to_come: Mapping[int, int], enqueued: Mapping[int, int]) -> None:
        known = self._of.get(gang.key)
        if known is not None:
            if known.queue.name == gang.spec.queue and known.to_come == to_come and to_come:
                self._set_enqueued(gang, known, enqueued)
                return
            if (known.to_come, known.enqueued, known.queue.name) == (to_come, enqueued, gang.spec.queue):
                return
            self.remove(gang)
        if to_come or enqueued:
            queue = self._queues.get(gang.spec.queue)
            self._queues.add_demand(queue, to_come)
            self._queues.add_enqueued(queue, enqueued)
            self._of[gang.key] = Demand(queue, to_come, enqueued)

    def _set_enqueued(self, gang: GangState, known: Demand, enqueued: Mapping[int, int]) -> None:
        """The demand stays, and with it what queues deserve."""
        if known.enqueued == enqueued:
            return
        self._queues.remove_enqueued(known.queue, known.enqueued)
        if known.enqueued:
            self._events.add(EventKind.QUEUE_USES_LESS)
        self._queues.add_enqueued(known.queue, enqueued)
        self._of[gang.key] = known._replace(enqueued=enqueued)

    def remove(self, gang: GangState) -> None:
        known = self._of.pop(gang.key, None)
        if known is None:
            return
        self._queues.remove_demand(known.queue, known.to_come)
        self._queues.remove_enqueued(known.queue, known.enqueued)
        if known.enqueued:
            self._events.add(EventKind.QUEUE_USES_LESS)

    def enqueued(self, gang: GangState) -> Mapping[int, int]:
        """What the gang was enqueued with, while that counts; empty otherwise."""
        known = self._of.get(gang.key)
        return known.enqueued if known is not None else {}

    def __iter__(self) -> Iterator[Demand]:
        return iter(self._of.values())


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
        minima = next(choices(gang, spec))
        if gang.spec == spec and gang.minima == minima:
            return
        if gang.minima != minima or _eviction_facts(gang.spec) != _eviction_facts(spec):
            self.touch_rows(gang)
        gang.minima = minima
        gang.version += 1
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


def _eviction_facts(spec: GangSpec) -> object:
    """What decides which tasks of a gang may be evicted, and for which gangs."""
    return (spec.queue, spec.hints, spec.evict_as_unit, spec.group)
