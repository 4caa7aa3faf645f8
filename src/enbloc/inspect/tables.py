"""The rows as tables for a terminal, and the explanation of a gang as lines."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from enbloc.inspect.capacity import Node, Queue, readable
from enbloc.inspect.gang_states import CRASH_LOOP, FAILED, PREEMPTED, RUNNING, WAITING, WAITS
from enbloc.inspect.gangs import Gang
from enbloc.inspect.overview import Explanation, Overview
from enbloc.inspect.topology import Domain
from enbloc.listing import listed, plural
from enbloc.units import SECOND, format_timestamp, parse_timestamp

STATE_STYLES = {WAITING: "yellow", PREEMPTED: "magenta", RUNNING: "green", CRASH_LOOP: "red", FAILED: "red"}
_MOST_ROWS = 1_000
_MOST_AHEAD = 8
_STORAGE = "ephemeral-storage"
_UID: Final = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""In the name of a Job's PodGroup."""


GANG_COLUMNS: Final = ("GANG", "QUEUE", "STATE", "PODS", "MIN", "AGE", "WHY")
GANG_WIDE: Final = ("PRIORITY", "API", "REASON")
QUEUE_COLUMNS: Final = ("QUEUE", "PARENT", "STATE", "WEIGHT", "RUNNING", "WAITING", "USED")
QUEUE_WIDE: Final = ("PRIORITY",)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The first thousand rows, for a terminal. A gang's state has its colour."""
    made = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, no_wrap=column != "WHY", overflow="fold" if column == "WHY" else "ellipsis")
    for row in rows[:_MOST_ROWS]:
        cells: list[str | Text] = [escape(cell) for cell in row]
        if columns[0] == "GANG":
            cells[2] = Text(row[2], style=STATE_STYLES.get(row[2], "dim"))
        made.add_row(*cells)
    return made


def gang_cells(gang: Gang, now_ns: int) -> list[str]:
    why = _why(gang, now_ns) if gang.waits else gang.message or _where(gang)
    age = human(max(now_ns - gang.created, 0))
    return [gang.gang, gang.queue, gang.state, _pods(gang), str(gang.minimum), age, why]


def gang_wide_cells(gang: Gang) -> list[str]:
    return [str(gang.priority), gang.dialect, gang.reason]


def _why(gang: Gang, now_ns: int) -> str:
    if not gang.expected_start:
        return gang.message
    return f"{expected(gang.expected_start, now_ns)}: {gang.message}"


def expected(at: str, now_ns: int) -> str:
    """The time until the expected start, as text."""
    remaining = parse_timestamp(at) - now_ns
    return f"expected to start in {human(remaining)}" if remaining >= SECOND else "expected to start now"


def _pods(gang: Gang) -> str:
    alive = gang.pods.get("running", 0) + gang.pods.get("starting", 0)
    done = gang.pods.get("succeeded", 0)
    total = sum(gang.pods.values())
    return f"{alive}/{total}" + (f" ({done} done)" if done else "")


def _where(gang: Gang) -> str:
    return listed([f"{node} ({count})" for node, count in gang.nodes.items()], 4)


def queue_cells(queue: Queue) -> list[str]:
    used = []
    for name in sorted({**queue.used, **queue.capability}):
        bound = queue.capability.get(name)
        most = f"/{readable(name, bound)}" if bound is not None else ""
        used.append(f"{name} {readable(name, queue.used.get(name, 0))}{most}")
    counts = [str(queue.weight), str(queue.running), str(queue.waiting)]
    return [queue.queue, queue.parent, queue.state, *counts, ", ".join(used)]


def domain_columns(domains: Sequence[Domain]) -> list[str]:
    resources = [name.upper() for name in _resources(domains)]
    return ["TREE", "LEVEL", "DOMAIN", "NODES", "PODS", *resources, *(["RESERVED"] if _has_reserved(domains) else [])]


def domain_cells(domain: Domain, domains: Sequence[Domain]) -> list[str]:
    """Used, capacity and how full it is; nodes that are not ready are counted apart."""
    nodes = str(domain.nodes) if domain.ready == domain.nodes else f"{domain.nodes} ({domain.ready} ready)"
    uses = [
        f"{_use(domain, name)} {domain.resources[name].percent}%"
        for name in _resources(domains)
        if name in domain.resources
    ]
    return [domain.tree, domain.level, domain.domain, nodes, str(domain.pods), *uses, *_reserved(domain, domains)]


def node_columns(overview: Overview) -> list[str]:
    """The last one only where room is set aside for gangs that wait (R7)."""
    resources = [name.upper() for name in _resources(overview.nodes)]
    return ["NODE", "STATUS", "PODS", *resources, *(["RESERVED"] if _has_reserved(overview.nodes) else [])]


def node_cells(node: Node, overview: Overview) -> list[str]:
    uses = [_use(node, name) for name in _resources(overview.nodes)]
    return [node.node, node.status, str(node.pods), *uses, *_reserved(node, overview.nodes)]


def _has_reserved(rows: Sequence[Node | Domain]) -> bool:
    return any(row.reserved for row in rows)


def _reserved(row: Node | Domain, rows: Sequence[Node | Domain]) -> list[str]:
    """The cell of the column RESERVED, if there is one: gangs, for how many pods of each, and how much."""
    if not _has_reserved(rows):
        return []
    cells = []
    for gang, count in row.reserved.items():
        room = row.reserved_room.get(gang, {})
        amounts = [f"{readable(name, nanos)} {name}" for name, nanos in room.items() if nanos]
        cells.append(f"{gang} ({': '.join(filter(None, [str(count), ', '.join(amounts)]))})")
    return [", ".join(cells)]


