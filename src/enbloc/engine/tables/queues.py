"""Queues: who is served next, and how much one may take (V4, G8).

A tree by `parent`; what a queue uses, its ancestors use too. Shares decide order (and, later, reclaim); `capability`
caps; a `guarantee` is kept free for its queue. All amounts are vectors over the resource columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping

import msgspec
import numpy as np

from enbloc.engine.tables.resources import CEILING, PODS, Ints, Request, Resources

ROOT = "root"
_NO_AMOUNTS: Mapping[str, int] = {}

ABSENT_BOUND = 64
"""So many queues that do not exist are always put up with."""


class QueueFacts(msgspec.Struct, frozen=True):
    """A queue as its author wrote it; amounts in nano-units by resource."""

    name: str
    weight: int = 1
    priority: int = 0
    parent: str = ""
    capability: Mapping[str, int] = _NO_AMOUNTS
    guarantee: Mapping[str, int] = _NO_AMOUNTS
    deserved: Mapping[str, int] = _NO_AMOUNTS
    fifo: bool = False
    reclaimable: bool = True
    closed: bool = False


class Queue:
    """A queue and what it uses. `used` and `demand` include its descendants'."""

    __slots__ = (
        "ancestors",
        "children",
        "demand",
        "deserved",
        "enqueued",
        "exists",
        "facts",
        "limits",
        "name",
        "shares_in",
        "used",
    )

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.facts = QueueFacts(name)
        self.exists = False
        self.ancestors: tuple[Queue, ...] = (self,)
        """Itself first, then upwards."""
        self.children: list[Queue] = []
        self.used: Ints = np.zeros(width, np.int64)
        self.demand: Ints = np.zeros(width, np.int64)
        """What it uses and what its waiting gangs ask for."""
        self.enqueued: Ints = np.zeros(width, np.int64)
        """What gangs that were let in, and not tried yet, will take (M6)."""
        self.deserved: Ints = np.zeros(width, np.int64)
        self.shares_in: frozenset[int] | None = None
        """The columns that its share is judged by: those that its `deserved` names, or (`None`) all."""
        self.limits: dict[int, int] = {}
        """Its capability by column; a dimension that is not named is unlimited."""


