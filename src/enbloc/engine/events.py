"""Cluster events as values: what happened that may let a waiting gang be placed.

The state records them in `ClusterEvents`. Each filter, queue rule and kind of claim declares the kinds that concern it
(`wakes_on`, kube-scheduler's queueing hints). Which gangs a cycle's events wake is left to `queueing.wake_rules`.
"""

from __future__ import annotations

from enum import IntEnum, auto
from typing import Final, NamedTuple


class EventKind(IntEnum):
    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    """Labels, taints, readiness, cordon or allocatable."""
    NODE_REMOVED = auto()
    """Its pods no longer count for stateful filters; diagnoses that counted the node are out of date (G10)."""
    ROOM_FREED = auto()
    """A pod released its room on `node`: it ended, was deleted, or its assumed placement was taken back."""
    POD_PLACED = auto()
    """A pod was assigned to a node, or holds room there: what stateful filters and queues count has changed."""
    VOLUME_CHANGED = auto()
    """A PersistentVolume or a StorageClass, or a PersistentVolumeClaim that had a volume assumed for it."""
    VOLUME_CLAIM_CHANGED = auto()
    """A PersistentVolumeClaim, `subject` its namespace and name."""
    NAMESPACE_LABELS_CHANGED = auto()
    QUEUE_CHANGED = auto()
    """A queue was created, changed or deleted."""
    QUEUE_USES_LESS = auto()
    """What is used of the cluster, or what is enqueued in a queue, fell."""
    BUDGET_CHANGED = auto()
    """A PodDisruptionBudget was created, changed or deleted."""
    VICTIMS_CHANGED = auto()
    """Which pods may be evicted, or for which gangs, has changed: a priority, a hint, a refused eviction."""
    NODES_REOPENED = auto()
    """Nodes that were closed to other gangs are open again: a reservation, a partial gang or a partial allocation
    ended."""
    FORECAST_CHANGED = auto()
    """An expected end or start is known or has moved (R8)."""
    TOPOLOGY_CHANGED = auto()
    """A node tree was created, changed or deleted (T5)."""
    RESERVE_DEFERRED = auto()
    """`reserve` left a starving gang to the next cycle (R3)."""


class ClusterEvent(NamedTuple):
    """One event. Equal events are recorded once."""

    kind: EventKind
    node: str = ""
    """The node, for kinds that concern one."""
    subject: tuple[str, str] | None = None
    """Namespace and name of the object, for kinds that concern one; `None`: more than one may be concerned."""


NODE_EVENTS: Final = frozenset({EventKind.NODE_ADDED, EventKind.NODE_CHANGED})
"""What can make a node pass that did not: each filter over a node's own facts wakes on these."""

PODS_REMOVED: Final = frozenset({EventKind.ROOM_FREED, EventKind.NODE_REMOVED})
"""What takes assigned pods out of the counts of stateful filters."""

VOLUME_EVENTS: Final = frozenset({EventKind.VOLUME_CHANGED, EventKind.VOLUME_CLAIM_CHANGED})

BEYOND_ROOM: Final = (
    NODE_EVENTS
    | VOLUME_EVENTS
    | {
        EventKind.NODE_REMOVED,
        EventKind.QUEUE_CHANGED,
        EventKind.NODES_REOPENED,
        EventKind.FORECAST_CHANGED,
        EventKind.TOPOLOGY_CHANGED,
    }
)
"""What changes more than how much room is free: where a gang may go at all, or what its queue may use."""

ALL_KINDS: Final = frozenset(EventKind)

VOLUME_CLAIMS_BOUND: Final = 256
"""At most 256 changed PersistentVolumeClaims are recorded by name; beyond that any volume may have changed."""


class ClusterEvents:
    """The events since the last cycle."""

    __slots__ = ("_events", "kinds")

    def __init__(self) -> None:
        self._events: dict[EventKind, set[ClusterEvent]] = {}
        self.kinds: set[EventKind] = set()

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def clear(self) -> None:
        self._events.clear()
        self.kinds.clear()

    def add(self, kind: EventKind) -> None:
        """An event that concerns no single object, or any of its kind."""
        self.kinds.add(kind)

    def add_room_freed(self, node: str) -> None:
        self._record(ClusterEvent(EventKind.ROOM_FREED, node))

    def add_volume_claim_changed(self, claim: tuple[str, str]) -> None:
        """A PersistentVolumeClaim changed, given by namespace and name."""
        if len(self._events.get(EventKind.VOLUME_CLAIM_CHANGED, ())) < VOLUME_CLAIMS_BOUND:
            self._record(ClusterEvent(EventKind.VOLUME_CLAIM_CHANGED, subject=claim))
        else:
            self.add(EventKind.VOLUME_CHANGED)

    def _record(self, event: ClusterEvent) -> None:
        self._events.setdefault(event.kind, set()).add(event)
        self.kinds.add(event.kind)

    def of(self, kind: EventKind) -> set[ClusterEvent]:
        """The events of a kind; one that names no object if only that it happened was recorded."""
        if kind not in self.kinds:
            return set()
        return self._events.get(kind) or {ClusterEvent(kind)}

    def any_of(self, kinds: frozenset[EventKind]) -> bool:
        return not kinds.isdisjoint(self.kinds)
