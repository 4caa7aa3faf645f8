"""The result of a replay for people: one line a policy, then what changed from the first to each other one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from enbloc.listing import plural
from enbloc.units import SECOND, format_duration

_COLUMNS: Final = (
    ("policy", "policy"),
    ("mean_wait_s", "mean wait"),
    ("p50_wait_s", "median"),
    ("p99_wait_s", "p99"),
    ("mean_bounded_slowdown", "slowdown"),
    ("mean_jct_s", "mean completion"),
    ("makespan_s", "makespan"),
    ("utilisation", "use"),
)


def lines(answer: dict[str, Any]) -> Iterator[str]:
    trace = answer["trace"]
    cluster = answer["cluster"]
    machine = f"{plural(cluster['nodes'], 'node')} of {cluster['per_node']} {cluster['resource']}"
    yield f"{plural(trace['jobs'], 'job')} on {machine}"
    for reason, count in trace["skipped"].items():
        yield f"  left out: {plural(count, 'job')} ({reason})"
    for fault in trace["faults"][:5]:
        yield f"  line {fault['line']}: {fault['message']}"
    if trace["bad_lines"] > 5:
        yield f"  … {plural(trace['bad_lines'], 'line')} cannot be read in all"
    yield ""
    yield from _table(answer["policies"])
    for compared in answer["comparison"]:
        yield ""
        yield from _compared(compared)


def _table(policies: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = [[title for _, title in _COLUMNS]]
    rows += [[_cell(key, policy[key]) for key, _ in _COLUMNS] for policy in policies]
    yield from _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        first = row[0].ljust(widths[0])
        yield "  ".join([first, *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))])


def _cell(key: str, value: Any) -> str:
    if key == "policy":
        return str(value)
    if key == "utilisation":
        return f"{value:.1%}"
    if key == "mean_bounded_slowdown":
        return f"{value:,.1f}"
    return _time(value)


def _time(seconds: float) -> str:
    return format_duration(round(seconds) * SECOND)


def _compared(compared: dict[str, Any]) -> Iterator[str]:
    sooner = compared["sooner"]
    start = f"{plural(sooner, 'job')} start{'s' if sooner == 1 else ''} sooner, {compared['later']:,} later"
    yield f"{compared['after']} against {compared['before']}: {start}"
    for key, title in (("by_size", "size"), ("by_user", "user"), ("by_queue", "queue")):
        groups = compared[key]
        if len(groups) < 2:
            continue
        rows = [[title, "jobs", "win", "lose", compared["before"], compared["after"]]]
        for group in groups[:10]:
            counts = (f"{group[key]:,}" for key in ("jobs", "sooner", "later"))
            rows.append([group["name"], *counts, _time(group["mean_wait_before_s"]), _time(group["mean_wait_after_s"])])
        yield from (f"  {line}" for line in _aligned(rows))
    changed = compared["most_changed"][:5]
    if changed:
        yield "  changed most:"
    for one in changed:
        waits = f"{_time(one['wait_before_s'])} to {_time(one['wait_after_s'])}"
        yield f"    job {one['job']} of size {one['units']}: waits {waits}"