def _resources(rows: Sequence[Node | Domain]) -> list[str]:
    """Those of the columns. Every kubelet reports ephemeral-storage, and most pods ask for none."""
    found = dict.fromkeys(name for row in rows for name in row.resources)
    if not any(row.resources[_STORAGE].used for row in rows if _STORAGE in row.resources):
        found.pop(_STORAGE, None)
    return list(found)


def _use(node: Node | Domain, name: str) -> str:
    use = node.resources.get(name)
    return f"{readable(name, use.used)}/{readable(name, use.capacity)}" if use is not None else ""


def explanation_lines(explanation: Explanation, now_ns: int) -> list[str]:
    """What, why, what to do, when: for a person in a hurry."""
    lines = [f"{explanation.gang}: {explanation.sentence}", ""]
    numbers = explanation.numbers
    if explanation.reason:
        lines.append(_line("reason", explanation.reason))
    if numbers.get("pods") is not None:
        pods = ", ".join(f"{count} {state}" for state, count in numbers["pods"].items()) or "none yet"
        together = f"; {numbers['minimum']} pods must start together" if numbers["minimum"] > 1 else ""
        lines.append(_line("pods", pods + together))
    for role, figures in (numbers.get("roles") or {}).items():
        requests = ", ".join(f"{amount} {name}" for name, amount in (figures.get("requests") or {}).items())
        each = f", each requests {requests}" if requests else ""
        waiting = _waiting(figures)
        minimum = (
            f", minimum {figures['minimum']}" if figures["minimum"] else ""
        )  # some minima are of all roles together
        lines.append(_line("role", f"{role}: {waiting}{minimum}{each}"))
        for group in figures.get("nodes") or ():
            lines.append(_line("", _group(group)))
    for head, is_gang in (("cause", False), ("in the way", True)):
        found = [obstacle_text(one) for one in explanation.in_the_way if (one["kind"] == "gang") is is_gang]
        lines += [_line("" if number else head, text) for number, text in enumerate(found[:_MOST_AHEAD])]
    if numbers.get("queue"):
        lines.append(_line("queue", f"{numbers['queue']}, priority {numbers['priority']}"))
    if explanation.state in WAITS or explanation.remedies:
        lines += _what_to_do(explanation, now_ns)
    for number, event in enumerate(explanation.story[-_MOST_AHEAD:]):
        about = _UID.sub("", event["about"])
        text = f"{_short_time(event['at'], now_ns)} {about}: {event['what']}: {event['message']}"
        lines.append(_line("" if number else "story", text))
    return lines


def _short_time(at: str, now_ns: int) -> str:
    """The time of day; of another day than now with its date."""
    day, _, time = at.partition("T")
    shown = time.rstrip("Z").partition(".")[0]
    return shown if format_timestamp(now_ns).startswith(day) else f"{day} {shown}"


def _waiting(figures: Mapping[str, Any]) -> str:
    """How many pods of a role wait to be placed."""
    if not figures["exist"]:
        return "no pod yet"
    waits = f"{figures['waiting']} wait{'s' if figures['waiting'] == 1 else ''}"
    gated = f"{figures['gated']} gated" if figures["gated"] else ""
    return ", ".join(filter(None, (waits if figures["waiting"] or not gated else "", gated)))


def obstacle_text(obstacle: Mapping[str, Any]) -> str:
    """What limits a gang or is in its way, as a sentence: `queue research uses 3 of its capability of 4 cpu, …`."""
    return " ".join(filter(None, (obstacle["kind"], obstacle["name"], obstacle["what"])))


def _group(group: Mapping[str, Any]) -> str:
    """Nodes of one shape, and why they take no pod of a role."""
    shape = ", ".join(f"{name} {amount}" for name, amount in group["shape"].items())
    free = ", ".join(f"{name} {amount}" for name, amount in group["mostFree"].items())
    why = ", ".join(f"{count} {reason}" for reason, count in group["rejected"].items())
    like = f"{plural(group['nodes'], 'node')} like {group['like']} ({shape})"
    fit = f"{plural(group['fit'], 'pod')} fit{'s' if group['fit'] == 1 else ''}" if group["fit"] else ""
    return f"{like}: {', '.join(filter(None, (fit, why)))}; most free on one: {free or 'everything'}"


def _what_to_do(explanation: Explanation, now_ns: int) -> list[str]:
    lines = []
    if explanation.ahead:
        lines.append(_line("ahead", listed(explanation.ahead, _MOST_AHEAD)))
    for number, remedy in enumerate(explanation.remedies or ()):
        at = parse_timestamp(remedy["starts_at"]) - now_ns
        when = "starts at once" if at < SECOND else f"starts in {human(at)}"
        lines.append(_line("" if number else "to do", f"{remedy['change']} ({when})"))
    if explanation.remedies == []:
        lines.append(_line("to do", "no change that was tried lets it start"))
    at_text = explanation.expected_start
    if at_text:
        given = f"; {explanation.assumption}" if explanation.assumption else ""
        lines.append(_line("start", f"{at_text} ({expected(at_text, now_ns)}{given})"))
    else:
        lines.append(_line("start", explanation.assumption or "unknown"))
    return lines


def _line(label: str, text: str) -> str:
    return f"  {label:<11} {text}"


def human(nanos: int) -> str:
    seconds = nanos // SECOND
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