class QueueTree:
    """All queues by name. A queue that is only named by a gang exists as a place to count, with `exists` false."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._width = 8
        self.queues: dict[str, Queue] = {}
        self._stale = True
        """Whether shares have to be computed anew before somebody looks at them."""
        self._shared_out: Ints = np.zeros(0, np.int64)
        """The totals that shares were computed from."""
        self._guaranteed: dict[str, Ints] = {}
        self._keepers: set[str] = set()
        """Queues that have a guarantee, or a descendant that has one."""
        self._absent = 0
        """How many are there that do not exist."""
        self._needed = 0
        """How many of these were named by somebody when it was last looked at."""
        self.version = 0
        """Goes up when what queues ask for changes, and with it what they deserve."""

    # ---- events

    def put(self, facts: QueueFacts) -> None:
        queue = self.get(facts.name)
        for amounts in (facts.capability, facts.guarantee, facts.deserved):
            self._ensure(tuple(self._resources.amounts(amounts).items()))
        queue.facts = facts
        queue.limits = self._resources.capacity(facts.capability)
        queue.exists = True
        self.version += 1
        self._relink()

    def remove(self, name: str) -> None:
        queue = self.queues.get(name)
        if queue is not None:
            queue.exists = False
            queue.facts = QueueFacts(name)
            queue.limits = {}
            self.version += 1
            self._relink()

    def get(self, name: str) -> Queue:
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name, self._width)
            self._relink()
        return queue

    def is_crowded(self) -> bool:
        """Whether so many came that do not exist, or do not any more, that it pays to look who is named."""
        return self._absent > 2 * self._needed + ABSENT_BOUND

    def keep(self, named: Container[str]) -> None:
        """Of queues that do not exist, those stay that are among these, or above one that exists."""
        parents = {queue.facts.parent for queue in self.queues.values() if queue.exists}
        self.queues = {
            name: queue
            for name, queue in self.queues.items()
            if queue.exists or name == ROOT or name in named or name in parents
        }
        self._relink()
        self._needed = self._absent

    # ---- amounts

    def use(self, queue: Queue, request: Request, count: int) -> None:
        """`count` tasks more (or fewer) of that request run in the queue."""
        self._ensure(request)
        for place in queue.ancestors:
            used = place.used
            for column, amount in request:
                used[column] += amount * count

    def want(self, queue: Queue, amounts: Mapping[int, int] | Request, count: int) -> None:
        """The queue asks for so much more (or less). What no node can have is no demand: nobody could meet it, and a
        few hundred of it would leave int64."""
        pairs = tuple(amounts.items()) if isinstance(amounts, Mapping) else amounts
        self._ensure(pairs)
        pairs = tuple((column, amount) for column, amount in pairs if amount <= CEILING)
        for place in queue.ancestors:
            for column, amount in pairs:
                place.demand[column] += amount * count
        self._stale = True
        self.version += 1

    def expect(self, queue: Queue, amounts: Mapping[int, int], count: int) -> None:
        """A gang was let in (or tried, or left): what it will take (M6)."""
        self._ensure(tuple(amounts.items()))
        for place in queue.ancestors:
            for column, amount in amounts.items():
                place.enqueued[column] += amount * count

    def room(self, queue: Queue, request: Request, free: Ints) -> int:
        """How many tasks of that request the queue may still take, by its and its ancestors' capability and by what
        others were guaranteed of the cluster's `free` room."""
        self._ensure(request)
        most = CEILING
        for place in queue.ancestors:
            if place.limits:
                for column, amount in request:
                    if column in place.limits:
                        most = min(most, (place.limits[column] - int(place.used[column])) // amount)
        if self._guaranteed:
            kept = self.kept_for_others(queue)
            for column, amount in request:
                if kept[column]:
                    most = min(most, (int(free[column]) - int(kept[column])) // amount)
        return max(most, 0)

    def may_take(self, asked: Mapping[str, Mapping[int, int]], free: Ints | None) -> bool:
        """Whether queues, by name, may take these amounts, all at once. `free` is asked for where there are guarantees:
        then one must not need what another of them was guaranteed."""
        of_place: dict[str, Counter[int]] = {}
        total: Counter[int] = Counter()
        for name, amounts in asked.items():
            self._ensure(tuple(amounts.items()))
            total.update(amounts)
            for place in self.get(name).ancestors:
                of_place.setdefault(place.name, Counter()).update(amounts)
        for name, counted in of_place.items():
            if self.over_capability(self.queues[name], counted, with_enqueued=False) is not None:
                return False
        if free is not None:
            for name in asked:
                kept = self.kept_for_others(self.get(name))
                if any(kept[column] and amount > free[column] - kept[column] for column, amount in total.items()):
                    return False
        return True

    def kept_for_others(self, queue: Queue) -> Ints:
        """What of the cluster's free room is guaranteed to others and not used by them yet."""
        kept = np.zeros(self._width, np.int64)
        for name in self._keepers:
            if len(self.queues[name].ancestors) == 1:
                kept += self._kept(self.queues[name], queue)
        return kept

    def _kept(self, place: Queue, queue: Queue) -> Ints:
        """What a queue and those below it keep from `queue`: a parent's guarantee holds its children's."""
        kept = np.zeros(self._width, np.int64)
        if place is queue:
            return kept
        for child in place.children:
            if child.name in self._keepers:
                kept += self._kept(child, queue)
        guarantee = self._guaranteed.get(place.name)
        if guarantee is not None and place not in queue.ancestors:
            kept = np.maximum(kept, guarantee - place.used)
        return kept

    @property
    def guarantees(self) -> bool:
        return bool(self._guaranteed)

    def over_capability(
        self, queue: Queue, amounts: Mapping[int, int], with_enqueued: bool
    ) -> tuple[Queue, int] | None:
        """The first queue upwards, and the column, whose capability would not hold these amounts."""
        self._ensure(tuple(amounts.items()))
        for place in queue.ancestors:
            for column, limit in place.limits.items():
                amount = amounts.get(column, 0)
                taken = int(place.used[column]) + (int(place.enqueued[column]) if with_enqueued else 0)
                if amount and taken + amount > limit:
                    return place, column
        return None

    def enqueued_total(self) -> Ints:
        """What all gangs that were let in, and not tried yet, will take."""
        total = np.zeros(self._width, np.int64)
        for queue in self.queues.values():
            if len(queue.ancestors) == 1:
                total += queue.enqueued
        return total

    # ---- order

    def order(self, queue: Queue, totals: Ints, with_enqueued: bool = False) -> tuple[tuple[int, float, str], ...]:
        """The key by which queues are served: from the top of the tree down, priority, share, name."""
        self.share_out(totals)
        return tuple(
            (-place.facts.priority, self.share(place, with_enqueued), place.name)
            for place in reversed(queue.ancestors)
            if place.name != ROOT
        )

    def share(self, queue: Queue, with_enqueued: bool = False) -> float:
        """How much of what it deserves a queue has, in the dimension where that is most."""
        used = queue.used + queue.enqueued if with_enqueued else queue.used
        deserved = queue.deserved
        share = 0.0
        for column in np.flatnonzero(used).tolist():
            if column == PODS or (queue.shares_in is not None and column not in queue.shares_in):
                continue  # nobody deserves a number of pods
            share = max(share, used[column] / deserved[column] if deserved[column] > 0 else 1.0)
        return float(share)

    # ---- reclaim

    def share_out(self, totals: Ints) -> None:
        """Brings what each queue deserves up to date."""
        if self._stale or not np.array_equal(totals, self._shared_out):
            self._share_out(totals)

    def above_share(self, queue: Queue) -> bool:
        """Whether a queue has more than it deserves, in a dimension that it uses and its `deserved` names (P2)."""
        for column in np.flatnonzero(queue.used > queue.deserved).tolist():
            if column != PODS and (queue.shares_in is None or column in queue.shares_in):
                return True
        return False

    def within_share(self, queue: Queue, asked: Mapping[int, int]) -> bool:
        """Whether a queue that got so much more would be within what it deserves, in one dimension that it asks for."""
        self._ensure(tuple(asked.items()))
        return any(
            column != PODS and amount > 0 and queue.used[column] + amount <= queue.deserved[column]
            for column, amount in asked.items()
        )

    def below_guarantee(self, queue: Queue, less: Mapping[int, int]) -> bool:
        """Whether a queue that had so much less would have less than it was guaranteed."""
        guarantee = self._guaranteed.get(queue.name)
        if guarantee is None:
            return False
        return any(
            guarantee[column] and queue.used[column] - amount < guarantee[column] for column, amount in less.items()
        )

    # ---- inside

    def _ensure(self, request: Request | tuple[tuple[int, int], ...]) -> None:
        """Columns that were heard of since."""
        top = max((column for column, _ in request), default=0)
        if top < self._width:
            return
        more = top + 8 - self._width
        self._width += more
        for queue in self.queues.values():
            queue.used = np.pad(queue.used, (0, more))
            queue.demand = np.pad(queue.demand, (0, more))
            queue.enqueued = np.pad(queue.enqueued, (0, more))
            queue.deserved = np.pad(queue.deserved, (0, more))
        self._guaranteed = {name: np.pad(vector, (0, more)) for name, vector in self._guaranteed.items()}

    def _relink(self) -> None:
        """Rebuilds the tree after a queue came, went or moved, and counts what is used up the new paths."""
        self._absent = sum(not queue.exists for queue in self.queues.values())
        own_used = {queue.name: queue.used - _sum_children(queue, "used", self._width) for queue in self._all()}
        own_demand = {queue.name: queue.demand - _sum_children(queue, "demand", self._width) for queue in self._all()}
        own_enqueued = {
            queue.name: queue.enqueued - _sum_children(queue, "enqueued", self._width) for queue in self._all()
        }
        for queue in self._all():
            queue.children = []
        for queue in self._all():
            queue.ancestors = tuple(self._climb(queue))
            if len(queue.ancestors) > 1:
                queue.ancestors[1].children.append(queue)
            queue.used = np.zeros(self._width, np.int64)
            queue.demand = np.zeros(self._width, np.int64)
            queue.enqueued = np.zeros(self._width, np.int64)
        for queue in self._all():
            for place in queue.ancestors:
                place.used += own_used[queue.name]
                place.demand += own_demand[queue.name]
                place.enqueued += own_enqueued[queue.name]
        self._guaranteed = {}
        for queue in self._all():
            if queue.facts.guarantee:
                pairs = self._resources.amounts(queue.facts.guarantee)
                self._ensure(tuple(pairs.items()))
                vector = np.zeros(self._width, np.int64)
                for column, amount in pairs.items():
                    vector[column] = amount
                self._guaranteed[queue.name] = vector
        self._keepers = {place.name for name in self._guaranteed for place in self.queues[name].ancestors}
        self._stale = True

    def _all(self) -> list[Queue]:
        return [self.queues[name] for name in sorted(self.queues)]

    def _climb(self, queue: Queue) -> Iterator[Queue]:
        """Upwards as far as parents exist."""
        place: Queue | None = queue
        while place is not None:
            yield place
            place = self._parent(place)

    def _parent(self, queue: Queue) -> Queue | None:
        """The queue above. One that is its own ancestor (admission refuses it) has none: so it stays a tree."""
        above = self._named_parent(queue)
        place, seen = above, set()
        while place is not None and place.name not in seen:
            if place is queue:
                return None
            seen.add(place.name)
            place = self._named_parent(place)
        return above

    def _named_parent(self, queue: Queue) -> Queue | None:
        parent = queue.facts.parent or (ROOT if queue.name != ROOT else "")
        return self.queues.get(parent) if parent else None

    def _share_out(self, totals: Ints) -> None:
        """What each queue deserves now (V4): by `deserved` where any queue sets it, else by weight among those with
        demand."""
        self._stale = False
        self._shared_out = totals
        self._ensure(((len(totals) - 1, 0),))
        pool = np.zeros(self._width, np.int64)
        pool[: len(totals)] = totals
        explicit = any(queue.facts.deserved for queue in self.queues.values())
        tops = [queue for queue in self._all() if len(queue.ancestors) == 1 and queue.name != ROOT]
        root = self.queues.get(ROOT)
        if root is not None:
            root.deserved = pool.copy()
            tops = [*tops, *root.children]
        self._share_among(tops, pool, explicit)

    def _share_among(self, siblings: list[Queue], pool: Ints, explicit: bool) -> None:
        if explicit:
            for queue in siblings:
                self._as_written(queue)
            return
        self._by_weight(siblings, pool)
        for queue in siblings:
            queue.shares_in = None
            if queue.children:
                self._share_among(queue.children, queue.deserved, explicit)

    def _as_written(self, queue: Queue) -> None:
        """What a queue and those below it say that they deserve; a parent that says nothing deserves what its children
        do. A queue that names no dimension at all is judged by every one: whatever it uses is above its share."""
        for child in queue.children:
            self._as_written(child)
        queue.deserved = np.zeros(self._width, np.int64)
        for column, amount in self._resources.amounts(queue.facts.deserved).items():
            queue.deserved[column] = amount
        named = set(self._resources.amounts(queue.facts.deserved))
        if not named:
            for child in queue.children:
                queue.deserved += child.deserved
                named |= child.shares_in or set()
        self._raise_to_guarantee(queue)
        queue.shares_in = frozenset(named | set(self._resources.amounts(queue.facts.guarantee))) if named else None

    def _by_weight(self, siblings: list[Queue], pool: Ints) -> None:
        """Water-filling, a dimension at a time: each gets by weight, none more than it asks for or may have."""
        for queue in siblings:
            queue.deserved = np.zeros(self._width, np.int64)
        for column in range(self._width):
            wants: dict[str, int] = {}
            for queue in siblings:
                want = int(queue.demand[column])
                limit = queue.limits.get(column)
                wants[queue.name] = want if limit is None else min(want, limit)
            left = int(pool[column])
            open_queues = [queue for queue in siblings if wants[queue.name] > 0]
            while open_queues and left > 0:
                weight = sum(queue.facts.weight for queue in open_queues)
                full = [q for q in open_queues if wants[q.name] * weight <= left * q.facts.weight]
                if not full:
                    for queue in open_queues:
                        queue.deserved[column] = left * queue.facts.weight // weight
                    break
                for queue in full:
                    queue.deserved[column] = wants[queue.name]
                    left -= wants[queue.name]
                open_queues = [queue for queue in open_queues if queue not in full]
        for queue in siblings:
            self._raise_to_guarantee(queue)

    def _raise_to_guarantee(self, queue: Queue) -> None:
        for column, amount in self._resources.amounts(queue.facts.guarantee).items():
            queue.deserved[column] = max(int(queue.deserved[column]), amount)


def _sum_children(queue: Queue, field: str, width: int) -> Ints:
    total = np.zeros(width, np.int64)
    for child in queue.children:
        total += getattr(child, field)
    return total
