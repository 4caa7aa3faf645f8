"""Batsim's JSON workloads: jobs with a profile each. Profiles of type `delay` have a run time; others are simulated by
Batsim alone, and are faults here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from enbloc.traces.trace import CPU, Line, Trace, TraceJob, collect, job_line
from enbloc.units import SECOND


def read(text: str) -> Trace:
    """Raises `ValueError` if it is no Batsim workload."""
    data = msgspec.json.decode(text)
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), list):
        raise ValueError("is no Batsim workload: there is no list `jobs`")
    profiles = data.get("profiles")
    size = data.get("nb_res")
    processors = size if isinstance(size, int) and size > 0 else None
    return collect(_jobs(data["jobs"], profiles if isinstance(profiles, dict) else {}), CPU, processors)


def _jobs(jobs: list[Any], profiles: Mapping[str, Any]) -> Iterator[Line]:
    for number, job in enumerate(jobs, 1):
        try:
            yield _job(number, job, profiles)
        except (KeyError, TypeError, ValueError, OverflowError) as why:
            yield Line(number, fault=f"job cannot be read: {type(why).__name__} {why}")


def _job(number: int, job: Mapping[str, Any], profiles: Mapping[str, Any]) -> Line:
    profile = profiles[job["profile"]]
    if profile.get("type") != "delay":
        return Line(number, fault=f"profile {job['profile']!r} is of type {profile.get('type')!r}, not delay")
    limit = job.get("walltime")
    read = TraceJob(
        id=str(job["id"]),
        submit_ns=round(float(job["subtime"]) * SECOND),
        run_ns=round(float(profile["delay"]) * SECOND),
        units=int(job["res"]),
        estimate_ns=round(float(limit) * SECOND) if limit is not None and float(limit) > 0 else None,
        user=str(job.get("user", "")),
    )
    return job_line(number, read)
