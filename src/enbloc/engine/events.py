"""Cluster events as values: what happened that may let a waiting gang be placed.

The state records them, each filter and queue rule declares the kinds that can help it (`wakes_on`, kube-scheduler's
queueing hints), and the scheduling queue wakes the gangs that were rejected by one of those. This module defines the
kinds and the value only.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple


class EventKind(Enum):
    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    """Labels, taints, readiness, cordon or allocatable."""
    NODE_REMOVED = auto()
    """Its pods no longer count for stateful filters; diagnoses that counted the node are out of date (G10)."""
    ROOM_FREED = auto()
    """A pod released its room on a node: it ended, was deleted, or its assumed placement was taken back."""
    POD_PLACED = auto()
    """A pod was assigned to a node: what stateful filters count has changed."""
    VOLUME_CHANGED = auto()
    """A PersistentVolume or a StorageClass, or a PersistentVolumeClaim that had a volume assumed for it."""
    VOLUME_CLAIM_CHANGED = auto()
    """A PersistentVolumeClaim, `subject` its namespace and name."""
    NAMESPACE_LABELS_CHANGED = auto()
    QUEUE_CHANGED = auto()
    """A queue was created, changed or deleted."""
    QUEUE_USES_LESS = auto()
    """A queue's usage, or what is enqueued in it, fell."""
    BUDGET_CHANGED = auto()
    """A PodDisruptionBudget was created, changed or deleted."""
    VICTIMS_CHANGED = auto()
    """Which pods may be evicted, or for whom, has changed: a priority, a hint, a refused eviction."""
    RESERVATION_RELEASED = auto()
    """Nodes that were reserved for a gang, or closed to others for it, are open again."""
    FORECAST_CHANGED = auto()
    """A pod's expected end is known or has moved (R8)."""


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
