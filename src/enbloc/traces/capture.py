"""The job history of a running cluster as a trace: what `enbloc capture` writes, and `enbloc replay` reads.

A job is a gang whose pods have all ended, or a Volcano or batch Job that has ended and whose pods are gone. What the
API no longer has is not in it: jobs that were deleted, or removed after their time to live. Names, sizes and times
only; no object is copied.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO

from enbloc.api import volcano
from enbloc.api.core import PodSpec
from enbloc.api.kinds import KINDS as KNOWN
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, key_of, name_of, namespace_of, owner_key
from enbloc.api.requests import pod_requests
from enbloc.api.workloads import JOB as BATCH_JOB
from enbloc.api.writes import WatchEvent
from enbloc.config import Config
from enbloc.gangs.hints import hints_of, pod_hints
from enbloc.gangs.lenient import LenientRegistry
from enbloc.gangs.registry import GangRegistry, queue_hint
from enbloc.traces.trace import CPU, GPU
from enbloc.units import NANO, SECOND, parse_quantity, parse_timestamp

KINDS: Final = tuple(kind for kind in KNOWN if kind in GangRegistry.kinds | {"Pod", "Node", volcano.QUEUE, BATCH_JOB})
NEEDED: Final = ("Node", "Pod")
_ENDED: Final = ("Succeeded", "Failed")
_COLUMNS: Final = ("id", "submit", "duration", "estimate", "user", "queue")


class CapturedJob(NamedTuple):
    id: str
    submit_ns: int
    start_ns: int
    end_ns: int
    estimate_ns: int | None
    user: str
    """Its namespace, and its user in it, if its object says who submitted it (G12)."""
    queue: str
    requests: Mapping[str, int]
    """Resource → nano-units, of all its pods."""


class Captured(NamedTuple):
    jobs: list[CapturedJob]
    """By submission."""
    skipped: Counter[str]
    """Reason → number of gangs."""
    nodes: list[Mapping[str, str]]
    """The allocatable of each node."""
    queues: list[Obj]

    @property
    def resource(self) -> str:
        """What jobs are counted in: GPUs if any job requests some."""
        return GPU if any(job.requests.get(GPU) for job in self.jobs) else CPU


def capture(lists: Mapping[str, Sequence[Obj]], config: Config) -> Captured:
    registry = LenientRegistry.of(config)
    for kind in sorted(registry.kinds & set(lists)):
        for obj in lists[kind]:
            registry.observe(WatchEvent("ADDED", kind, obj))
    pods: dict[Any, list[Obj]] = {}
    for pod in lists.get("Pod", ()):
        registry.observe_pod(pod, gone=False)
        pods.setdefault(registry.member(pod).gang, []).append(pod)
    jobs: list[CapturedJob] = []
    skipped: Counter[str] = Counter()
    owners: set[str] = set()
    for key, members in pods.items():
        owners.update(owner_key(pod, one) for pod in members for one in pod["metadata"].get("ownerReferences") or ())
        spec = registry.spec(key)
        title = spec.title if spec is not None else "/".join(key[1:])
        queue = spec.queue if spec is not None else queue_hint(members[0])
        created_ns = spec.created_ns if spec is not None else None
        estimate_ns = spec.hints.run_time_ns if spec is not None else None
        user = spec.hints.user if spec is not None else ""
        found = _of_pods(title, members, queue, created_ns, estimate_ns, user)
        _sort_in(found, jobs, skipped)
    for kind, read in ((volcano.JOB, _of_volcano_job), (BATCH_JOB, _of_batch_job)):
        for job in lists.get(kind, ()):
            if key_of(job) not in owners:
                _sort_in(read(job), jobs, skipped)
    jobs.sort(key=lambda job: (job.submit_ns, job.id))
    nodes = [(node.get("status") or {}).get("allocatable") or {} for node in lists.get("Node", ())]
    return Captured(jobs, skipped, nodes, list(lists.get(volcano.QUEUE, ())))


def _sort_in(found: CapturedJob | str, jobs: list[CapturedJob], skipped: Counter[str]) -> None:
    if isinstance(found, str):
        skipped[found] += 1
    else:
        jobs.append(found)


def _of_pods(
    title: str, pods: Sequence[Obj], queue: str, created_ns: int | None, estimate_ns: int | None, user: str
) -> CapturedJob | str:
    started: list[int] = []
    ended: list[int] = []
    requests: dict[str, int] = {}
    for pod in pods:
        status = pod.get("status") or {}
        if status.get("phase") not in _ENDED:
            return "still runs" if status.get("startTime") else "waits"
        if not status.get("startTime"):
            return "never started"
        started.append(parse_timestamp(status["startTime"]))
        ended += list(_finished(status))
        _add(requests, pod_requests(_spec(pod)), 1)
    if not ended:
        return "does not say when it ended"
    created = [parse_timestamp(pod["metadata"]["creationTimestamp"]) for pod in pods]
    estimates = [pod_hints(pod).run_time_ns for pod in pods]
    if estimate_ns is None and all(one is not None for one in estimates):
        estimate_ns = max(one for one in estimates if one is not None)
    submit_ns = min([*created, *([created_ns] if created_ns is not None else [])])
    user = _user(namespace_of(pods[0]), user or pod_hints(pods[0]).user)
    return _job(title, submit_ns, max(started), max(ended), estimate_ns, user, queue, requests)


def _user(namespace: str, user: str) -> str:
    return f"{namespace}/{user}" if user else namespace


def _finished(status: Mapping[str, Any]) -> Iterator[int]:
    for container in status.get("containerStatuses") or ():
        at = ((container.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if at:
            yield parse_timestamp(at)


def _of_volcano_job(job: Obj) -> CapturedJob | str:
    status = job.get("status") or {}
    state = status.get("state") or {}
    if state.get("phase") not in ("Completed", "Failed", "Terminated"):
        return "still runs" if state.get("phase") == "Running" else "waits"
    times = {
        condition.get("status"): condition.get("lastTransitionTime")
        for condition in status.get("conditions") or ()
        if isinstance(condition, dict)
    }
    began, ended = times.get("Running"), state.get("lastTransitionTime")
    if not began or not ended:
        return "does not say when it ran"
    requests: dict[str, int] = {}
    for task in (job.get("spec") or {}).get("tasks") or ():
        _add(requests, pod_requests(_spec(task.get("template") or {})), int(task.get("replicas") or 1))
    queue = (job.get("spec") or {}).get("queue") or volcano.DEFAULT_QUEUE
    return _of_owner(job, began, ended, queue, requests)


def _of_batch_job(job: Obj) -> CapturedJob | str:
    status, spec = job.get("status") or {}, job.get("spec") or {}
    began, ended = status.get("startTime"), status.get("completionTime")
    if not began or not ended:
        return "still runs" if began else "waits"
    requests: dict[str, int] = {}
    _add(requests, pod_requests(_spec(spec.get("template") or {})), int(spec.get("parallelism") or 1))
    return _of_owner(job, began, ended, volcano.DEFAULT_QUEUE, requests)


def _of_owner(job: Obj, began: str, ended: str, queue: str, requests: Mapping[str, int]) -> CapturedJob | str:
    submit_ns = parse_timestamp(job["metadata"]["creationTimestamp"])
    title = f"{namespace_of(job)}/{name_of(job)}"
    times = parse_timestamp(began), parse_timestamp(ended)
    hints = hints_of(job)
    user = _user(namespace_of(job), hints.user)
    return _job(title, submit_ns, *times, hints.run_time_ns, user, queue, requests)


def _job(
    title: str,
    submit_ns: int,
    start_ns: int,
    end_ns: int,
    estimate_ns: int | None,
    user: str,
    queue: str,
    requests: Mapping[str, int],
) -> CapturedJob | str:
    if end_ns <= start_ns:
        return "ran for less than a second"
    return CapturedJob(title, submit_ns, start_ns, end_ns, estimate_ns, user, queue or volcano.DEFAULT_QUEUE, requests)


def _spec(obj: Mapping[str, Any]) -> PodSpec:
    return view(obj.get("spec") or {"containers": []}, PodSpec)


def _add(into: dict[str, int], requests: Mapping[str, int], times: int) -> None:
    for name, amount in requests.items():
        into[name] = into.get(name, 0) + amount * times


# ---- as a file


def write(captured: Captured, out: TextIO) -> int:
    """Writes a CSV trace with the cluster in comments at its head. Returns how many jobs were written."""
    resource = captured.resource
    size = "gpus" if resource == GPU else "cpus"
    for line in _head(captured, resource):
        out.write(f"# {line}\n")
    table = csv.writer(out, lineterminator="\n")
    table.writerow([*_COLUMNS, size])
    written = 0
    for job in captured.jobs:
        units = -(-job.requests.get(resource, 0) // NANO)
        if units:
            estimate = "" if job.estimate_ns is None else _seconds(job.estimate_ns)
            times = (_seconds(job.submit_ns), _seconds(job.end_ns - job.start_ns), estimate)
            table.writerow([job.id, *times, job.user, job.queue, units])
            written += 1
    return written


def _head(captured: Captured, resource: str) -> Iterator[str]:
    """The nodes, which a replay takes as its cluster: as many as have the resource, each as large as the median."""
    amounts = sorted(amount for node in captured.nodes if (amount := _amount(node, resource)))
    if amounts:
        yield f"nodes: {len(amounts)}"
        yield f"node-resources: {resource}={amounts[len(amounts) // 2]}"
        if amounts[0] != amounts[-1]:
            yield f"the nodes differ: from {amounts[0]} to {amounts[-1]}"
    for queue in captured.queues:
        spec = queue.get("spec") or {}
        shown = {key: spec[key] for key in ("weight", "priority", "parent", "deserved", "capability") if spec.get(key)}
        yield f"queue: {name_of(queue)} {json.dumps(shown, sort_keys=True)}"


def _amount(node: Mapping[str, str], resource: str) -> int:
    try:
        return parse_quantity(str(node.get(resource, "0"))).nanos // NANO
    except ValueError:
        return 0


def _seconds(time_ns: int) -> str:
    return f"{time_ns / SECOND:.3f}".rstrip("0").rstrip(".")
