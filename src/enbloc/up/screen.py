"""The live view of a cluster on a terminal: gangs with the reason why they wait, queues, nodes, the last log lines."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from enbloc.inspect.overview import Overview
from enbloc.inspect.tables import gangs_table, nodes_table, queues_table
from enbloc.units import SECOND

LOG_LINES = 6
_OTHER_LINES = 14


class Screen:
    """Draws an overview, and the last log lines below it."""

    def __init__(self, heading: str) -> None:
        self._heading = heading
        self._log_lines: deque[str] = deque(maxlen=LOG_LINES)
        self._console = Console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def log(self, line: str) -> None:
        self._log_lines.append(line)

    def open(self) -> None:
        self._live.start()

    def draw(self, overview: Overview, as_of_s: float) -> None:
        """`as_of_s`: when the overview was read, which is shown."""
        rows = max(self._console.height - _OTHER_LINES - len(overview.queues), 6)
        gangs = max(rows * 2 // 3, 3)
        parts: list[RenderableType] = [
            Text(self._heading, style="bold"),
            Text(f"as of {time.strftime('%H:%M:%S', time.localtime(as_of_s))}", style="dim"),
            gangs_table(overview, round(as_of_s * SECOND), gangs),
            *_more(len(overview.gangs) - gangs, "gangs"),
            Text(),
            queues_table(overview),
            Text(),
            nodes_table(overview, rows - gangs, bars=True),
            *_more(len(overview.nodes) - (rows - gangs), "nodes"),
            Text(),
            *(Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self._log_lines),
        ]
        self._live.update(Group(*parts), refresh=True)

    def close(self) -> None:
        self._live.stop()


def _more(count: int, what: str) -> list[Text]:
    return [Text(f"… and {count} more {what}", style="dim")] if count > 0 else []
