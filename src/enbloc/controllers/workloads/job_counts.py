"""How many pods of a Job have succeeded and failed, exactly once each, though finished pods may be deleted any time.

A pod has a finalizer until it was counted. A finished pod's UID is first recorded in the status as uncounted, then its
finalizer is removed, and only when that was observed the counter grows. A Job with indexes needs no such list for
succeeded pods: the set of completed indexes is the count.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from enbloc.api import workloads
from enbloc.api.kinds import ref_of
from enbloc.api.meta import Obj, annotations_of, is_terminating, number_in, uid_of
from enbloc.api.workloads import JobSpec, JobStatus
from enbloc.api.writes import Patch
from enbloc.controllers.workloads.pod_state import phase_of


class Counts(msgspec.Struct, frozen=True):
    """The counts with every pod that has finished by now, and the fields to be written."""

    succeeded: int
    failed: int
    completed: frozenset[int]
    """Indexes; empty for a Job without."""
    status: dict[str, Any]
    is_settled: bool
    """Whether no pod waits to be counted."""
    releases: list[Patch]


def count(spec: JobSpec, status: JobStatus, pods: list[Obj]) -> Counts:
    indexed = spec.completion_mode == "Indexed"
    tracked = {uid_of(pod): pod for pod in pods if is_tracked(pod)}
    known = status.uncounted_terminated_pods or workloads.UncountedPods()
    recorded = parse_indexes(status.completed_indexes)
    completed = recorded | _newly_completed(spec, tracked.values()) if indexed else recorded
    counters = {"succeeded": status.succeeded, "failed": status.failed}
    lists: dict[str, list[str]] = {}
    for which, phase, uids in (("succeeded", "Succeeded", known.succeeded), ("failed", "Failed", known.failed)):
        listed = list(uids or ())
        counters[which] += sum(1 for uid in listed if uid not in tracked)
        kept = [uid for uid in listed if uid in tracked]
        if not (indexed and which == "succeeded"):
            kept += [uid for uid, pod in tracked.items() if uid not in kept and ends_as(pod) == phase]
        if kept:
            lists[which] = kept
    succeeded = len(completed) if indexed else counters["succeeded"] + len(lists.get("succeeded", ()))
    fields: dict[str, Any] = {
        "succeeded": (len(completed) if indexed else counters["succeeded"]) or None,
        "failed": counters["failed"] or None,
        "uncountedTerminatedPods": lists,
    }
    if indexed:
        fields["completedIndexes"] = format_indexes(completed) or None
    done = {*(known.succeeded or ()), *(known.failed or ())}
    releases = [
        release(pod)
        for uid, pod in tracked.items()
        if uid in done or (indexed and phase_of(pod) == "Succeeded" and _is_recorded(spec, pod, recorded))
    ]
    waits = bool(lists) or bool(releases) or completed != recorded
    failed = counters["failed"] + len(lists.get("failed", ()))
    return Counts(succeeded, failed, completed, fields, not waits, releases)


def is_tracked(pod: Obj) -> bool:
    return workloads.JOB_TRACKING in (pod["metadata"].get("finalizers") or ())


def ends_as(pod: Obj) -> str:
    """`Succeeded`, `Failed`, or empty. A pod that is deleted before it succeeded counts as failed."""
    phase = phase_of(pod)
    if phase in ("Succeeded", "Failed"):
        return phase
    return "Failed" if is_terminating(pod) else ""


def release(pod: Obj) -> Patch:
    """Removes the finalizer: the pod was counted, or must not be."""
    kept = [one for one in pod["metadata"].get("finalizers") or () if one != workloads.JOB_TRACKING]
    return Patch(ref_of(pod), {"metadata": {"finalizers": kept or None}}, uid=uid_of(pod))


def index_of(pod: Obj) -> int | None:
    return number_in(annotations_of(pod).get(workloads.COMPLETION_INDEX))


def _newly_completed(spec: JobSpec, pods: Iterable[Obj]) -> frozenset[int]:
    indexes = [index_of(pod) for pod in pods if phase_of(pod) == "Succeeded"]
    return frozenset(index for index in indexes if index is not None and index < (spec.completions or 0))


def _is_recorded(spec: JobSpec, pod: Obj, recorded: frozenset[int]) -> bool:
    index = index_of(pod)
    return index is None or index >= (spec.completions or 0) or index in recorded


def parse_indexes(text: str) -> frozenset[int]:
    """`0-2,5` as numbers."""
    found: set[int] = set()
    for part in text.split(",") if text else ():
        first, dash, last = part.partition("-")
        if first.isdecimal() and (not dash or last.isdecimal()) and len(part) < 20:
            found.update(range(int(first), min(int(last if dash else first) + 1, workloads.MOST_PODS)))
    return frozenset(found)


def format_indexes(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(
        str(first) if first == last else f"{first},{last}" if last == first + 1 else f"{first}-{last}"
        for first, last in runs
    )
