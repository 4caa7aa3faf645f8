"""Gangs that wait, by order, in equivalence classes that are active or unschedulable (G8, G9).

Gangs with equal signatures share an equivalence class: when its first gang fails, the others are not attempted, and the
class is unschedulable until an event could help it. So a cycle costs what is active, not what waits. Which events help
is left to `wake_rules`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count
from typing import Any

from enbloc.engine.events import EventKind
from enbloc.engine.ordering import Order
from enbloc.engine.tables.tasks import GangState

STALE_BOUND = 64
"""At least 64 entries are kept before stale ones are dropped, so that small classes are not compacted all the time."""


class EquivalenceClass:
    """Gangs with one signature in one queue, by order."""

    __slots__ = (
        "classes",
        "compact_at",
        "diagnosis",
        "fresh",
        "in_line",
        "items",
        "key",
        "monotone",
        "number",
        "queue",
        "shared",
        "unschedulable",
        "wakes_on",
    )

    def __init__(
        self, key: Hashable, number: int, queue: str, classes: tuple[int, ...], monotone: bool, shared: bool
    ) -> None:
        self.key = key
        self.number = number
        self.queue = queue
        self.classes = classes
        """Classes of its pending tasks: a row that fits none of them cannot help it."""
        self.monotone = monotone
        """Whether more room on a node that it could use is all that can make it fit: its tasks are of one class, and
        neither stateful filters nor claims concern it."""
        self.shared = shared
        """Whether its gangs are equivalent only as long as no stateful filter applies to them."""
        self.items: list[tuple[Order, int, GangState]] = []
        self.fresh: list[GangState] = []
        """Gangs that were added since its last attempt."""
        self.compact_at = STALE_BOUND
        """Number of entries at which stale ones are dropped: behind a head that waits they are never popped."""
        self.unschedulable = False
        self.in_line = False
        """Whether its head is in the heap of the queue loop."""
        self.diagnosis: Any = None
        """Why it is unschedulable."""
        self.wakes_on: frozenset[EventKind] = frozenset()
        """The events that could help it, as long as it is unschedulable."""

    def head(self) -> tuple[Order, GangState] | None:
        """The first gang that is still waiting here."""
        while self.items:
            order, ticket, gang = self.items[0]
            if gang.ticket == ticket:
                return order, gang
            heapq.heappop(self.items)
        return None

    def add(self, order: Order, gang: GangState) -> None:
        if len(self.items) >= self.compact_at:
            self.items = [item for item in self.items if item[2].ticket == item[1]]
            heapq.heapify(self.items)
            self.fresh = list({id(one): one for one in self.fresh if one.equivalence is self}.values())
            self.compact_at = 2 * len(self.items) + STALE_BOUND
        heapq.heappush(self.items, (order, gang.ticket, gang))
        if not self.unschedulable:
            self.fresh.append(gang)

    def first(self, count: int) -> list[GangState]:
        """The first `count` gangs in order."""
        waiting = (item for item in self.items if item[2].ticket == item[1])
        return [gang for _, _, gang in heapq.nsmallest(count, waiting, key=lambda item: item[:2])]


class SchedulingQueue:
    """All equivalence classes. Entries are never searched for: a gang that leaves changes its ticket, and its entry is
    stale."""

    def __init__(self, tickets: Iterator[int] | None = None) -> None:
        """`tickets`: shared by queues between which gangs move, so that no entry of one looks like one of another."""
        self._tickets = tickets if tickets is not None else count(1)
        self._classes: dict[Hashable, EquivalenceClass] = {}
        self._of_queue: dict[str, dict[Hashable, EquivalenceClass]] = {}
        self._active: dict[str, dict[Hashable, EquivalenceClass]] = {}

    def put(
        self,
        gang: GangState,
        queue: str,
        order: Order,
        signature: Hashable,
        classes: tuple[int, ...] = (),
        monotone: bool = False,
        shared: bool = False,
    ) -> EquivalenceClass:
        """Queues a gang; its former entry becomes stale."""
        key = (queue, order.level, signature)
        ticket = next(self._tickets)
        equivalence = self._classes.get(key)
        if equivalence is None:
            equivalence = self._classes[key] = EquivalenceClass(key, ticket, queue, classes, monotone, shared)
            self._of_queue.setdefault(queue, {})[key] = equivalence
            self._active.setdefault(queue, {})[key] = equivalence
        gang.ticket = ticket
        equivalence.add(order, gang)
        return equivalence

    @staticmethod
    def take(gang: GangState) -> None:
        """Removes a gang from whichever queue it is in."""
        gang.ticket = 0

    def holds(self, equivalence: EquivalenceClass) -> bool:
        return self._classes.get(equivalence.key) is equivalence

    def active(self) -> list[str]:
        """Queues with an active class."""
        return list(self._active)

    def active_in(self, queue: str) -> list[EquivalenceClass]:
        return list(self._active.get(queue, {}).values())

    def in_queue(self, queue: str) -> list[EquivalenceClass]:
        return list(self._of_queue.get(queue, {}).values())

    def sleep(self, equivalence: EquivalenceClass, diagnosis: Any) -> list[GangState]:
        """Its first gang failed. Returns the gangs added since the last attempt: the diagnosis is theirs too."""
        equivalence.unschedulable = True
        equivalence.diagnosis = diagnosis
        _remove(self._active, equivalence)
        fresh, equivalence.fresh = equivalence.fresh, []
        return fresh

    def drop(self, equivalence: EquivalenceClass) -> None:
        """Removes an empty class."""
        self._classes.pop(equivalence.key, None)
        _remove(self._of_queue, equivalence)
        _remove(self._active, equivalence)

    def wake(self, could_help: Callable[[EquivalenceClass], bool]) -> None:
        """Activates the classes that an event could help."""
        for equivalence in [*self._classes.values()]:
            if equivalence.unschedulable and (equivalence.head() is None or could_help(equivalence)):
                self._activate(equivalence)

    def _activate(self, equivalence: EquivalenceClass) -> None:
        if equivalence.head() is None:
            self.drop(equivalence)
            return
        equivalence.unschedulable = False
        self._active.setdefault(equivalence.queue, {})[equivalence.key] = equivalence

    def equivalences(self) -> Iterable[EquivalenceClass]:
        return self._classes.values()


def _remove(by_queue: dict[str, dict[Hashable, EquivalenceClass]], equivalence: EquivalenceClass) -> None:
    found = by_queue.get(equivalence.queue)
    if found is not None:
        found.pop(equivalence.key, None)
        if not found:
            del by_queue[equivalence.queue]
