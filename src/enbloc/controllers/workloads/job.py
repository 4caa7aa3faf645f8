"""Job: pods that run to completion, in parallel, by number or by index, with retries, a deadline and an end."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.api import workloads
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, condition_of, holds, is_terminating, name_of
from enbloc.api.workloads import JobSpec, JobStatus
from enbloc.api.writes import Write
from enbloc.controllers.timers import BATCH
from enbloc.controllers.workloads import pod_state
from enbloc.controllers.workloads.job_counts import Counts, count, index_of, is_tracked, release
from enbloc.controllers.workloads.job_pod_group import group_name, group_writes
from enbloc.controllers.workloads.owned import (
    Outcome,
    Surroundings,
    condition,
    delete,
    event,
    new_pod,
    status_patch,
    with_conditions,
)
from enbloc.units import SECOND, format_timestamp, parse_timestamp

COMPONENT: Final = "job-controller"
CONTROLLER: Final = "kubernetes.io/job-controller"
FIRST_BACKOFF_NS: Final = 10 * SECOND
MAX_BACKOFF_NS: Final = 600 * SECOND
_INDEX_VARIABLE: Final = "JOB_COMPLETION_INDEX"


class End(NamedTuple):
    """How a Job ends."""

    condition: str
    """`Complete` or `Failed`."""
    reason: str
    message: str


class Run(msgspec.Struct, frozen=True):
    """A Job with its pods."""

    owner: Obj
    spec: JobSpec
    status: JobStatus
    pods: list[Obj]
    counts: Counts
    now_ns: int

    @property
    def active(self) -> list[Obj]:
        return [pod for pod in self.pods if pod_state.is_active(pod)]

    @property
    def at(self) -> str:
        return format_timestamp(self.now_ns)


def sync(owner: Obj, owned: list[Obj], around: Surroundings, now_ns: int) -> Outcome:
    job = view(owner, workloads.Job)
    if job.spec.managed_by != CONTROLLER:
        return Outcome([])
    pods = [one for one in owned if one["kind"] == "Pod"]
    status = job.status or JobStatus()
    ended = _end_condition(owner)
    if ended is not None:
        return _after_end(owner, job.spec, ended, pods, now_ns)
    spec = _bounded(job.spec)
    run = Run(owner, spec, status, pods, count(spec, status, pods), now_ns)
    end = _end(run)
    if end is not None:
        return _finish(run, end)
    if job.spec.suspend:
        return _suspended(run)
    made = _run(run)
    return made._replace(writes=[*group_writes(owner, job.spec, owned), *made.writes])


def _bounded(spec: JobSpec) -> JobSpec:
    """With as many pods at a time as are made of one object; and as many indexes, each of which is remembered."""
    most = workloads.MOST_PODS
    completions = spec.completions
    if spec.completion_mode == "Indexed" and completions is not None:
        completions = min(completions, most)
    return msgspec.structs.replace(spec, parallelism=min(spec.parallelism, most), completions=completions)


def released(pods: Iterable[Obj]) -> list[Write]:
    """The Job is gone, or on its way: nothing is counted any more."""
    return [release(pod) for pod in pods if pod["kind"] == "Pod" and is_tracked(pod)]


# ---- the end


def _end_condition(owner: Obj) -> dict[str, Any] | None:
    return holds(owner, "Complete") or holds(owner, "Failed")


def _end(run: Run) -> End | None:
    """How the Job ends, as soon as that is certain."""
    for target, kind in (("SuccessCriteriaMet", "Complete"), ("FailureTarget", "Failed")):
        if (known := holds(run.owner, target)) is not None:
            return End(kind, known.get("reason") or "", known.get("message") or "")
    spec, counts = run.spec, run.counts
    if counts.failed > spec.backoff_limit or _restarted_too_often(run):
        return End("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    if (ends_ns := _deadline(run)) is not None and ends_ns <= run.now_ns and not spec.suspend:
        return End("Failed", "DeadlineExceeded", "Job was active longer than specified deadline")
    if spec.completions is None:
        done = counts.succeeded > 0 and not run.active
    else:
        done = counts.succeeded >= spec.completions
    return End("Complete", "CompletionsReached", "Reached expected number of succeeded pods") if done else None


def _restarted_too_often(run: Run) -> bool:
    """Containers that restart in their pod count like failed pods."""
    if run.spec.template.spec.restart_policy != "OnFailure":
        return False
    restarts = sum(pod_state.restarts_of(pod) for pod in run.active)
    return restarts > 0 and restarts >= run.spec.backoff_limit


def _deadline(run: Run) -> int | None:
    seconds, start = run.spec.active_deadline_seconds, run.status.start_time
    return parse_timestamp(start) + seconds * SECOND if seconds is not None and start else None


def _finish(run: Run, end: End) -> Outcome:
    """Active pods are deleted first; the end is written when every pod has ended and was counted."""
    target = "SuccessCriteriaMet" if end.condition == "Complete" else "FailureTarget"
    made = [condition(run.owner, target, "True", end.reason, end.message, run.at)]
    writes: list[Write] = [*run.counts.releases, *_deleted(run.active)]
    left = [pod for pod in run.pods if not pod_state.is_finished(pod)]
    fields = _fields(run)
    if not left and run.counts.is_settled and condition_of(run.owner, target) is not None:
        made.append(condition(run.owner, end.condition, "True", end.reason, end.message, run.at))
        if end.condition == "Complete":
            fields["completionTime"] = run.at
            writes.append(event(run.owner, "Completed", "Job completed", COMPONENT))
        else:
            writes.append(event(run.owner, end.reason, end.message, COMPONENT, "Warning"))
    fields["conditions"] = with_conditions(run.owner, *made)
    return Outcome([*writes, *status_patch(run.owner, fields)], _ttl_due(run.spec, None))


def _after_end(owner: Obj, spec: JobSpec, ended: dict[str, Any], pods: list[Obj], now_ns: int) -> Outcome:
    """Pods that are left are released, and the Job is deleted when its time is over."""
    due_ns = _ttl_due(spec, ended)
    if due_ns is not None and due_ns <= now_ns:
        return Outcome([*released(pods), delete(owner)])
    return Outcome(released(pods), due_ns)


def _ttl_due(spec: JobSpec, ended: dict[str, Any] | None) -> int | None:
    seconds = spec.ttl_seconds_after_finished
    if seconds is None or ended is None:
        return None
    return parse_timestamp(ended.get("lastTransitionTime")) + seconds * SECOND


# ---- running


def _suspended(run: Run) -> Outcome:
    made = condition(run.owner, "Suspended", "True", "JobSuspended", "Job suspended", run.at)
    fields = {**_fields(run), "startTime": None, "conditions": with_conditions(run.owner, made)}
    writes: list[Write] = [*run.counts.releases, *_deleted(run.active)]
    if not holds(run.owner, "Suspended"):
        writes.append(event(run.owner, "Suspended", "Job suspended", COMPONENT))
    return Outcome([*writes, *status_patch(run.owner, fields)])


def _run(run: Run) -> Outcome:
    fields = _fields(run)
    writes: list[Write] = [*run.counts.releases]
    if holds(run.owner, "Suspended"):
        made = condition(run.owner, "Suspended", "False", "JobResumed", "Job resumed", run.at)
        fields["conditions"] = with_conditions(run.owner, made)
        fields["startTime"] = run.at
        writes.append(event(run.owner, "Resumed", "Job resumed", COMPONENT))
    elif not run.status.start_time:
        fields["startTime"] = run.at
    due = [_deadline(run)] if run.status.start_time else []
    excess = _excess(run)
    if excess:
        writes += _deleted(excess)
    else:
        starts_ns = _backoff_end(run)
        if starts_ns > run.now_ns:
            due.append(starts_ns)
        else:
            writes += _created(run)
    writes += status_patch(run.owner, fields)
    return Outcome(writes, min((at_ns for at_ns in due if at_ns is not None), default=None))


def _fields(run: Run) -> dict[str, Any]:
    active = run.active
    return {
        **run.counts.status,
        "active": len(active) or None,
        "ready": sum(1 for pod in active if pod_state.is_ready(pod)),
        "terminating": sum(1 for pod in run.pods if is_terminating(pod) and not pod_state.is_finished(pod)),
    }


def _wanted(run: Run) -> int:
    """How many pods should be active."""
    spec, succeeded = run.spec, run.counts.succeeded
    if spec.completions is None:  # a work queue: once a pod succeeded, none is added
        return min(len(run.active), spec.parallelism) if succeeded else spec.parallelism
    return max(min(spec.parallelism, spec.completions - succeeded), 0)


def _excess(run: Run) -> list[Obj]:
    """Active pods that are too many: of an index twice or beyond the last one, else as a ReplicaSet chooses."""
    ordered = pod_state.in_order_of_deletion(run.active)
    excess: list[Obj] = []
    if run.spec.completion_mode == "Indexed":
        seen: set[int] = set()
        for pod in reversed(ordered):
            index = index_of(pod)
            if index is None or index in seen or index in run.counts.completed or index >= (run.spec.completions or 0):
                excess.append(pod)
            else:
                seen.add(index)
    kept = [pod for pod in ordered if not any(pod is one for one in excess)]
    return [*excess, *kept[: max(len(kept) - _wanted(run), 0)]]


def _backoff_end(run: Run) -> int:
    """When pods may be created again after failures: 10 s, 20 s, 40 s … after the last of a row of failures."""
    times: dict[str, list[int]] = {"Succeeded": [0], "Failed": []}
    for pod in run.pods:
        if pod_state.is_finished(pod):
            times[pod_state.phase_of(pod)].append(pod_state.finished_at(pod))
    row = [at_ns for at_ns in times["Failed"] if at_ns > max(times["Succeeded"])]
    if not row:
        return 0
    return max(row) + min(FIRST_BACKOFF_NS << min(len(row) - 1, 30), MAX_BACKOFF_NS)


def _created(run: Run) -> list[Write]:
    replaced_late = run.owner["spec"].get("podReplacementPolicy") == "Failed"
    busy = [pod for pod in run.pods if not pod_state.is_finished(pod)] if replaced_late else run.active
    missing = min(_wanted(run) - len(busy), BATCH)
    if missing <= 0:
        return []
    if run.spec.completion_mode != "Indexed":
        return [_new(run, None) for _ in range(missing)]
    taken = {index_of(pod) for pod in busy} | run.counts.completed
    free = (index for index in range(run.spec.completions or 0) if index not in taken)
    return [_new(run, index) for index in islice(free, missing)]


def _new(run: Run, index: int | None) -> Write:
    owner, template = run.owner, run.owner["spec"]["template"]
    name = name_of(owner)
    spec = dict(template["spec"])
    if group := group_name(owner):
        spec["schedulingGroup"] = {"podGroupName": group}
    if index is None:
        return new_pod(owner, template, generate_name=f"{name}-", finalizers=(workloads.JOB_TRACKING,), spec=spec)
    mark = {workloads.COMPLETION_INDEX: str(index)}
    spec["hostname"] = f"{name}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{workloads.COMPLETION_INDEX}']"}}
    for key in ("initContainers", "containers"):
        if spec.get(key):
            spec[key] = [_with_variable(one, {"name": _INDEX_VARIABLE, "valueFrom": source}) for one in spec[key]]
    return new_pod(
        owner,
        template,
        generate_name=f"{name}-{index}-",
        labels=mark,
        annotations=mark,
        finalizers=(workloads.JOB_TRACKING,),
        spec=spec,
    )


def _with_variable(container: dict[str, Any], variable: dict[str, Any]) -> dict[str, Any]:
    given = container.get("env") or []
    if any(one.get("name") == variable["name"] for one in given):
        return container
    return {**container, "env": [*given, variable]}


def _deleted(pods: list[Obj]) -> list[Write]:
    """Pods that the Job itself ends count neither as succeeded nor as failed."""
    writes: list[Write] = []
    for pod in pods:
        writes += [*([release(pod)] if is_tracked(pod) else []), delete(pod)]
    return writes
