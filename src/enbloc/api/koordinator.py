"""Koordinator's PodGroup and keys, under their own names (K1, K8, K9).

scheduler-plugins' PodGroup (see `coscheduling`) has the same fields, so one view reads both.
"""

from __future__ import annotations

from typing import Any

import msgspec

from enbloc.api.meta import Quantities, TypedObject, View

GROUP = "scheduling.sigs.k8s.io"
POD_GROUP = f"PodGroup.{GROUP}"

POD_GROUP_KEY = "pod-group.scheduling.sigs.k8s.io"
"""On a pod: the name of its PodGroup, as a label (or an annotation)."""

PREFIX = "gang.scheduling.koordinator.sh/"
NAME = PREFIX + "name"
MIN_AVAILABLE = PREFIX + "min-available"
WAITING_TIME = PREFIX + "waiting-time"
TOTAL_NUMBER = PREFIX + "total-number"
MODE = PREFIX + "mode"
GROUPS = PREFIX + "groups"
GANG_GROUPS = PREFIX + "gang-groups"
MATCH_POLICY = PREFIX + "match-policy"
TIMEOUT = PREFIX + "timeout"
"""On a pod whose gang's waiting time is over: while it is `true` the pod is not scheduled (K8)."""


class PodGroupSpec(View):
    min_member: int = 0
    min_resources: Quantities | None = None
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(View):
    phase: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    occupied_by: str = ""
    schedule_start_time: str | None = None
    conditions: list[dict[str, Any]] | None = None


class PodGroup(TypedObject):
    spec: PodGroupSpec = msgspec.field(default_factory=PodGroupSpec)
    status: PodGroupStatus | None = None
