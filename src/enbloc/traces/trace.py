"""The jobs of a trace, in one form for all formats."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from enbloc.listing import plural
from enbloc.units import SECOND

CPU: Final = "cpu"
GPU: Final = "nvidia.com/gpu"
PODS: Final = "pods"
_LARGEST: Final = 1e18
"""Of a time in the unit of its trace, and of any other number."""


class TraceJob(msgspec.Struct, frozen=True, gc=False):
    """One job. Times are nanoseconds; `submit_ns` counts from the first submission of the trace."""

    id: str
    submit_ns: int
    run_ns: int
    units: int
    """Processors, GPUs or pods: see `Trace.resource`."""
    estimate_ns: int | None = None
    """The user's time limit."""
    user: str = ""
    queue: str = ""


class Line(NamedTuple):
    """What a format reads from one line or record: a job, or why there is none."""

    number: int
    job: TraceJob | None = None
    fault: str = ""
    """The line cannot be read."""
    skipped: str = ""
    """The line can be read, and describes no job that ran."""
    resource: str = ""


class Fault(NamedTuple):
    line: int
    message: str


class Trace(msgspec.Struct, frozen=True):
    """A whole trace: jobs by submission, and the lines that gave none."""

    jobs: list[TraceJob]
    resource: str = CPU
    """The resource that `units` count."""
    processors: int | None = None
    """The size of the machine, if the trace says so."""
    nodes: int | None = None
    node_resources: dict[str, str] | None = None
    """The cluster that it was captured on, if the trace says so."""
    queues: dict[str, int] = {}
    """Queues by name, and their weights, if the trace says so."""
    faults: tuple[Fault, ...] = ()
    skipped: dict[str, int] = {}
    """Reason → number of jobs."""
    guessed: str = ""
    """The columns and units that were guessed, as `--map` takes them."""


_LONGEST_JOB_S: Final = 30 * 86_400
_LONGEST_TRACE_S: Final = 20 * 365 * 86_400
"""Half of all jobs run longer, or the trace lasts longer: its unit is more likely another."""


def doubt(trace: Trace) -> str:
    """Why the times of a trace are most likely in another unit; empty: they are not."""
    if not trace.jobs:
        return ""
    median_s = sorted(job.run_ns for job in trace.jobs)[len(trace.jobs) // 2] / SECOND
    span_s = trace.jobs[-1].submit_ns / SECOND
    if median_s <= _LONGEST_JOB_S and span_s <= _LONGEST_TRACE_S:
        return ""
    days, years = round(median_s / 86_400), span_s / (365 * 86_400)
    return f"half of the jobs run {plural(days, 'day')} or longer and submissions span {years:,.1f} years"


def collect(lines: Iterable[Line], resource: str = CPU, processors: int | None = None) -> Trace:
    """The trace of these lines. Submissions are counted from the first one; equal ones keep their order."""
    jobs: list[TraceJob] = []
    faults: list[Fault] = []
    skipped: dict[str, int] = {}
    found = resource
    for line in lines:
        if line.job is not None:
            jobs.append(line.job)
            found = line.resource or found
        elif line.skipped:
            skipped[line.skipped] = skipped.get(line.skipped, 0) + 1
        else:
            faults.append(Fault(line.number, line.fault))
    jobs.sort(key=lambda job: job.submit_ns)
    return Trace(list(_from_zero(jobs)), found, processors, faults=tuple(faults), skipped=skipped)


def _from_zero(jobs: list[TraceJob]) -> Iterator[TraceJob]:
    first = jobs[0].submit_ns if jobs else 0
    for job in jobs:
        yield msgspec.structs.replace(job, submit_ns=job.submit_ns - first) if first else job


def number_of(field: str, value: object) -> float:
    """A number as a trace writes it. Raises `ValueError` that names the field and what is there."""
    try:
        found = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found) or abs(found) > _LARGEST:
        said = f"{value!r:.40} is not a number" if value not in (None, "") else "is missing"
        raise ValueError(f"{field}: {said}")
    return found


def job_line(number: int, job: TraceJob, resource: str = "", ran: bool = True) -> Line:
    """The line of a job that was read; one that did not run, or used nothing, is skipped."""
    if job.submit_ns < 0:
        return Line(number, fault="submit time is negative")
    if not ran or job.run_ns <= 0:
        return Line(number, skipped="did not run")
    if job.units <= 0:
        return Line(number, skipped="used no processors")
    return Line(number, job, resource=resource)
