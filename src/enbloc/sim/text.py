"""The result of a simulation as text: how it ended, the gangs that ran, those that wait and why, rejected objects.

Long lists are cut, with the number of entries that are left out. Colour and width follow the terminal; without one it
is plain text.
"""

from __future__ import annotations

import sys
from typing import Any, Final, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from enbloc.api.reasons import PendingReason
from enbloc.listing import listed
from enbloc.sim.result import CUT_OFF, IDLE, Result
from enbloc.sim.statistics import GangRecord
from enbloc.units import SECOND, format_duration, natural_key

_ROWS: Final = 40
_NODES: Final = 4
_PLAIN_WIDTH: Final = 120
_OF_PENDING: Final = tuple(
    f"{reason}: " for reason in (*PendingReason, "FailedScheduling") if reason != PendingReason.FAILED_CREATE
)
"""Warning events that say why a gang waits, or waited."""


def print_result(result: Result, out: TextIO | None = None) -> None:
    stream = out or sys.stdout
    console = Console(
        file=stream, width=None if stream.isatty() else _PLAIN_WIDTH, highlight=False, markup=False, emoji=False
    )
    for line in _headlines(result):
        console.print(line)
    _print_gangs(console, result)
    _print_pending(console, result.pending)
    _print_rejected(console, result)
    _print_without_effect(console, result)
    _print_warnings(console, result)
    warnings = result.summary["warnings"]
    if warnings:
        them = "it" if warnings == 1 else "them"
        console.print(f"\n{_count(warnings, 'warning')}; `-o json` lists {them} in the timeline.", style="dim")


def _headlines(result: Result) -> list[Text]:
    summary = result.summary
    end = _seconds(result.end)
    how = {
        IDLE: f"Simulation finished at {end}.",
        CUT_OFF: f"Simulation cut off at {end}.",
    }.get(result.ended, f"Simulation stopped by --until; last change at {end}.")
    pods = summary["pods"]
    counts = [f"{pods['created']} created", f"{pods['bound']} bound"]
    counts += [f"{pods[what]} {what}" for what in ("succeeded", "failed", "evicted") if pods[what]]
    lines = [Text(how, style="bold"), Text(f"Pods: {', '.join(counts)}.")]
    waiting = summary["waiting"]["gangs"]
    if waiting:
        figures = ", ".join(f"{key} {_seconds(waiting[key])}" for key in ("median", "p95", "max"))
        lines.append(Text(f"Wait: {figures}."))
    used = ", ".join(f"{name} {part:.0%}" for name, part in summary["utilisation"].items())
    if used:
        lines.append(Text(f"Utilisation: {used}."))
    return lines


def _print_gangs(console: Console, result: Result) -> None:
    if not result.gangs:
        console.print("\nNo gang was started.")
        return
    console.print("\nGangs that ran", style="bold")
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("gang", "arrived", "started", "ended", "pods", "outcome", "nodes"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "pods" else "left")
    for gang in result.gangs[:_ROWS]:
        ended = format_duration(gang.ended_ns) if gang.running == 0 else "running"
        arrived, started = format_duration(gang.arrived_ns), format_duration(gang.started_ns)
        row = (gang.name, arrived, started, ended, str(gang.bound), _outcome(gang), _nodes(gang))
        table.add_row(*map(Text, row))
    console.print(table)
    _print_rest(console, len(result.gangs), "gangs")


def _outcome(gang: GangRecord) -> str:
    parts = [f"{count} {what}" for count, what in ((gang.succeeded, "succeeded"), (gang.failed, "failed")) if count]
    if gang.running:
        parts.append(f"{gang.running} running")
    removed = gang.bound - gang.running - gang.succeeded - gang.failed
    if removed:
        parts.append(f"{removed} removed")
    return ", ".join(parts)


def _nodes(gang: GangRecord) -> str:
    return listed(sorted(gang.nodes, key=natural_key), _NODES)


