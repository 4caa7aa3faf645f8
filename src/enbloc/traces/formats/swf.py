"""SWF, the Standard Workload Format of the Parallel Workloads Archive: 18 numbers a line, comments after `;`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from enbloc.traces.trace import CPU, Line, Trace, TraceJob, collect, job_line, number_of
from enbloc.units import SECOND

_FIELDS: Final = 18
_ID, _SUBMIT, _RUN, _USED, _ASKED, _LIMIT, _USER, _QUEUE = 0, 1, 3, 4, 7, 8, 11, 14
_SIZE: Final = re.compile(r";\s*(MaxProcs|MaxNodes):\s*(\d+)")


def read(lines: Iterable[str]) -> Trace:
    sizes: dict[str, int] = {}

    def jobs() -> Iterator[Line]:
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if text.startswith(";"):
                if (size := _SIZE.match(text)) is not None:
                    sizes[size[1]] = int(size[2])
            elif text:
                yield _job(number, text)

    trace = collect(jobs(), CPU)
    processors = sizes.get("MaxProcs") or sizes.get("MaxNodes")
    return Trace(trace.jobs, CPU, processors, faults=trace.faults, skipped=trace.skipped)


def _job(number: int, text: str) -> Line:
    fields = text.split()
    if len(fields) < _FIELDS:
        return Line(number, fault=f"has {len(fields)} fields, not {_FIELDS}")
    try:
        values = [number_of(f"field {n + 1}", fields[n]) for n in (_SUBMIT, _RUN, _USED, _ASKED, _LIMIT)]
    except ValueError as why:
        return Line(number, fault=str(why))
    submit, run, used, asked, limit = (round(value * SECOND) for value in values)
    units = (used if used > 0 else asked) // SECOND
    job = TraceJob(
        id=fields[_ID],
        submit_ns=submit,
        run_ns=run,
        units=units,
        estimate_ns=limit if limit > 0 else None,
        user=fields[_USER] if fields[_USER] != "-1" else "",
        queue=fields[_QUEUE] if fields[_QUEUE] != "-1" else "",
    )
    return job_line(number, job)
