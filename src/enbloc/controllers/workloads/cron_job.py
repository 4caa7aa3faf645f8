"""CronJob: a Job at each instant of a schedule."""

from __future__ import annotations

from typing import Any, Final

from enbloc.api import workloads
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, holds, name_of, namespace_of, owned_metadata, uid_of
from enbloc.api.workloads import CronJobSpec
from enbloc.api.writes import Create, Write
from enbloc.controllers.workloads.cron import Schedule
from enbloc.controllers.workloads.owned import Outcome, Surroundings, delete, dig, event, status_patch
from enbloc.units import SECOND, format_timestamp, instant_of, parse_timestamp

COMPONENT: Final = "cronjob-controller"
SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MINUTE_NS: Final = 60 * SECOND
_WINDOWS_S: Final = (3600, 86_400, 32 * 86_400, 367 * 86_400, 5 * 366 * 86_400)


def sync(owner: Obj, owned: list[Obj], around: Surroundings, now_ns: int) -> Outcome:
    spec = view(owner, workloads.CronJob).spec
    writes: list[Write] = [*_forgotten(owned, "Complete", spec.successful_jobs_history_limit)]
    writes += _forgotten(owned, "Failed", spec.failed_jobs_history_limit)
    try:
        schedule = Schedule(spec.schedule, spec.time_zone)
    except ValueError:  # admission refuses it
        return Outcome(writes)
    active = [job for job in owned if not _ended(job)]
    status: dict[str, Any] = {"active": [_reference(job) for job in sorted(active, key=name_of)] or None}
    ends = [dig(job, "status", "completionTime") for job in owned if holds(job, "Complete")]
    last_success = max([*ends, dig(owner, "status", "lastSuccessfulTime")], key=instant_of)
    if last_success:
        status["lastSuccessfulTime"] = last_success
    due_ns = None
    if not spec.suspend:
        last_ns = _last(owner)
        at_ns = _missed(schedule, last_ns, now_ns)
        if at_ns is not None and any(name_of(job) == _name(owner, at_ns) for job in owned):
            status["lastScheduleTime"] = format_timestamp(at_ns)
        elif at_ns is not None:
            writes += _started(owner, spec, active, at_ns, now_ns)
        due_ns = schedule.next_after(now_ns)
    return Outcome([*writes, *status_patch(owner, status)], due_ns)


def _last(owner: Obj) -> int:
    return parse_timestamp(dig(owner, "status", "lastScheduleTime") or owner["metadata"]["creationTimestamp"])


def _missed(schedule: Schedule, after_ns: int, now_ns: int) -> int | None:
    """The latest instant of the schedule after `after_ns` and not after now."""
    for window_s in _WINDOWS_S:
        at_ns = schedule.next_after(max(now_ns - window_s * SECOND, after_ns))
        latest = None
        while at_ns is not None and at_ns <= now_ns:
            latest = at_ns
            at_ns = schedule.next_after(at_ns)
        if latest is not None or now_ns - window_s * SECOND <= after_ns:
            return latest
    return None


def _started(owner: Obj, spec: CronJobSpec, active: list[Obj], at_ns: int, now_ns: int) -> list[Write]:
    name = _name(owner, at_ns)
    limit_s = spec.starting_deadline_seconds
    if limit_s is not None and at_ns + limit_s * SECOND < now_ns:
        text = f"Missed scheduled time to start a job: {format_timestamp(at_ns)}"
        return [event(owner, "MissSchedule", text, COMPONENT, "Warning")]
    if active and spec.concurrency_policy == "Forbid":
        text = f"Not starting job {name} because prior execution is running and concurrency policy is Forbid"
        return [event(owner, "JobAlreadyActive", text, COMPONENT)]
    writes: list[Write] = [delete(job) for job in active] if spec.concurrency_policy == "Replace" else []
    return [
        *writes,
        Create(_job(owner, name, at_ns)),
        event(owner, "SuccessfulCreate", f"Created job {name}", COMPONENT),
    ]


def _name(owner: Obj, at_ns: int) -> str:
    return f"{name_of(owner)}-{at_ns // _MINUTE_NS}"


def _job(owner: Obj, name: str, at_ns: int) -> Obj:
    template = owner["spec"]["jobTemplate"]
    given = template.get("metadata") or {}
    annotations = {**(given.get("annotations") or {}), SCHEDULED_AT: format_timestamp(at_ns)}
    metadata = owned_metadata(owner, name, annotations=annotations)
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}


def _ended(job: Obj) -> bool:
    return bool(holds(job, "Complete") or holds(job, "Failed"))


def _reference(job: Obj) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "namespace": namespace_of(job),
        "name": name_of(job),
        "uid": uid_of(job),
    }


def _forgotten(owned: list[Obj], kind: str, limit: int) -> list[Write]:
    """The oldest ended Jobs beyond the history that is kept."""
    ended = sorted(
        (job for job in owned if holds(job, kind)),
        key=lambda job: (instant_of(dig(job, "status", "startTime")), name_of(job)),
    )
    return [delete(job) for job in ended[: max(len(ended) - limit, 0)]]
