"""The rows as tables for a terminal, and the explanation of a gang as lines."""

from __future__ import annotations

from typing import Final

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from enbloc.inspect.capacity import Node, Queue, amount
from enbloc.inspect.gangs import FAILED, RUNNING, WAITING, Gang
from enbloc.inspect.overview import Explanation, Overview
from enbloc.units import SECOND, parse_timestamp

_STYLES = {WAITING: "yellow", RUNNING: "green", FAILED: "red"}
_MOST_ROWS = 1_000
_MOST_AHEAD = 8


def _table(*columns: str) -> Table:
    made = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, no_wrap=column != "WHY", overflow="fold" if column == "WHY" else "ellipsis")
    return made


GANG_COLUMNS: Final = ("GANG", "QUEUE", "STATE", "PODS", "MIN", "AGE", "WHY")
GANG_WIDE: Final = ("PRIORITY", "API", "REASON")
QUEUE_COLUMNS: Final = ("QUEUE", "PARENT", "STATE", "WEIGHT", "RUNNING", "WAITING", "USED")
QUEUE_WIDE: Final = ("PRIORITY",)


def gang_cells(gang: Gang, now: int) -> list[str]:
    why = _why(gang, now) if gang.state == WAITING else _where(gang)
    age = human(max(now - gang.created, 0))
    return [gang.gang, gang.queue, gang.state, _pods(gang), str(gang.minimum), age, why]


def gang_wide_cells(gang: Gang) -> list[str]:
    return [str(gang.priority), gang.dialect, gang.reason]


def gangs_table(overview: Overview, now: int, rows: int = _MOST_ROWS) -> Table:
    table = _table(*GANG_COLUMNS)
    for gang in overview.gangs[:rows]:
        cells: list[str | Text] = [escape(cell) for cell in gang_cells(gang, now)]
        cells[2] = Text(gang.state, style=_STYLES.get(gang.state, "dim"))
        table.add_row(*cells)
    return table


def _why(gang: Gang, now: int) -> str:
    if not gang.expected_start:
        return gang.message
    return f"{expected(gang.expected_start, now)}: {gang.message}"


def expected(at: str, now: int) -> str:
    """The time until the expected start, as text."""
    remaining = parse_timestamp(at) - now
    return f"expected to start in {human(remaining)}" if remaining >= SECOND else "expected to start now"


def _pods(gang: Gang) -> str:
    alive = gang.pods.get("running", 0) + gang.pods.get("starting", 0)
    done = gang.pods.get("succeeded", 0)
    total = sum(gang.pods.values())
    return f"{alive}/{total}" + (f" ({done} done)" if done else "")


def _where(gang: Gang) -> str:
    nodes = list(gang.nodes.items())
    more = f" and {len(nodes) - 4} more" if len(nodes) > 4 else ""
    return ", ".join(f"{node} ({count})" for node, count in nodes[:4]) + more


def queue_cells(queue: Queue) -> list[str]:
    used = []
    for name in sorted({**queue.used, **queue.capability}):
        bound = queue.capability.get(name)
        most = f"/{amount(name, bound)}" if bound is not None else ""
        used.append(f"{name} {amount(name, queue.used.get(name, 0))}{most}")
    counts = [str(queue.weight), str(queue.running), str(queue.waiting)]
    return [queue.queue, queue.parent, queue.state, *counts, ", ".join(used)]


def queues_table(overview: Overview) -> Table:
    table = _table(*QUEUE_COLUMNS)
    for queue in overview.queues[:_MOST_ROWS]:
        table.add_row(*map(escape, queue_cells(queue)))
    return table


def node_columns(overview: Overview) -> list[str]:
    return ["NODE", "STATUS", "PODS", *(name.upper() for name in _resources(overview))]


def node_cells(node: Node, overview: Overview) -> list[str]:
    return [node.node, node.status, str(node.pods), *(_use(node, name) for name in _resources(overview))]


def _resources(overview: Overview) -> list[str]:
    return list(dict.fromkeys(name for node in overview.nodes for name in node.resources))


def _use(node: Node, name: str) -> str:
    use = node.resources.get(name)
    return f"{amount(name, use.used)}/{amount(name, use.capacity)}" if use is not None else ""


def nodes_table(overview: Overview, rows: int = _MOST_ROWS, *, bars: bool = False) -> Table:
    names = _resources(overview)
    table = _table(*node_columns(overview))
    for node in overview.nodes[:rows]:
        cells = []
        for name in names:
            use = node.resources.get(name)
            cells.append(f"{_bar(use.percent)} {_use(node, name)}" if bars and use is not None else _use(node, name))
        table.add_row(escape(node.node), escape(node.status), str(node.pods), *cells)
    return table


def _bar(percent: int) -> str:
    full = min(max(percent, 0), 100) // 10
    return "█" * full + "░" * (10 - full)


def explanation_lines(explanation: Explanation, now: int) -> list[str]:
    numbers = explanation.numbers
    lines = [f"{explanation.gang}: {explanation.sentence}", ""]
    pods = ", ".join(f"{count} {state}" for state, count in numbers["pods"].items()) or "none yet"
    lines.append(f"  pods      {pods}; {numbers['minimum']} start together")
    for role, least in numbers["minima"].items():
        states = numbers["roles"].get(role, {})
        lines.append(f"  role      {role}: {counted(sum(states.values()), 'pod')}, minimum {least}")
    if numbers["needs"]:
        lines.append("  needs     " + ", ".join(f"{name} {text}" for name, text in numbers["needs"].items()))
    free = ", ".join(f"{name} {text}" for name, text in numbers["freeInCluster"].items())
    lines.append(f"  free      {free or 'nothing'} on {counted(numbers['readyNodes'], 'ready node')}")
    queue = f"  queue     {numbers['queue']}, priority {numbers['priority']}"
    if numbers.get("queueMayUse"):
        queue += ", may use " + ", ".join(f"{name} {text}" for name, text in numbers["queueMayUse"].items())
    lines.append(queue)
    if explanation.state == WAITING:
        ahead = ", ".join(explanation.ahead[:8]) + (
            f" and {len(explanation.ahead) - 8} more" if len(explanation.ahead) > 8 else ""
        )
        lines.append(f"  ahead     {ahead or 'none: it is first in its queue'}")
        at = explanation.expected_start
        start = f"{at} ({expected(at, now)})" if at else "unknown"
        lines.append(f"  start     {start}")
        for number, remedy in enumerate(explanation.would_help):
            lines.append(f"  {'' if number else 'helps':<9} {remedy}")
    return lines


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def human(nanos: int) -> str:
    seconds = nanos // SECOND
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
