"""Gangs that wait, by order, in equivalence classes that are active or unschedulable (G8, G9).

Gangs with equal signatures share an equivalence class: when its first gang fails, the others are not attempted, and the
class is unschedulable until an event could help it. So a cycle costs what is active, not what waits. Which events help
is left to `wake_rules`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import count
from typing import NamedTuple

from enbloc.engine.core.ordering import Order
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey

STALE_BOUND = 64
"""At least 64 entries are kept before stale ones are dropped, so that small classes are not compacted all the time."""


class Signature(NamedTuple):
    """What gangs of one equivalence class have in common, and what follows of it for waking them."""

    facts: Hashable
    classes: tuple[int, ...] = ()
    """Classes of their pending tasks: a row that fits none of them cannot help them."""
    monotone: bool = False
    """Whether more room on a node that they could use is all that can make them fit: their tasks are of one class, and
    neither stateful filters nor claims concern them."""
    shared: bool = False
    """Whether they are equivalent only as long as no stateful filter applies to them."""


class QueueEntry:
    """One gang in a scheduling queue, as kube-scheduler's QueuedPodInfo. Entries are never searched for: the entry of a
    gang that left, or that was queued again, is stale, and is dropped when it is met."""

    __slots__ = ("equivalence", "gang", "is_stale")

    def __init__(self, gang: GangState, equivalence: EquivalenceClass) -> None:
        self.gang = gang
        self.equivalence = equivalence
        self.is_stale = False


class QueueEntries:
    """The entry of every gang that is queued. Queues between which gangs move share one, so that a gang is in at most
    one of them."""

    def __init__(self) -> None:
        self._of: dict[GangKey, QueueEntry] = {}
        self.numbers = count(1)
        """Entries of equal order are served in the order in which they came."""

    def of(self, gang: GangState) -> QueueEntry | None:
        return self._of.get(gang.key)

    def put(self, gang: GangState, equivalence: EquivalenceClass) -> QueueEntry:
        self.remove(gang)
        entry = self._of[gang.key] = QueueEntry(gang, equivalence)
        return entry

    def remove(self, gang: GangState) -> None:
        entry = self._of.pop(gang.key, None)
        if entry is not None:
            entry.is_stale = True


class Head(NamedTuple):
    """The first gang of an equivalence class, and its order in the queue."""

    order: Order
    gang: GangState


class EquivalenceClass:
    """Gangs with one signature in one queue, by order."""

    __slots__ = (
        "classes",
        "compact_at",
        "diagnosis",
        "facts",
        "fresh",
        "helpers",
        "in_line",
        "items",
        "kept_back",
        "key",
        "monotone",
        "number",
        "queue",
        "shared",
        "unschedulable",
        "wakes_on",
    )

    def __init__(self, key: Hashable, number: int, queue: str, signature: Signature) -> None:
        self.key = key
        self.number = number
        self.queue = queue
        self.facts = signature.facts
        self.classes = signature.classes
        self.monotone = signature.monotone
        self.shared = signature.shared
        self.items: list[tuple[Order, int, QueueEntry]] = []
        """A heap of its entries, by order and number."""
        self.fresh: list[QueueEntry] = []
        """Entries that were added since its last attempt."""
        self.compact_at = STALE_BOUND
        """Number of entries at which stale ones are dropped: behind a head that waits they are never popped."""
        self.unschedulable = False
        self.in_line = False
        """Whether its head is in the heap of the queue loop."""
        self.diagnosis: Diagnosis | None = None
        """Why it is unschedulable, or was when it was last attempted."""
        self.wakes_on: frozenset[EventKind] = frozenset()
        """The events that could help it, as long as it is unschedulable."""
        self.helpers: int | None = None
        """Where the pods were beside which its tasks must be, or that their spread constraints count, when it failed;
        `None`: it has no such tasks."""
        self.kept_back: bytes | None = None
        """What other queues were guaranteed and did not use when its own queue was full (V4); `None`: it was not."""

    def head(self) -> Head | None:
        """The first gang that is still waiting here."""
        while self.items:
            order, _, entry = self.items[0]
            if not entry.is_stale:
                return Head(order, entry.gang)
            heapq.heappop(self.items)
        return None

    def add(self, order: Order, number: int, entry: QueueEntry) -> None:
        if len(self.items) >= self.compact_at:
            self.items = [item for item in self.items if not item[2].is_stale]
            heapq.heapify(self.items)
            self.fresh = [one for one in self.fresh if not one.is_stale]
            self.compact_at = 2 * len(self.items) + STALE_BOUND
        heapq.heappush(self.items, (order, number, entry))
        if not self.unschedulable:
            self.fresh.append(entry)

    def gangs(self) -> list[GangState]:
        """All gangs, in no order."""
        return [entry.gang for _, _, entry in self.items if not entry.is_stale]

    def in_order(self) -> Iterator[GangState]:
        """The gangs that are waiting here, one after the other; those that leave meanwhile are passed over."""
        left = self.items.copy()
        while left:
            *_, entry = heapq.heappop(left)
            if not entry.is_stale:
                yield entry.gang

    def first(self, count: int) -> list[GangState]:
        """The first `count` gangs in order."""
        if len(self.items) == 1:
            return self.gangs()
        waiting = (item for item in self.items if not item[2].is_stale)
        return [entry.gang for _, _, entry in heapq.nsmallest(count, waiting, key=lambda item: item[:2])]


class SchedulingQueue:
    """All equivalence classes of gangs that wait for one thing."""

    def __init__(self, entries: QueueEntries) -> None:
        self.entries = entries
        self._classes: dict[Hashable, EquivalenceClass] = {}
        self._of_queue: dict[str, dict[Hashable, EquivalenceClass]] = {}
        self._active: dict[str, dict[Hashable, EquivalenceClass]] = {}
        self._helped: dict[str, dict[Hashable, EquivalenceClass]] = {}

    def put(self, gang: GangState, queue: str, order: Order, signature: Signature) -> EquivalenceClass:
        """Queues a gang; its former entry becomes stale."""
        key = (queue, order.level, signature.facts)
        number = next(self.entries.numbers)
        equivalence = self._classes.get(key)
        if equivalence is None:
            equivalence = self._classes[key] = EquivalenceClass(key, number, queue, signature)
            self._of_queue.setdefault(queue, {})[key] = equivalence
            self._active.setdefault(queue, {})[key] = equivalence
        equivalence.add(order, number, self.entries.put(gang, equivalence))
        return equivalence

    def holds(self, equivalence: EquivalenceClass) -> bool:
        return self._classes.get(equivalence.key) is equivalence

    def active(self) -> list[str]:
        """Queues with an active class."""
        return list(self._active)

    def queues(self) -> list[str]:
        """Queues with a class, active or not."""
        return list(self._of_queue)

    def active_in(self, queue: str) -> list[EquivalenceClass]:
        return list(self._active.get(queue, {}).values())

    def helped(self) -> list[EquivalenceClass]:
        """Unschedulable classes that pods which are placed before their turn could help."""
        return [one for classes in self._helped.values() for one in classes.values()]

    def in_queue(self, queue: str) -> list[EquivalenceClass]:
        return list(self._of_queue.get(queue, {}).values())

    def sleep(
        self,
        equivalence: EquivalenceClass,
        diagnosis: Diagnosis,
        helpers: int | None = None,
        kept_back: bytes | None = None,
    ) -> list[GangState]:
        """Its first gang failed. Returns the gangs added since the last attempt: the diagnosis is theirs too."""
        equivalence.helpers, equivalence.kept_back = helpers, kept_back
        if helpers is not None or kept_back is not None:
            self._helped.setdefault(equivalence.queue, {})[equivalence.key] = equivalence
        equivalence.unschedulable = True
        equivalence.diagnosis = diagnosis
        _remove(self._active, equivalence)
        fresh, equivalence.fresh = equivalence.fresh, []
        return [entry.gang for entry in fresh if not entry.is_stale]

    def drop(self, equivalence: EquivalenceClass) -> None:
        """Removes an empty class."""
        self._classes.pop(equivalence.key, None)
        for by_queue in (self._of_queue, self._active, self._helped):
            _remove(by_queue, equivalence)

    def wake(self, could_help: Callable[[EquivalenceClass], bool]) -> None:
        """Activates the classes that an event could help."""
        for equivalence in [*self._classes.values()]:
            if equivalence.unschedulable and (equivalence.head() is None or could_help(equivalence)):
                self.activate(equivalence)

    def activate(self, equivalence: EquivalenceClass) -> None:
        if equivalence.head() is None:
            self.drop(equivalence)
            return
        equivalence.unschedulable = False
        _remove(self._helped, equivalence)
        self._active.setdefault(equivalence.queue, {})[equivalence.key] = equivalence

    def equivalences(self) -> Iterable[EquivalenceClass]:
        return self._classes.values()


def _remove(by_queue: dict[str, dict[Hashable, EquivalenceClass]], equivalence: EquivalenceClass) -> None:
    found = by_queue.get(equivalence.queue)
    if found is not None:
        found.pop(equivalence.key, None)
        if not found:
            del by_queue[equivalence.queue]
