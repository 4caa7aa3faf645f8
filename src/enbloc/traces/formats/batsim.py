"""Batsim's JSON workloads: jobs with a profile each. Profiles of type `delay` have a run time; others are simulated by
Batsim alone, and are faults here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from enbloc.traces.trace import CPU, Line, Trace, TraceJob, collect, job_line, number_of
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
        except ValueError as why:
            yield Line(number, fault=str(why))


def _job(number: int, job: Any, profiles: Mapping[str, Any]) -> Line:
    """Raises `ValueError`."""
    if not isinstance(job, dict):
        raise ValueError(f"{job!r:.40} is not a job")
    name = job.get("profile")
    profile = profiles.get(name) if isinstance(name, str) else None
    if not isinstance(profile, dict):
        raise ValueError(f"profile {name!r:.40} is not among the profiles")
    if profile.get("type") != "delay":
        raise ValueError(f"profile {name!r:.40} is of type {profile.get('type')!r:.40}, not delay")
    limit_s = number_of("walltime", job["walltime"]) if job.get("walltime") is not None else 0.0
    read = TraceJob(
        id=str(job.get("id", number)),
        submit_ns=round(number_of("subtime", job.get("subtime")) * SECOND),
        run_ns=round(number_of("delay", profile.get("delay")) * SECOND),
        units=int(number_of("res", job.get("res"))),
        estimate_ns=round(limit_s * SECOND) if limit_s > 0 else None,
        user=str(job.get("user", "")),
    )
    return job_line(number, read)
