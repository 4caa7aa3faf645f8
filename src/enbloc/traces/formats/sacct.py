"""Slurm's accounting: `sacct --parsable --allusers --format=JobID,Submit,Elapsed,Timelimit,AllocTRES,User,Partition`.

Steps (`123.batch`) are left out; a job's GPUs count where any job of the trace has some, else its CPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from enbloc.traces.trace import CPU, GPU, Line, Trace, TraceJob, collect, job_line
from enbloc.units import SECOND

_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.(\d+))?$")
_GPUS = re.compile(r"gres/gpu(?::[^=,]*)?=(\d+)")
_CPUS = re.compile(r"(?:^|,)cpu=(\d+)")
_NO_LIMIT = ("", "UNLIMITED", "Partition_Limit", "INVALID")


def read(lines: Iterable[str]) -> Trace:
    """Raises `ValueError` if the header lacks a column that is needed."""
    rows = iter(lines)
    header = next(rows, "").rstrip("\n").rstrip("|").split("|")
    for needed in ("JobID", "Submit"):
        if needed not in header:
            raise ValueError(f"is no output of sacct --parsable: the header has no {needed}")
    found = [
        (number, dict(zip(header, row.rstrip("\n").split("|"), strict=False))) for number, row in enumerate(rows, 2)
    ]
    jobs = [(number, row) for number, row in found if "." not in row.get("JobID", ".") and any(row.values())]
    gpus = any(_GPUS.search(_tres(row)) for _, row in jobs)
    return collect(_jobs(jobs, gpus), GPU if gpus else CPU)


def _jobs(rows: list[tuple[int, dict[str, str]]], gpus: bool) -> Iterator[Line]:
    for number, row in rows:
        try:
            yield _job(number, row, gpus)
        except (ValueError, OverflowError) as why:
            yield Line(number, fault=str(why))


def _job(number: int, row: dict[str, str], gpus: bool) -> Line:
    try:
        submitted = datetime.fromisoformat(row["Submit"])
    except ValueError:
        raise ValueError(f"Submit: {row['Submit']!r:.40} is not a time such as 2026-10-01T08:00:00") from None
    at = submitted if submitted.tzinfo else submitted.replace(tzinfo=UTC)
    job = TraceJob(
        id=row["JobID"],
        submit_ns=round(at.timestamp() * SECOND),
        run_ns=_elapsed(row),
        units=_units(row, gpus),
        estimate_ns=_limit(row),
        user=row.get("User", ""),
        queue=row.get("Partition", ""),
    )
    return job_line(number, job)


def _elapsed(row: dict[str, str]) -> int:
    if row.get("ElapsedRaw", "").isdigit():
        return int(row["ElapsedRaw"]) * SECOND
    return _duration(row.get("Elapsed", ""))


def _limit(row: dict[str, str]) -> int | None:
    if row.get("TimelimitRaw", "").isdigit():
        return int(row["TimelimitRaw"]) * 60 * SECOND
    text = row.get("Timelimit", "")
    return None if text in _NO_LIMIT else _duration(text)


def _duration(text: str) -> int:
    """`[DD-[HH:]]MM:SS[.mmm]`"""
    match = _DURATION.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a duration as Slurm writes it, [DD-[HH:]]MM:SS")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups()[:4])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * SECOND


def _tres(row: dict[str, str]) -> str:
    return row.get("AllocTRES") or row.get("ReqTRES") or ""


def _units(row: dict[str, str], gpus: bool) -> int:
    if gpus:
        match = _GPUS.search(_tres(row))
        return int(match[1]) if match else 0
    for column in ("NCPUS", "AllocCPUS", "ReqCPUS"):
        if row.get(column, "").isdigit():
            return int(row[column])
    match = _CPUS.search(_tres(row))
    if match is None:
        raise ValueError("has no NCPUS, AllocCPUS or AllocTRES")
    return int(match[1])
