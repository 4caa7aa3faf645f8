"""The pods of one job, counted as they are observed, so that reconciling a job costs its roles and not its pods."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from enbloc.api import volcano
from enbloc.api.meta import Obj, annotations_of, is_terminating, labels_of, name_of, number_in, uid_of

TERMINATING = "Terminating"
RUN = "enbloc.dev/run"
"""On a pod: how often its role and the pod itself had been restarted in this run of the job when it was created."""
EVICTED_AT = "enbloc.dev/evicted-at"
"""On the replacement of an evicted pod whose policy waits for its timeout: when the eviction was."""
DELETED = "enbloc.dev/deleted"
"""On a pod that the controller is about to delete: that it goes is no eviction (V2)."""
MOST_INDEXES = 100_000
"""Pods with a higher index are not recorded as live."""
LIVE = frozenset({"Pending", "Running", "Unknown"})


class JobPod(msgspec.Struct, frozen=True, gc=False):
    """One pod of a job as far as the controller reads it. Times are RFC 3339, empty where there is none."""

    name: str
    uid: str
    role: str
    index: int
    version: int
    run: int
    phase: str = ""
    ready: bool = False
    exit_code: int = 0
    restarts: int = 0
    created: str = ""
    status_phase: str = ""  # its status' phase, also while it terminates
    finished_at: str = ""
    evicted_at: str = ""
    is_deleted_by_us: bool = False

    @property
    def is_live(self) -> bool:
        """Whether it would be evicted if it went: it has not ended, and is not deleted by the controller."""
        return self.status_phase in LIVE and not self.is_deleted_by_us


def member_of(pod: Obj) -> JobPod:
    annotations, labels, status = annotations_of(pod), labels_of(pod), pod.get("status") or {}
    index = labels.get(volcano.TASK_INDEX) or annotations.get(volcano.TASK_INDEX) or name_of(pod).rpartition("-")[2]
    phase = TERMINATING if is_terminating(pod) else status.get("phase") or "Pending"
    return JobPod(
        name=name_of(pod),
        uid=uid_of(pod),
        role=volcano.role_of(pod),
        index=int(index) if index.isascii() and index.isdecimal() else -1,
        phase=phase,
        ready=phase == "Running" and not _is_unready(status),
        version=number_in(annotations.get(volcano.JOB_VERSION)) or 0,
        exit_code=_exit_code(status),
        restarts=sum(container.get("restartCount") or 0 for container in status.get("containerStatuses") or ()),
        created=pod["metadata"].get("creationTimestamp") or "",
        status_phase=status.get("phase") or "Pending",
        run=number_in(annotations.get(RUN)) or 0,
        finished_at=_end(status),
        evicted_at=annotations.get(EVICTED_AT) or "",
        is_deleted_by_us=DELETED in annotations,
    )


def _end(status: dict[str, Any]) -> str:
    """When the last container finished, in its current state or, if it runs again, before."""
    ends = [
        ((container.get(state) or {}).get("terminated") or {}).get("finishedAt") or ""
        for container in status.get("containerStatuses") or ()
        for state in ("state", "lastState")
    ]
    return max(ends, default="")


def _exit_code(status: dict[str, Any]) -> int:
    """The first exit code other than 0."""
    for container in status.get("containerStatuses") or ():
        code: int = ((container.get("state") or {}).get("terminated") or {}).get("exitCode") or 0
        if code:
            return code
    return 0


def _is_unready(status: dict[str, Any]) -> bool:
    conditions = status.get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") != "True" for condition in conditions)


class PodCounts:
    """The pods by name, and how many of each role are in each phase."""

    def __init__(self) -> None:
        self.pods: dict[str, JobPod] = {}
        self.by_role: dict[str, Counter[str]] = {}
        self.ready: Counter[str] = Counter()
        self.restarts: Counter[str] = Counter()  # of containers
        self.revision = 0  # raised whenever a pod is created or deleted
        self.live: dict[str, int] = {}
        """By role: a bit for each index that is live."""
        self.evicted: dict[str, tuple[JobPod, int | None]] = {}
        """By name: evicted pods without a replacement, and when that was found."""

    def put(self, pod: Obj) -> JobPod | None:
        """Records a pod as it is now; returns its previous record."""
        member = member_of(pod)
        before = self._take(member.name)
        self.revision += before is None
        self.pods[member.name] = member
        self._count(member, 1)
        return before

    def drop(self, pod: Obj) -> JobPod | None:
        """Records that a pod is gone. A newer pod of the same name stays."""
        known = self.pods.get(name_of(pod))
        if known is None or known.uid != uid_of(pod):
            return None
        self.revision += 1
        return self._take(known.name)

    def _take(self, name: str) -> JobPod | None:
        before = self.pods.pop(name, None)
        if before is not None:
            self._count(before, -1)
        return before

    def _count(self, member: JobPod, by: int) -> None:
        counts = self.by_role.setdefault(member.role, Counter())
        counts[member.phase] += by
        self.restarts[member.role] += by * member.restarts
        if member.ready:
            self.ready[member.role] += by
        if member.is_live and 0 <= member.index < MOST_INDEXES:
            bit = 1 << member.index
            self.live[member.role] = (self.live.get(member.role, 0) & ~bit) | (bit if by > 0 else 0)

    def of(self, role: str, phase: str) -> int:
        counts = self.by_role.get(role)
        return counts[phase] if counts else 0

    def total(self, phase: str) -> int:
        return sum([counts.get(phase, 0) for counts in self.by_role.values()])

    def size(self, role: str) -> int:
        counts = self.by_role.get(role)
        return counts.total() if counts else 0
