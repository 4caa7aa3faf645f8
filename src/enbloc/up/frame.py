"""One screenful of the live view, as lines that are exactly as wide and as many as the terminal allows. Pure."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from enbloc.inspect.gang_states import CRASH_LOOP, FAILED, PREEMPTED, RUNNING, WAITING
from enbloc.inspect.overview import Overview
from enbloc.units import SECOND
from enbloc.up.viewer import VIEWS, Row, Rows, View, Viewer

_BOLD, _DIM, _REVERSE = "1", "2", "7"
_COLOURS: Final = {WAITING: "33", PREEMPTED: "35", RUNNING: "32", CRASH_LOOP: "31", FAILED: "31"}
_LEAST_LAST: Final = 24
"""Columns are left out while the last one, which says why, would be narrower."""
_LEFT_OUT_FIRST: Final = ("MIN", "WEIGHT", "PARENT", "AGE", "QUEUE", "PODS")
_TALL: Final = 30
"""A terminal of 30 lines has room for the commands and for all views at once."""
_FOOT: Final = 3
_HELP: Final = (
    "Tab, 1 to 5     all, gangs, queues, nodes, events",
    "up down j k     the selected row; what is said of it stands below",
    "PgUp PgDn g G   a screen back or on, the first row, the last",
    "/               filter: words that a row must have (Enter keeps, Esc clears)",
    "s               the next order",
    "q, Ctrl-C       end the cluster",
    "any key         leave this help",
)


class Around(NamedTuple):
    """What stands around the rows."""

    address: str
    commands: Sequence[str]
    """What to type in another terminal."""
    advice: Sequence[str]
    """What to do next, if the cluster is empty or all is over."""


class _Content(NamedTuple):
    """What the rows are made of."""

    overview: Overview
    events: Sequence[str]
    now_ns: int
    advice: Sequence[str]


def frame(
    viewer: Viewer,
    overview: Overview,
    events: Sequence[str],
    as_of_s: float,
    around: Around,
    size: tuple[int, int],
) -> list[str]:
    """`size`: columns and lines. Lines have no newline; colours are escape sequences."""
    width, height = max(size[0], 10), max(size[1], 4)
    if viewer.shows_help:
        lines = ["Keys", "", *_HELP, "", *around.commands]
        return _exactly([_cut(line, width) for line in lines], height)
    head = [_title(around.address, as_of_s, width), _tabs(viewer, overview, width)]
    if height >= _TALL:
        head[1:1] = [_styled(_cut(line, width), _BOLD) for line in around.commands]
    foot = [_hints(viewer, width)]
    room = height - len(head) - len(foot)
    content = _Content(overview, events, round(as_of_s * SECOND), around.advice)
    show = _all if viewer.view is View.ALL and height >= _TALL else _one
    body = show(viewer, content, width, room)
    return _exactly([*head, *_exactly(body, room), *foot], height)


def rows_on(height: int) -> int:
    """How many rows a page has."""
    return max(1, height - 4 - _FOOT)


def _one(viewer: Viewer, content: _Content, width: int, room: int) -> list[str]:
    """One view, and what is said of the selected row."""
    overview, events, now_ns, advice = content
    found = viewer.rows(viewer.view, overview, events, now_ns)
    if not found.rows:
        text = [f"Nothing has {viewer.filter!r}. Esc clears the filter."] if viewer.filter else advice
        return ["", *(_cut(line, width) for line in (text or ["Nothing yet."]))]
    said = _FOOT if room > 8 else 0
    viewer.fit(len(found.rows))
    view_has_gangs = viewer.view in (View.ALL, View.GANGS)
    next_lines = (
        ["", *(_cut(line, width) for line in advice)]
        if advice and view_has_gangs and room > 8 + said + len(advice)
        else []
    )
    room -= said + len(next_lines)
    lines = _table(found, width, room, viewer.selected)
    if not said:
        return lines
    below = textwrap.wrap(found.rows[viewer.selected].detail, width)
    if len(below) > said:
        below = [*below[: said - 1], _cut(below[said - 1] + " …", width)]
    upper = _exactly([*lines, *next_lines], room + len(next_lines))
    return [*upper, *_exactly([_styled(line, _DIM) for line in below], said)]


def _all(viewer: Viewer, content: _Content, width: int, room: int) -> list[str]:
    """Gangs, queues, nodes and the last events below each other; the selection is among the gangs."""
    overview, events, now_ns, _ = content
    queues = viewer.rows(View.QUEUES, overview, events, now_ns)
    nodes = viewer.rows(View.NODES, overview, events, now_ns)
    last = list(events[-6:])
    for_queues, for_nodes = min(len(queues.rows), 5) + 1, min(len(nodes.rows), max(4, room // 6)) + 1
    for_gangs = room - for_queues - for_nodes - len(last) - 2
    gangs = _one(viewer, content, width, for_gangs)
    return [
        *_exactly(gangs, for_gangs),
        *_exactly(_table(queues, width, for_queues, None), for_queues),
        "",
        *_exactly(_table(nodes, width, for_nodes, None), for_nodes),
        "",
        *(_styled(_cut(line, width), _DIM) for line in last),
    ]


def _table(found: Rows, width: int, room: int, selected: int | None) -> list[str]:
    """The header and as many rows as fit, the selected one among them."""
    count = max(1, room - 1)
    at = selected or 0
    first = max(0, min(at - count // 2, len(found.rows) - count))
    shown = found.rows[first : first + count]
    columns = _columns(found.columns, shown, width)
    lines = [_styled(_cut(_joined(found.columns, columns), width), _BOLD)]
    for number, row in enumerate(shown, first):
        text = _cut(_joined(row.cells, columns), width)
        if number == selected:
            lines.append(_styled(set_cell_size(text, width), _REVERSE))
        else:
            lines.append(_coloured(text, row))
    more = len(found.rows) - first - len(shown)
    if more and len(lines) > 2:
        lines[-1] = _styled(_cut(f"… and {more + 1} more", width), _DIM)
        if selected is not None and first + len(shown) - 1 == selected:
            lines[-1] = _styled(set_cell_size(_cut(_joined(shown[-1].cells, columns), width), width), _REVERSE)
    return lines


def _columns(names: Sequence[str], rows: Sequence[Row], width: int) -> list[tuple[int, int]]:
    """Which columns are shown, and how wide: the last gets what is left."""
    widths = [
        max([cell_len(name), *(min(cell_len(row.cells[index]), 40) for row in rows)])
        for index, name in enumerate(names)
    ]
    kept = list(range(len(names)))
    for name in _LEFT_OUT_FIRST:
        if sum(widths[index] + 2 for index in kept[:-1]) + _LEAST_LAST <= width:
            break
        kept = [index for index in kept if names[index] != name]
    return [(index, widths[index]) for index in kept]


def _joined(cells: Sequence[str], columns: Sequence[tuple[int, int]]) -> str:
    *first, last = columns
    fixed = "".join(set_cell_size(_cut(cells[index], width), width) + "  " for index, width in first)
    return (fixed + " ".join(cells[last[0]].split())).rstrip()


def _coloured(text: str, row: Row) -> str:
    """Its state in its colour."""
    code = _COLOURS.get(row.state)
    if code is None or f"  {row.state}" not in text:
        return _styled(text, _DIM) if row.state and code is None else text
    before, _, after = text.partition(f"  {row.state}")
    return f"{before}  {_styled(row.state, code)}{after}"


def _title(address: str, as_of_s: float, width: int) -> str:
    as_of = f"as of {time.strftime('%H:%M:%S', time.localtime(as_of_s))}"
    left = _cut(f"enbloc is up: {address}", max(0, width - len(as_of) - 2))
    return _styled(set_cell_size(left, max(0, width - len(as_of))) + as_of if width > len(as_of) else left, _BOLD)


def _tabs(viewer: Viewer, overview: Overview, width: int) -> str:
    counts = {View.GANGS: len(overview.gangs), View.QUEUES: len(overview.queues), View.NODES: len(overview.nodes)}
    parts, used = [], 0
    for number, view in enumerate(VIEWS, 1):
        text = f" {number} {view} {counts.get(view, '')}".rstrip() + " "
        if used + len(text) > width:
            break
        used += len(text)
        parts.append(_styled(text, _REVERSE) if view is viewer.view else text)
    return "".join(parts)


def _hints(viewer: Viewer, width: int) -> str:
    if viewer.is_typing:
        return _cut(f"filter: {viewer.filter}█   Enter keeps it, Esc clears it", width)
    kept = f"filter: {viewer.filter}  " if viewer.filter else ""
    return _styled(_cut(f"{kept}? keys  Tab view  / filter  s order: {viewer.order}  q end", width), _DIM)


def _cut(text: str, width: int) -> str:
    text = "".join(character if character.isprintable() else " " for character in text)
    return text if cell_len(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def _styled(text: str, code: str) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if text else text


def _exactly(lines: Sequence[str], count: int) -> list[str]:
    return [*lines[:count], *[""] * (count - len(lines))]
