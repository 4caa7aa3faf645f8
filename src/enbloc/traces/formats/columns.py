"""CSV with a header and a column map: which column is what, in which unit.

    submit=submit_time:ms,duration=duration:ms,gpus=num_gpu,user=owner

Without a map the usual names are looked for; times without a unit are seconds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.traces.trace import CPU, GPU, PODS, Line, Trace, TraceJob, collect, job_line, number_of
from enbloc.units import SECOND

UNITS: Final = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
RESOURCES: Final = {"gpus": GPU, "cpus": CPU, "pods": PODS}
MOST_NODES: Final = 20_000
MOST_WEIGHT: Final = 1_000_000
TIMES: Final = ("submit", "duration", "estimate")
FIELDS: Final = (*TIMES, *RESOURCES, "id", "user", "queue")

_USUAL: Final = {
    "submit": ("submit", "submit_time", "submission_time", "submitted", "arrival"),
    "duration": ("duration", "run_time", "runtime", "elapsed"),
    "estimate": ("estimate", "time_limit", "timelimit", "walltime"),
    "gpus": ("gpus", "num_gpu", "num_gpus", "gpu_num"),
    "cpus": ("cpus", "num_cpu", "num_cpus", "processors"),
    "pods": ("pods", "num_pods", "replicas"),
    "id": ("id", "job_id", "jobid", "job", "name"),
    "user": ("user", "owner", "user_id"),
    "queue": ("queue", "partition", "vc"),
}


class Column(NamedTuple):
    name: str
    unit_ns: int = SECOND


def parse_map(text: str) -> dict[str, Column]:
    """`submit=submit_time:ms,gpus=num_gpu`. Raises `ValueError`."""
    found: dict[str, Column] = {}
    for part in text.split(","):
        field, equals, column = part.strip().partition("=")
        name, _, unit = column.partition(":")
        if not equals or not name:
            raise ValueError(f"{part.strip()[:60]!r} is not FIELD=COLUMN")
        if field not in FIELDS:
            raise ValueError(f"{field!r} is not one of {', '.join(FIELDS)}")
        if unit and (unit not in UNITS or field not in TIMES):
            raise ValueError(f"{unit!r} is not a unit of {field}; times have one of {', '.join(UNITS)}")
        if field in found:
            raise ValueError(f"{field} is given twice")
        found[field] = Column(name, UNITS[unit or "s"])
    return found


def read(lines: Iterable[str], columns: dict[str, Column] | None = None) -> Trace:
    """Raises `ValueError` if the header lacks a column that is needed."""
    lines = list(lines)
    head = list(takewhile(lambda line: line.startswith("#"), lines))
    rows = csv.DictReader(lines[len(head) :])
    header = list(rows.fieldnames or ())
    chosen = _chosen(header, columns or {})
    kind = next(field for field in RESOURCES if field in chosen)

    def jobs() -> Iterator[Line]:
        for number, row in enumerate(rows, 1):
            yield _job(len(head) + rows.line_num, number, row, chosen, kind)

    cluster = _cluster(head)  # of `enbloc capture`, whose columns are known
    guessed = [] if cluster else [_as_map(*one) for one in chosen.items() if one[0] not in (columns or {})]
    return msgspec.structs.replace(collect(jobs(), RESOURCES[kind]), **cluster, guessed=",".join(guessed))


def _as_map(field: str, column: Column) -> str:
    """As `--map` takes it."""
    units = {unit_ns: unit for unit, unit_ns in UNITS.items()}
    return f"{field}={column.name}{f':{units[column.unit_ns]}' if field in TIMES else ''}"


def _cluster(head: Iterable[str]) -> dict[str, Any]:
    """The cluster that `enbloc capture` names in comments at the head. A comment of another kind says nothing."""
    found: dict[str, Any] = {}
    for line in head:
        key, _, value = line.removeprefix("#").strip().partition(": ")
        name, _, amount = value.partition("=")
        if key == "nodes" and value.isdecimal() and 0 < int(value) <= MOST_NODES:
            found["nodes"] = int(value)
        elif key == "node-resources" and amount.isdecimal() and int(amount):
            found["node_resources"] = {name: amount}
        elif key == "queue":
            name, _, spec = value.partition(" ")
            found.setdefault("queues", {})[name] = _weight(spec)
    return found


def _weight(spec: str) -> int:
    try:
        weight = msgspec.json.decode(spec, type=dict[str, Any]).get("weight")
    except (msgspec.DecodeError, UnicodeEncodeError):
        return 1
    return weight if isinstance(weight, int) and 0 < weight <= MOST_WEIGHT else 1


def _chosen(header: list[str], given: dict[str, Column]) -> dict[str, Column]:
    for field, column in given.items():
        if column.name not in header:
            raise ValueError(f"--map {field}: no column {column.name!r}; there are {', '.join(header)}")
    chosen = dict(given)
    sized = any(field in given for field in RESOURCES)
    for field, names in _USUAL.items():
        if field in chosen or (sized and field in RESOURCES):
            continue
        usual = next((name for name in header if name.lower() in names), None)
        if usual is not None:
            chosen[field] = Column(usual)
            sized = sized or field in RESOURCES
    missing = [field for field in ("submit", "duration") if field not in chosen]
    if not sized:
        missing.append("gpus, cpus or pods")
    if missing:
        raise ValueError(f"no column for {' and '.join(missing)}: name it with --map; there are {', '.join(header)}")
    return chosen


def _job(line: int, number: int, row: dict[str, str], chosen: dict[str, Column], kind: str) -> Line:
    def text(field: str) -> str:
        return (row.get(chosen[field].name) or "").strip() if field in chosen else ""

    def time(field: str) -> int:
        return round(number_of(chosen[field].name, text(field)) * chosen[field].unit_ns)

    try:
        job = TraceJob(
            id=text("id") or str(number),
            submit_ns=time("submit"),
            run_ns=time("duration"),
            units=int(number_of(chosen[kind].name, text(kind))),
            estimate_ns=time("estimate") if text("estimate") else None,
            user=text("user"),
            queue=text("queue"),
        )
    except ValueError as why:
        return Line(line, fault=str(why))
    return job_line(line, job)
