"""The tree of queues: what they use, demand and deserve, and from that their order and limits (V4, G8).

What a queue uses, its ancestors use too. Shares (used / deserved) decide the order of queues and reclaim; `capability`
is a limit; a `guarantee` is reserved for its queue. All amounts are vectors over the resource columns.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import msgspec
import numpy as np

from enbloc.api.allowed_namespaces import ALL_ALLOWED, AllowedNamespaces
from enbloc.engine.core.tables.resources import CEILING, PODS, Ints, Request, Resources
from enbloc.engine.events import EventKind
from enbloc.gangs.gang_tree import DEEPEST

ROOT = "root"
_NO_AMOUNTS: Mapping[str, int] = {}

ABSENT_BOUND = 64
"""At most 64 queues that do not exist, plus twice those that were still named, are kept: gangs may name any queue."""

QUEUE_WAKES_ON: Final = frozenset({EventKind.QUEUE_CHANGED})
"""Events after which any gang may be served earlier, or be allowed more."""
LIMIT_WAKES_ON: Final = frozenset({EventKind.QUEUE_USES_LESS})
"""Events after which a queue may use more again."""
GUARANTEE_WAKES_ON: Final = frozenset({EventKind.POD_PLACED})
"""A queue that comes to use its guarantee keeps less of the free room from other queues (V4)."""


QueueOrder = tuple[tuple[int, float, float, str], ...]
"""Of each queue from the root down: priority, usage over time, share, name."""


class QueueFacts(msgspec.Struct, frozen=True):
    """What the engine reads of one Queue; amounts in nano-units by resource."""

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
    unsupported: str = ""
    """A constraint of it that is not honoured: its gangs are held (N1)."""
    allowed_namespaces: AllowedNamespaces = ALL_ALLOWED
    """The namespaces that may use it and the queues below it (S5)."""
    immune_within_share: bool = False
    """Whether pods in it are exempt from eviction only up to its share (S6)."""


class Queue:
    """A queue and its amounts, which include those of its descendants."""

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
        "share_columns",
        "too_deep",
        "used",
    )

    def __init__(self, name: str, width: int) -> None:
        self.name = name
        self.facts = QueueFacts(name)
        self.exists = False
        self.ancestors: tuple[Queue, ...] = (self,)
        """Itself first, then its parent and so on."""
        self.too_deep = False
        """Whether it is further below the root than a tree is deep (S8): its gangs are held, and no parent counts."""
        self.children: list[Queue] = []
        self.used: Ints = np.zeros(width, np.int64)
        self.demand: Ints = np.zeros(width, np.int64)
        """What it uses plus what its waiting gangs request."""
        self.enqueued: Ints = np.zeros(width, np.int64)
        """What gangs that were enqueued, and not attempted yet, will use (M6)."""
        self.deserved: Ints = np.zeros(width, np.int64)
        self.share_columns: frozenset[int] | None = None
        """The columns that count for its share: those that its `deserved` names; `None`: all."""
        self.limits: dict[int, int] = {}
        """Its capability by column; other columns are unlimited."""


class QueueTree:
    """All queues by name. A queue that exists only as the name in a gang is counted too, with `exists` false."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._width = 8
        self.queues: dict[str, Queue] = {}
        self._deserved_outdated = True
        self._deserved_totals: Ints = np.zeros(0, np.int64)
        """The cluster totals that `deserved` was computed from."""
        self._guaranteed: dict[str, Ints] = {}
        self._guarantee_paths: set[str] = set()
        """Queues that have a guarantee, or a descendant that has one."""
        self._absent = 0
        """How many do not exist."""
        self._retained = 0
        """How many of those the last `retain` kept."""
        self._tops: list[Queue] = []
        """The queues without a parent: what they use, all others use too."""
        self._named_parents: set[str] = set()
        """Names that queues give as their parent's, and some that they gave once."""
        self.version = 0
        """Increases when demands change, and with them what queues deserve."""
        self.used_version = 0
        """Increases when queues come to use more or less."""
        self.deserved_version = 0
        """Increases when what queues deserve is computed, or the tree changes."""
        self.shares_version = 0
        """Increases when a queue deserves another amount than before."""
        self._touched: set[Queue] = set()
        self.usage_of: Callable[[Queue], float] | None = None
        """What a queue has used over time against its weight; `None`: that does not order queues (G12)."""

    # ---- events

    def put(self, facts: QueueFacts) -> None:
        queue = self.get(facts.name)
        for amounts in (facts.capability, facts.guarantee, facts.deserved):
            self._ensure(tuple(self._resources.amounts(amounts).items()))
        moves = (queue.facts.parent or ROOT) != (facts.parent or ROOT) or queue.facts.guarantee != facts.guarantee
        self._absent -= not queue.exists
        queue.facts = facts
        queue.limits = self._resources.capacity(facts.capability)
        queue.exists = True
        self.version += 1
        self._deserved_outdated = True
        self._named_parents.add(facts.parent)
        if moves:
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
            if name in self._named_parents or name == ROOT:
                self._relink()
            else:
                self._link_leaf(queue)
        return queue

    def _link_leaf(self, queue: Queue) -> None:
        """A new queue that uses nothing, and that no other queue names as its parent: no amounts change."""
        self._absent += 1
        self._deserved_outdated = True
        queue.ancestors = tuple(self._path_to_root(queue))
        if len(queue.ancestors) > 1:
            insort(queue.ancestors[1].children, queue, key=lambda child: child.name)
        else:
            self._tops.append(queue)

    def needs_compaction(self) -> bool:
        """Whether enough queues do not exist for a `retain` to pay."""
        return self._absent > 2 * self._retained + ABSENT_BOUND

    def retain(self, named: Container[str]) -> None:
        """Drops the queues that do not exist, except those that gangs name and parents of queues that exist."""
        parents = {queue.facts.parent for queue in self.queues.values() if queue.exists}
        self.queues = {
            name: queue
            for name, queue in self.queues.items()
            if queue.exists or name == ROOT or name in named or name in parents
        }
        self._touched.intersection_update(self.queues.values())
        self._relink()
        self._retained = self._absent

    # ---- amounts

    def allocate(self, queue: Queue, request: Request, count: int = 1) -> None:
        """`count` tasks of that request use resources of the queue."""
        self._ensure(request)
        self._touched.update(queue.ancestors)
        self.used_version += 1
        for ancestor in queue.ancestors:
            used = ancestor.used
            for column, amount in request:
                used[column] += amount * count

    def release(self, queue: Queue, request: Request, count: int = 1) -> None:
        """The exact inverse of `allocate`."""
        self.allocate(queue, request, -count)

    def add_demand(self, queue: Queue, amounts: Mapping[int, int] | Request, count: int = 1) -> None:
        """The queue demands `count` times these amounts. Amounts that no node can have are left out: they cannot be
        satisfied, and a few hundred of them would overflow int64."""
        pairs = tuple(amounts.items()) if isinstance(amounts, Mapping) else amounts
        if not pairs:
            return
        self._ensure(pairs)
        pairs = tuple((column, amount) for column, amount in pairs if amount <= CEILING)
        for ancestor in queue.ancestors:
            for column, amount in pairs:
                ancestor.demand[column] += amount * count
        self._deserved_outdated = True
        self.version += 1

    def remove_demand(self, queue: Queue, amounts: Mapping[int, int] | Request, count: int = 1) -> None:
        """The exact inverse of `add_demand`."""
        self.add_demand(queue, amounts, -count)

    def add_enqueued(self, queue: Queue, amounts: Mapping[int, int], count: int = 1) -> None:
        """A gang was enqueued and not attempted yet: what it will use (M6)."""
        self._ensure(tuple(amounts.items()))
        self._touched.update(queue.ancestors)
        for ancestor in queue.ancestors:
            for column, amount in amounts.items():
                ancestor.enqueued[column] += amount * count

    def remove_enqueued(self, queue: Queue, amounts: Mapping[int, int], count: int = 1) -> None:
        """The exact inverse of `add_enqueued`."""
        self.add_enqueued(queue, amounts, -count)

    def allowed_tasks(self, queue: Queue, request: Request, free: Ints) -> int:
        """How many more tasks of that request the queue may use: by the capability of it and its ancestors, and by what
        is guaranteed to other queues of the cluster's `free` amounts."""
        self._ensure(request)
        most = CEILING
        for ancestor in queue.ancestors:
            if ancestor.limits:
                for column, amount in request:
                    if column in ancestor.limits:
                        most = min(most, (ancestor.limits[column] - int(ancestor.used[column])) // amount)
        if self._guaranteed:
            reserved = self.guaranteed_to_others(queue)
            for column, amount in request:
                if reserved[column]:
                    most = min(most, (int(free[column]) - int(reserved[column])) // amount)
        return max(most, 0)

    def allows(self, requested: Mapping[str, Mapping[int, int]], free: Ints | None) -> bool:
        """Whether queues, by name, may use these amounts, all at once. `free` is needed if there are guarantees: then
        no queue may use what is guaranteed to another one."""
        by_queue: dict[str, Counter[int]] = {}
        total: Counter[int] = Counter()
        for name, amounts in requested.items():
            total.update(amounts)
            for ancestor in self.get(name).ancestors:
                by_queue.setdefault(ancestor.name, Counter()).update(amounts)
        for name, summed in by_queue.items():
            if self.over_capability(self.queues[name], summed, with_enqueued=False) is not None:
                return False
        if free is not None:
            for name in requested:
                reserved = self.guaranteed_to_others(self.get(name))
                if any(
                    reserved[column] and amount > free[column] - reserved[column] for column, amount in total.items()
                ):
                    return False
        return True

    def guaranteed_to_others(self, queue: Queue) -> Ints:
        """By column, the unused guarantees of other queues: what `queue` must leave free in the cluster."""
        reserved = np.zeros(self._width, np.int64)
        for name in self._guarantee_paths:
            if len(self.queues[name].ancestors) == 1:
                reserved += self._unused_guarantee(self.queues[name], queue)
        return reserved

    def _unused_guarantee(self, subtree: Queue, queue: Queue) -> Ints:
        """The unused guarantee of a subtree that `queue` must not consume; a parent's guarantee includes those of its
        children."""
        reserved = np.zeros(self._width, np.int64)
        if subtree is queue:
            return reserved
        for child in subtree.children:
            if child.name in self._guarantee_paths:
                reserved += self._unused_guarantee(child, queue)
        guarantee = self._guaranteed.get(subtree.name)
        if guarantee is not None and subtree not in queue.ancestors:
            reserved = np.maximum(reserved, guarantee - subtree.used)
        return reserved

    @property
    def guarantees(self) -> bool:
        return bool(self._guaranteed)

    def over_capability(
        self, queue: Queue, amounts: Mapping[int, int], with_enqueued: bool
    ) -> tuple[Queue, int] | None:
        """The first queue from here to the root whose capability these amounts would exceed, and the column."""
        self._ensure(tuple(amounts.items()))
        for ancestor in queue.ancestors:
            for column, limit in ancestor.limits.items():
                amount = amounts.get(column, 0)
                used = int(ancestor.used[column]) + (int(ancestor.enqueued[column]) if with_enqueued else 0)
                if amount and used + amount > limit:
                    return ancestor, column
        return None

    def enqueued_total(self) -> Ints:
        """What all gangs that were enqueued, and not attempted yet, will use."""
        total = np.zeros(self._width, np.int64)
        for queue in self._tops:
            total += queue.enqueued
        return total

    def shut_by(self, queue: Queue, namespace: str, labels: Mapping[str, str]) -> Queue | None:
        """The queue, itself or an ancestor, that does not allow a namespace; `None` if all of them do (S5)."""
        return next(
            (place for place in queue.ancestors if not place.facts.allowed_namespaces.allow(namespace, labels)), None
        )

    def restricts_namespaces(self, queue: Queue) -> bool:
        """Whether it, or an ancestor, allows some namespaces only."""
        return any(not place.facts.allowed_namespaces.all_allowed for place in queue.ancestors)

    # ---- order

    def take_touched(self) -> set[Queue]:
        """The queues that came to use more or less since this was last asked."""
        touched, self._touched = self._touched, set()
        return touched

    def order(self, queue: Queue, totals: Ints, with_enqueued: bool = False) -> QueueOrder:
        """The sort key of a queue: priority, usage over time (G12), share and name of each queue from the root down to
        it."""
        self.update_deserved(totals)
        return self.order_now(queue, with_enqueued)

    def order_now(self, queue: Queue, with_enqueued: bool) -> QueueOrder:
        """The same, when what queues deserve is up to date."""
        usage_of = self.usage_of
        return tuple(
            (
                -ancestor.facts.priority,
                usage_of(ancestor) if usage_of is not None else 0.0,
                self.share(ancestor, with_enqueued),
                ancestor.name,
            )
            for ancestor in reversed(queue.ancestors)
            if ancestor.name != ROOT
        )

    def share(self, queue: Queue, with_enqueued: bool = False) -> float:
        """What a queue uses of what it deserves, in the resource where that is most (dominant share)."""
        used = queue.used + queue.enqueued if with_enqueued else queue.used
        deserved = queue.deserved
        share = 0.0
        for column in np.flatnonzero(used).tolist():
            if column == PODS or (queue.share_columns is not None and column not in queue.share_columns):
                continue  # numbers of pods are not shared out
            share = max(share, used[column] / deserved[column] if deserved[column] > 0 else 1.0)
        return float(share)

    # ---- reclaim

    def update_deserved(self, totals: Ints) -> None:
        """Recomputes what each queue deserves, if demands or the cluster's totals changed."""
        if self._deserved_outdated or not np.array_equal(totals, self._deserved_totals):
            self._compute_deserved(totals)

    @contextmanager
    def as_deserved_now(self, totals: Ints) -> Iterator[None]:
        """Within it, queues have what they deserve by their present demands, for metrics and pages. What the actions
        computed last is put back, since they read it: no decision depends on whether a metric is read."""
        self._ensure(((len(totals) - 1, 0),))
        kept = [(queue, queue.deserved, queue.share_columns) for queue in self.queues.values()]
        known = self._deserved_outdated, self._deserved_totals, self.deserved_version
        shares = self.shares_version
        self._compute_deserved(totals)
        try:
            yield
        finally:
            for queue, deserved, columns in kept:
                queue.deserved, queue.share_columns = deserved, columns
            self._deserved_outdated, self._deserved_totals, self.deserved_version = known
            self.shares_version = shares

    def above_share(self, queue: Queue, more: Mapping[int, int] | None = None) -> bool:
        """Whether a queue uses more than it deserves of a resource that counts for its share (P2); or would, with this
        much more."""
        used = queue.used
        if more:
            self._ensure(tuple(more.items()))
            used = queue.used.copy()
            for column, amount in more.items():
                used[column] += amount
        for column in np.flatnonzero(used > queue.deserved).tolist():
            if column != PODS and (queue.share_columns is None or column in queue.share_columns):
                return True
        return False

    def below_share(self, queue: Queue) -> bool:
        """Whether a queue uses less than it deserves of a resource: otherwise nothing is within its share."""
        below = queue.used < queue.deserved
        return bool(below[:PODS].any() or below[PODS + 1 :].any())

    def within_share(self, queue: Queue, more: Mapping[int, int]) -> bool:
        """Whether a queue that used this much more would be within what it deserves of one of these resources."""
        self._ensure(tuple(more.items()))
        return any(
            column != PODS and amount > 0 and queue.used[column] + amount <= queue.deserved[column]
            for column, amount in more.items()
        )

    def below_guarantee(self, queue: Queue, less: Mapping[int, int]) -> bool:
        """Whether a queue that used this much less would be below its guarantee."""
        guarantee = self._guaranteed.get(queue.name)
        if guarantee is None:
            return False
        return any(
            guarantee[column] and queue.used[column] - amount < guarantee[column] for column, amount in less.items()
        )

    # ---- internals

    def _ensure(self, request: Request | tuple[tuple[int, int], ...]) -> None:
        """Adds the columns of new resource names."""
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
        """Rebuilds the tree after a queue was added, removed or moved, and sums amounts up the new paths."""
        self._absent = sum(not queue.exists for queue in self.queues.values())
        self._named_parents = {queue.facts.parent for queue in self.queues.values()}
        own = {queue.name: _own(queue, self._width) for queue in self._all()}
        for queue in self._all():
            queue.children = []
        for queue in self._all():
            queue.ancestors = tuple(self._path_to_root(queue))
            if len(queue.ancestors) > 1:
                queue.ancestors[1].children.append(queue)
            queue.used, queue.demand, queue.enqueued = np.zeros((3, self._width), np.int64)
        self._tops = [queue for queue in self.queues.values() if len(queue.ancestors) == 1]
        for queue in self._all():
            used, demand, enqueued = own[queue.name]
            for ancestor in queue.ancestors:
                ancestor.used += used
                ancestor.demand += demand
                ancestor.enqueued += enqueued
        self._guaranteed = {}
        for queue in self._all():
            if queue.facts.guarantee:
                self._guaranteed[queue.name] = self._vector(queue.facts.guarantee)
        self._guarantee_paths = {above.name for name in self._guaranteed for above in self.queues[name].ancestors}
        self._deserved_outdated = True

    def _vector(self, quantities: Mapping[str, int]) -> Ints:
        pairs = self._resources.amounts(quantities)
        self._ensure(tuple(pairs.items()))
        found = np.zeros(self._width, np.int64)
        for column, amount in pairs.items():
            found[column] = amount
        return found

    def _all(self) -> list[Queue]:
        return [self.queues[name] for name in sorted(self.queues)]

    def _path_to_root(self, queue: Queue) -> Iterator[Queue]:
        """The queue, its parent and so on, as far as parents exist."""
        above: Queue | None = queue
        while above is not None:
            yield above
            above = self._parent(above)

    def _parent(self, queue: Queue) -> Queue | None:
        """The parent queue; `None` for a queue that is its own ancestor, or too deep (admission refuses both)."""
        parent = self._named_parent(queue)
        above = parent
        seen: set[str] = set()
        queue.too_deep = False
        while above is not None and above.name not in seen:
            if above is queue:
                return None
            if len(seen) >= DEEPEST - 1 and above.name != ROOT:
                queue.too_deep = True
                return None
            seen.add(above.name)
            above = self._named_parent(above)
        return parent

    def _named_parent(self, queue: Queue) -> Queue | None:
        """The parent by its name, the root otherwise: also for the root itself."""
        return self.queues.get(queue.facts.parent or ROOT)

    def _compute_deserved(self, totals: Ints) -> None:
        """What each queue deserves (V4): its `deserved` if any queue sets one, else by weight and demand."""
        self._deserved_outdated = False
        self.deserved_version += 1
        self._deserved_totals = totals
        self._ensure(((len(totals) - 1, 0),))
        before = [(queue, queue.deserved) for queue in self.queues.values()]
        pool = np.zeros(self._width, np.int64)
        pool[: len(totals)] = totals
        explicit = any(queue.facts.deserved for queue in self.queues.values())
        tops = sorted((queue for queue in self._tops if queue.name != ROOT), key=lambda queue: queue.name)
        root = self.queues.get(ROOT)
        if root is not None:
            root.deserved = pool.copy()
            tops = [*tops, *root.children]
        if explicit:
            for queue in tops:
                self._explicit_deserved(queue)
        else:
            self._weighted_deserved(tops, pool)
        self.shares_version += any(not np.array_equal(queue.deserved, deserved) for queue, deserved in before)

    def _explicit_deserved(self, queue: Queue) -> None:
        """The `deserved` of a queue and its descendants; a parent without one deserves the sum of its children's. If a
        queue names no resource at all, every column counts for its share: all that it uses is above it."""
        for child in queue.children:
            self._explicit_deserved(child)
        queue.deserved = np.zeros(self._width, np.int64)
        for column, amount in self._resources.amounts(queue.facts.deserved).items():
            queue.deserved[column] = amount
        named = set(self._resources.amounts(queue.facts.deserved))
        if not named:
            for child in queue.children:
                queue.deserved += child.deserved
                named |= child.share_columns or set()
        self._raise_to_guarantee(queue)
        queue.share_columns = frozenset(named | set(self._resources.amounts(queue.facts.guarantee))) if named else None

    def _weighted_deserved(self, siblings: list[Queue], pool: Ints) -> None:
        """Divides a pool among siblings by weight, and what each of them gets among its children."""
        for queue in siblings:
            queue.deserved = np.zeros(self._width, np.int64)
        for column in range(self._width):
            self._fill_column(siblings, column, int(pool[column]))
        for queue in siblings:
            self._raise_to_guarantee(queue)
            queue.share_columns = None
            if queue.children:
                self._weighted_deserved(queue.children, queue.deserved)

    def _fill_column(self, siblings: list[Queue], column: int, left: int) -> None:
        """Water-filling of one resource: each queue gets its part by weight, at most its demand and capability."""
        demands: dict[str, int] = {}
        for queue in siblings:
            demand, limit = int(queue.demand[column]), queue.limits.get(column)
            demands[queue.name] = demand if limit is None else min(demand, limit)
        unsatisfied = [queue for queue in siblings if demands[queue.name] > 0]
        while unsatisfied and left > 0:
            weight = sum(queue.facts.weight for queue in unsatisfied)
            satisfied = [q for q in unsatisfied if demands[q.name] * weight <= left * q.facts.weight]
            if not satisfied:
                for queue in unsatisfied:
                    queue.deserved[column] = left * queue.facts.weight // weight
                return
            for queue in satisfied:
                queue.deserved[column] = demands[queue.name]
                left -= demands[queue.name]
            unsatisfied = [queue for queue in unsatisfied if queue not in satisfied]

    def _raise_to_guarantee(self, queue: Queue) -> None:
        for column, amount in self._resources.amounts(queue.facts.guarantee).items():
            queue.deserved[column] = max(int(queue.deserved[column]), amount)


def _own(queue: Queue, width: int) -> tuple[Ints, Ints, Ints]:
    """What is used, demanded and enqueued by its own gangs: without what its children have."""
    used, demand, enqueued = np.zeros((3, width), np.int64)
    for child in queue.children:
        used += child.used
        demand += child.demand
        enqueued += child.enqueued
    return queue.used - used, queue.demand - demand, queue.enqueued - enqueued
