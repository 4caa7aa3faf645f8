"""Why a gang waits: the closed set of reasons (N6). Conditions, events, `explain` and JSON use these words."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class PendingReason(StrEnum):
    NOT_ENOUGH_PODS = "NotEnoughPods"
    """Fewer members exist than the minima need (G4)."""
    SCHEDULING_GATED = "SchedulingGated"
    """Members that the minima need are held by scheduling gates (N4)."""
    OTHER_SCHEDULER = "OtherScheduler"
    """Members that the minima need name another scheduler (N4)."""
    FAILED_CREATE = "FailedCreate"
    """Members that the minima need could not be created: a quota or a webhook refused them (N4)."""
    UNSUPPORTED_CONSTRAINT = "UnsupportedConstraint"
    """It sets a constraint that this version does not honour (N1)."""
    INTERNAL_ERROR = "InternalError"
    """An error of this program while its objects were read, attempted or reported: it is held (S8)."""
    GANG_INVALID = "GangInvalid"
    """Its object, its queue or its values do not allow it to be scheduled."""
    GROUP_NOT_READY = "GroupNotReady"
    """A gang that it starts together with cannot start (K7)."""
    TIMED_OUT = "TimedOut"
    """Its pods are annotated as timed out (K8)."""
    NOT_ENOUGH_RESOURCES = "NotEnoughResources"
    """Its minResources cannot be met: it is not enqueued (M6), or not attempted (K7)."""
    UNSCHEDULABLE = "Unschedulable"
    """It was attempted, and not all of its minima fit (G2)."""
    QUEUE_FULL = "QueueFull"
    """Its queue, or a queue above it, may not use more (V4)."""
    CLAIM_NOT_ALLOWED = "ClaimNotAllowed"
    """It may not claim room for pods that do not exist: a quota, or a claim of its owner that lapsed (S9)."""
    BLOCKED_BY_FIFO = "BlockedByFIFO"
    """A gang ahead of it in a strict FIFO queue waits (G8)."""
    HOLD_RELEASED = "HoldReleased"
    """It released held pods so that another group could start (K12)."""
    PREEMPTING = "Preempting"
    """Pods that its gang evicted are stopping, and it starts in their place (P3)."""
    SURPLUS = "Surplus"
    """Its gang, which has not started, does not need it for its minimum (G3)."""


OF_PODS: Final = frozenset({PendingReason.PREEMPTING, PendingReason.SURPLUS})
"""Reasons that pods carry while their gang is `Unschedulable`: no node is asked for (E1)."""
LACKS_MEMBERS: Final = frozenset(
    {
        PendingReason.NOT_ENOUGH_PODS,
        PendingReason.SCHEDULING_GATED,
        PendingReason.OTHER_SCHEDULER,
        PendingReason.FAILED_CREATE,
    }
)
"""Reasons of a gang with fewer schedulable members than its minima need."""
