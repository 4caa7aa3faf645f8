"""`docs/performance.md`, written from measurements."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import choice, targets
from benchmarks.peers.choice import QPS

Median = Callable[[Sequence[float]], float]

HEAD = """# Performance

This page is written by `python -m benchmarks.peers.plan`: the same gangs, on the same API server and etcd, for Enbloc,
for its peers, and for a loop that only binds. Each scheduler is a process of its own and is watched from outside. Every
repeat runs all of them in turn, each between two bare loops, of which `share` is a part: so other load on the machine
distorts ratios less than figures. Medians, with the least and the largest in brackets. Seconds count from the start of
the process, with the backlog waiting; `gang p50` and `p99` from a gang's last pod, or the start if that was later, to
its last Binding; CPU and memory are those of the scheduler's processes.

"""

TIMES = ("first_bind_s", "all_bound_s", "gang_p50_s", "gang_p99_s")
"""Figures that only a run has in which something was bound."""
BARE_WAITS = ("bare_gang_p50_s", "bare_gang_p99_s")
NOTES = Path(__file__).parent / "notes.md"
"""What was found by profile: written by hand, below the tables."""
GROWTH = "{growth}"
"""Stands in the notes for the table of `python -m benchmarks growth`."""
LOAD = ("nodes", "pods", "gang_size", "arrive")


def markdown(measured: Sequence[dict[str, Any]], median: Median) -> str:
    """`measured`: runs of schedulers, also those that failed, peers that were not run, and figures of other kinds."""
    results = [one for one in measured if "scheduler" in one and "failed" not in one]
    others: dict[str, Any] = {}
    for one in measured:
        others |= one if not {"scheduler", "not_run", "left_out"} & one.keys() else {}
    text = HEAD + _machine(results) + targets.table(results, others, median)
    for load in sorted(_unique(_load(one) for one in results)):
        text += _table(load, [one for one in results if _load(one) == load], median)
    text += _requests(results) + _commands(results) + _not_run(measured)
    return text + NOTES.read_text().replace(GROWTH, _growth(others.get("growth") or {}))


def _load(one: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(one[key] for key in LOAD)


def _machine(results: Sequence[dict[str, Any]]) -> str:
    loads = [one["load_average"] for one in results]
    versions = sorted({f"{one['scheduler']} {one['version']}".strip() for one in results})
    return (
        f"{os.cpu_count()} cores shared by all of it ({platform.machine()}, Python {platform.python_version()}); load "
        f"average of the machine while it was measured: {min(loads)} to {max(loads)}. {', '.join(versions)}; client "
        f"limits of peers raised to {QPS:,} a second, defaults otherwise.\n\n"
    )


def _unique(items: Any) -> list[Any]:
    return list(dict.fromkeys(items))


def _table(load: tuple[Any, ...], results: Sequence[dict[str, Any]], median: Median) -> str:
    nodes, pods, size, arrive = load
    how = ", arriving at half of what the bare loop creates and binds" if arrive else ", all waiting at the start"
    text = f"## {nodes:,} nodes, {pods:,} pods in gangs of {size}{how}\n"
    text += (
        "| scheduler, gangs | binds/s | share | first bind s | all bound s | gang p50 s | gang p99 s | CPU s | MB |\n"
    )
    text += "|---|---|---|---|---|---|---|---|---|\n"
    bare = [one["bare_bind_per_s"] for one in results]
    waits = [_spread([one[key] for one in results], median, 2) if arrive else "" for key in BARE_WAITS]
    text += f"| bare loop | {_spread(bare, median, 0)} | 1 | | | {waits[0]} | {waits[1]} | | |\n"
    for key in _unique((one["scheduler"], one["dialect"]) for one in results):
        mine = [one for one in results if (one["scheduler"], one["dialect"]) == key]
        cells = [
            _cell(name, mine, median, digits)
            for name, digits in (
                ("bound_per_s", 0), ("share_of_limit", 2), ("first_bind_s", 1), ("all_bound_s", 1), ("gang_p50_s", 2),
                ("gang_p99_s", 2), ("cpu_s", 1), ("peak_memory_mb", 0),
            )
        ]  # fmt: skip
        text += f"| {key[0]}, {key[1]}{_unfinished(mine)} | {' | '.join(cells)} |\n"
    return text + "\n"


def _unfinished(runs: Sequence[dict[str, Any]]) -> str:
    """How far those came that did not bind all pods in their time."""
    left = [one for one in runs if one["bound"] < one["pods"]]
    if not left:
        return ""
    bound = ", ".join(f"{one['bound']:,}" for one in left)
    within = f" in {left[0]['at_most_s']:g} s" if "at_most_s" in left[0] else ""
    return f" ({len(left)} of {len(runs)} runs did not end: {bound} bound{within})"


def _cell(name: str, runs: Sequence[dict[str, Any]], median: Median, digits: int) -> str:
    """A scheduler that bound nothing has a rate of 0, and no times."""
    if name in TIMES:
        runs = [one for one in runs if one["bound"]]
        if not runs:
            return "none bound"
    values = [one[name] for one in runs]
    if name == "peak_memory_mb" and not any(values):  # some kernels do not say
        return "not measured"
    return _spread(values, median, digits)


def _spread(values: Sequence[float], median: Median, digits: int) -> str:
    def shown(value: float) -> str:
        return f"{value:,.{digits}f}"

    if len(values) == 1:
        return shown(values[0])
    return f"{shown(median(values))} ({shown(min(values))}–{shown(max(values))})"


def _requests(results: Sequence[dict[str, Any]]) -> str:
    """Writes for each gang of the last run of each kind."""
    text = "## Writes for each gang\nBy the API server's own counters, in the last run of each; reads are left out. "
    text += "A scheduler that did not end made more attempts than Bindings.\n\n"
    text += "| scheduler, gangs | gang size | writes |\n|---|---|---|\n"
    for key in _unique((one["scheduler"], one["dialect"], one["gang_size"]) for one in results):
        last = [one for one in results if (one["scheduler"], one["dialect"], one["gang_size"]) == key][-1]
        gangs = -(-last["pods"] // last["gang_size"])
        writes = {
            name: count / gangs
            for name, count in last["requests"].items()
            if not name.startswith(("GET", "LIST")) and count >= gangs / 10
        }
        shown = ", ".join(f"{count:.1f} {name}" for name, count in writes.items())
        text += f"| {key[0]}, {key[1]} | {key[2]} | {shown} |\n"
    return text + "\n"


def _commands(results: Sequence[dict[str, Any]]) -> str:
    """How each scheduler was started, in the last of its runs."""
    text = "## How each was started\n| scheduler | version | command | besides |\n|---|---|---|---|\n"
    for name in _unique(one["scheduler"] for one in results):
        last = [one for one in results if one["scheduler"] == name][-1]
        commands = "; ".join(f"`{command}`" for command in last.get("commands", ()))
        text += f"| {name} | {last['version']} | {commands} | {last.get('how', '')} |\n"
    return text + "\n"


def _growth(cases: dict[str, Any]) -> str:
    if not cases:
        return "Not measured in this run; `benchmarks/growth.json` has the exponents that are expected."
    rows = (
        f"| `{name}` | {' / '.join(map(str, one['sizes']))} | {' / '.join(f'{each:.2f}' for each in one['cpu_s'])} "
        f"| {one['exponent']:.2f} |"
        for name, one in cases.items()
    )
    return "\n".join(("| case | sizes | CPU s | exponent |", "|---|---|---|---|", *rows))


def _not_run(measured: Sequence[dict[str, Any]]) -> str:
    """Peers of which there is no figure, runs that failed, and parts that were left out, with the reason."""
    ran = {one["scheduler"] for one in measured if "scheduler" in one and "failed" not in one}
    reasons = {one["not_run"]: one["why"] for one in measured if "not_run" in one}
    names = [*choice.NOT_BUILT, *(name for name, _ in choice.BUILT)]
    lines = [
        f"{name}: {reasons.get(name) or choice.NOT_BUILT.get(name) or 'left out of these runs'}"
        for name in names
        if name not in ran and not any(one.get("scheduler") == name for one in measured)
    ]
    lines += _unique(
        f"{one['scheduler']}, {one['dialect']}, {one['nodes']:,} nodes, {one['pods']:,} pods in gangs of "
        f"{one['gang_size']}{', arriving' if one['arrive'] else ''}: {one['failed']}"
        for one in measured
        if "failed" in one
    )
    lines += _unique(f"{one['left_out']}: {one['why']}" for one in measured if "left_out" in one)
    text = "".join(f"- {' '.join(line.split())[:600]}\n" for line in lines)
    return f"## Not run\n{text or 'None: all of them ran.'}\n"