def _print_pending(console: Console, pending: list[dict[str, Any]]) -> None:
    if not pending:
        return
    console.print("\nGangs that wait, and why", style="bold")
    for entry in pending[:_ROWS]:
        text = Text("  ")
        text.append(entry["gang"], style="yellow")
        text.append(f": {entry.get('message') or _reasons(entry)}")
        console.print(text, soft_wrap=True)
        for line in _advice(entry):
            console.print(Text(f"      {line}", style="dim"), soft_wrap=True)
    _print_rest(console, len(pending), "gangs")


def _advice(entry: dict[str, Any]) -> list[str]:
    """What helps, tried, and when it is expected to start otherwise."""
    lines = []
    for number, remedy in enumerate(entry.get("remedies") or ()):
        what = "        or:" if number else "would help:"
        lines.append(f"{what} {remedy['change']} (starts at {_seconds(remedy['starts_at'])})")
    start = entry.get("expected_start")
    if start is not None:
        lines.append(f"expected to start at {_seconds(start)} ({entry['assumption']})")
    elif entry.get("assumption"):
        lines.append(f"expected start {entry['assumption']}")
    return lines


def _reasons(entry: dict[str, Any]) -> str:
    reasons = [f"{reason['reason']} on {_count(reason['nodes'], 'node')}" for reason in entry.get("reasons") or ()]
    return "; ".join(reasons) or "no reason was given"


def _print_rejected(console: Console, result: Result) -> None:
    rejected = [line for line in result.timeline if line.what == "rejected"]
    if not rejected:
        return
    console.print("\nRejected objects", style="bold")
    for line in rejected[:_ROWS]:
        name = f"{line.namespace}/{line.name}" if line.namespace else line.name
        text = Text("  ")
        text.append(f"{line.kind} {name}", style="red")
        text.append(f" at {_seconds(line.t)}: {line.message}")
        console.print(text, soft_wrap=True)
    _print_rest(console, len(rejected), "objects")


def _print_without_effect(console: Console, result: Result) -> None:
    if not result.without_effect:
        return
    console.print("\nObjects without effect", style="bold")
    alike: dict[tuple[str, str, str], list[str]] = {}
    for one in result.without_effect:
        alike.setdefault((one.kind, one.namespace, one.reason), []).append(one.name)
    for (kind, namespace, reason), names in list(alike.items())[:_ROWS]:
        name = f"{namespace}/{names[0]}" if namespace else names[0]
        rest = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        console.print(Text(f"  {kind} {name}{rest}: {reason}"), soft_wrap=True)
    _print_rest(console, len(alike), "objects")


def _print_warnings(console: Console, result: Result) -> None:
    """Those of the files, and Warning events; why a gang waits has its own list. Each message once."""
    why = [entry.get("message") or "" for entry in result.pending]
    written = [one for one in result.warnings if not any(one.message in text for text in why)]
    lines = {f"{one.field}: {one.message}": str(one) for one in reversed(written)}
    known = {one.message for one in result.warnings}
    texts = [*reversed(lines.values())]
    events: dict[str, str] = {}
    for line in result.timeline:
        if line.what == "warning" and not line.message.startswith(_OF_PENDING):
            name = f"{line.namespace}/{line.name}" if line.namespace else line.name
            if not any(line.message.endswith(message) for message in known):
                events.setdefault(line.message, f"{line.kind} {name} at {_seconds(line.t)}: {line.message}")
    texts += events.values()
    if texts:
        console.print("\nWarnings", style="bold")
    for text in texts[:_ROWS]:
        console.print(Text(f"  {text}"), soft_wrap=True)
    _print_rest(console, len(texts), "warnings")


def _print_rest(console: Console, total: int, things: str) -> None:
    if total > _ROWS:
        console.print(f"  … and {total - _ROWS:,} more {things}", style="dim")


def _seconds(seconds: float) -> str:
    return format_duration(round(seconds * SECOND))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
