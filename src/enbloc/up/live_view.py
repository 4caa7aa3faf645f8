"""The live view of `enbloc up` on a terminal: gangs, what to do next, and the last events. It has no keys.

Waiting gangs come first, in the order in which they are served. What does not fit on the screen is in `enbloc gangs`.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from enbloc.inspect.overview import Overview
from enbloc.inspect.tables import GANG_COLUMNS, STATE_STYLES, gang_cells
from enbloc.units import SECOND

_EVENTS_SHOWN: Final = 6
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""A PodGroup is named after its Job's UID: half a line that says nothing."""
_SHOWN_FROM: Final = {"MIN": 100, "AGE": 90, "QUEUE": 80, "PODS": 60}
"""How wide a terminal must be for a column, so that WHY has room."""


class LiveView:
    def __init__(self, address: str, commands: Sequence[str], console: Console | None = None) -> None:
        self._title, self._commands = f"enbloc is up: {address}", commands
        self._events: deque[str] = deque(maxlen=_EVENTS_SHOWN)
        self._console = console or Console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False)

    def log(self, line: str) -> None:
        self._events.append(_UID.sub("…", line))

    def open(self) -> None:
        self._live.start()

    def draw(self, overview: Overview, as_of_s: float, advice: Sequence[str]) -> None:
        """Draws the state that was read at `as_of_s`. `advice`: what to do next."""
        self._console.size = ConsoleDimensions(*os.get_terminal_size(sys.stdout.fileno()))  # COLUMNS may be outdated
        self._live.update(self.frame(overview, as_of_s, advice), refresh=True)

    def close(self) -> None:
        self._live.stop()

    def frame(self, overview: Overview, as_of_s: float, advice: Sequence[str]) -> Group:
        width, height = self._console.size
        title = f"{self._title}  as of {time.strftime('%H:%M:%S', time.localtime(as_of_s))}  (Ctrl-C ends it)"
        head = [_line(title, "bold"), *map(_line, self._commands), _line("")]
        foot = [_line(""), *map(_line, advice), *(_line(event, "dim") for event in self._events)]
        if len(head) + len(foot) + 4 > height:  # gangs come before what surrounds them
            head, foot = head[:1], foot[: max(0, height - 8)]
        return Group(*head, _gangs(overview, round(as_of_s * SECOND), width, height - len(head) - len(foot)), *foot)


def _gangs(overview: Overview, now_ns: int, width: int, room: int) -> Table:
    shown = [index for index, name in enumerate(GANG_COLUMNS) if width >= _SHOWN_FROM.get(name, 0)]
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", expand=True)
    for index in shown:
        table.add_column(GANG_COLUMNS[index], no_wrap=True, ratio=1 if GANG_COLUMNS[index] == "WHY" else None)
    gangs = sorted(overview.gangs, key=lambda gang: not gang.waits)
    rows = gangs if len(gangs) < room else gangs[: max(0, room - 2)]
    for gang in rows:
        cells = [_line(cell) for cell in gang_cells(gang, now_ns)]
        cells[GANG_COLUMNS.index("STATE")].stylize(STATE_STYLES.get(gang.state, "dim"))
        table.add_row(*(cells[index] for index in shown))
    if len(rows) < len(gangs):
        table.add_row(_line(f"… and {len(gangs) - len(rows)} more", "dim"))
    return table


def _line(text: str, style: str = "") -> Text:
    printable = "".join(character if character.isprintable() else " " for character in text)
    return Text(printable, style, no_wrap=True, overflow="ellipsis")
