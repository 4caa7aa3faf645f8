"""Who waits, in what order, and who sleeps (G8, G9).

Gangs that ask for the very same thing (one *shape*) share a bucket: where its first one failed, the others need not be
tried, and the whole bucket sleeps until something changes that could help it. So a cycle costs what is awake, not
what waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count
from typing import Any

from enbloc.engine.ordering import Order
from enbloc.engine.tables.tasks import GangState

STALE_BOUND = 64
"""So many entries of gangs that left a bucket are always put up with in it."""


class EquivalenceClass:
    """Gangs of one shape in one queue, by order."""

    __slots__ = (
        "classes",
        "diagnosis",
        "fresh",
        "in_line",
        "items",
        "key",
        "number",
        "queue",
        "shared",
        "tidy_at",
        "unschedulable",
        "volatile",
    )

    def __init__(
        self, key: Hashable, number: int, queue: str, classes: tuple[int, ...], volatile: bool, shared: bool
    ) -> None:
        self.key = key
        self.number = number
        self.queue = queue
        self.classes = classes
        """The classes of task that it needs room for: a row that takes none of them cannot help it."""
        self.volatile = volatile
        """Whether any change may help: several classes (greedy is not monotone), or others' placements matter."""
        self.shared = shared
        """Whether gangs wait in it that are alike as long as others' placements do not matter to them."""
        self.items: list[tuple[Order, int, GangState]] = []
        self.fresh: list[GangState] = []
        """Gangs that came since it was last tried."""
        self.tidy_at = STALE_BOUND
        """With so many entries the stale ones are dropped: behind a head that waits for long they never come up."""
        self.unschedulable = False
        self.in_line = False
        """Whether its head stands in the line that is being served."""
        self.diagnosis: Any = None
        """Why it sleeps."""

    def head(self) -> tuple[Order, GangState] | None:
        """The first gang that is still waiting here."""
        while self.items:
            order, ticket, gang = self.items[0]
            if gang.ticket == ticket:
                return order, gang
            heapq.heappop(self.items)
        return None

    def add(self, order: Order, gang: GangState) -> None:
        if len(self.items) >= self.tidy_at:
            self.items = [item for item in self.items if item[2].ticket == item[1]]
            heapq.heapify(self.items)
            self.fresh = list({id(one): one for one in self.fresh if one.equivalence is self}.values())
            self.tidy_at = 2 * len(self.items) + STALE_BOUND
        heapq.heappush(self.items, (order, gang.ticket, gang))
        if not self.unschedulable:
            self.fresh.append(gang)

    def first(self, count: int) -> list[GangState]:
        """The first few, for those who tell them something."""
        waiting = (item for item in self.items if item[2].ticket == item[1])
        return [gang for _, _, gang in heapq.nsmallest(count, waiting, key=lambda item: item[:2])]


class SchedulingQueue:
    """All buckets. Entries are never searched for: a gang that leaves changes its ticket, and its entry is stale."""

    def __init__(self, tickets: Iterator[int] | None = None) -> None:
        """`tickets`: shared by queues between which gangs move, so that no entry of one looks like one of another."""
        self._tickets = tickets if tickets is not None else count(1)
        self._buckets: dict[Hashable, EquivalenceClass] = {}
        self._of_queue: dict[str, dict[Hashable, EquivalenceClass]] = {}
        self._awake: dict[str, dict[Hashable, EquivalenceClass]] = {}

    def put(
        self,
        gang: GangState,
        queue: str,
        order: Order,
        shape: Hashable,
        classes: tuple[int, ...] = (),
        volatile: bool = False,
        shared: bool = False,
    ) -> EquivalenceClass:
        """Queues a gang, in place of where it waited before."""
        key = (queue, order.level, shape)
        ticket = next(self._tickets)
        equivalence = self._buckets.get(key)
        if equivalence is None:
            equivalence = self._buckets[key] = EquivalenceClass(key, ticket, queue, classes, volatile, shared)
            self._of_queue.setdefault(queue, {})[key] = equivalence
            self._awake.setdefault(queue, {})[key] = equivalence
        gang.ticket = ticket
        equivalence.add(order, gang)
        return equivalence

    @staticmethod
    def take(gang: GangState) -> None:
        """It waits no longer, in whatever line it stood."""
        gang.ticket = 0

    def holds(self, equivalence: EquivalenceClass) -> bool:
        return self._buckets.get(equivalence.key) is equivalence

    def active(self) -> list[str]:
        """Queues in which somebody is awake."""
        return list(self._awake)

    def active_in(self, queue: str) -> list[EquivalenceClass]:
        return list(self._awake.get(queue, {}).values())

    def in_queue(self, queue: str) -> list[EquivalenceClass]:
        return list(self._of_queue.get(queue, {}).values())

    def sleep(self, equivalence: EquivalenceClass, diagnosis: Any) -> list[GangState]:
        """Its first gang failed. Returns the gangs that had not been tried before: now they have."""
        equivalence.unschedulable = True
        equivalence.diagnosis = diagnosis
        _take(self._awake, equivalence)
        fresh, equivalence.fresh = equivalence.fresh, []
        return fresh

    def drop(self, equivalence: EquivalenceClass) -> None:
        """Nobody is left in it."""
        self._buckets.pop(equivalence.key, None)
        _take(self._of_queue, equivalence)
        _take(self._awake, equivalence)

    def wake(self, could_help: Callable[[EquivalenceClass], bool]) -> None:
        """Wakes the buckets that a change could help."""
        for equivalence in [*self._buckets.values()]:
            if equivalence.unschedulable and (equivalence.head() is None or could_help(equivalence)):
                self._rouse(equivalence)

    def _rouse(self, equivalence: EquivalenceClass) -> None:
        if equivalence.head() is None:
            self.drop(equivalence)
            return
        equivalence.unschedulable = False
        self._awake.setdefault(equivalence.queue, {})[equivalence.key] = equivalence

    def equivalences(self) -> Iterable[EquivalenceClass]:
        return self._buckets.values()


def _take(lines: dict[str, dict[Hashable, EquivalenceClass]], equivalence: EquivalenceClass) -> None:
    found = lines.get(equivalence.queue)
    if found is not None:
        found.pop(equivalence.key, None)
        if not found:
            del lines[equivalence.queue]
