"""The live view on a terminal: draws frames on its alternate screen, reads keys, follows its size.

Every frame covers the whole screen, and each line is erased to its end: after a change of size nothing old is left, and
what was on the terminal before is there again at the end.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import termios
import tty
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from enbloc.inspect.overview import Overview
from enbloc.up.frame import Around, frame, rows_on
from enbloc.up.keys import Keys
from enbloc.up.viewer import Viewer

LOG_LINES: Final = 500
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""A PodGroup is named after its Job's UID: half a line that says nothing."""
_OPEN: Final = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The alternate screen, without cursor and without wrapping."""
_CLOSE: Final = "\x1b[?7h\x1b[?25h\x1b[?1049l"


class Screen:
    """`end` is called when the reader asks to end."""

    def __init__(self, address: str, commands: Sequence[str], end: Callable[[], None]) -> None:
        self._address = address
        self._commands = commands
        self._end = end
        self._viewer = Viewer()
        self._keys = Keys()
        self._events: deque[str] = deque(maxlen=LOG_LINES)
        self._shown: tuple[Overview, float, Sequence[str]] | None = None
        self._before: list[Any] | None = None

    def log(self, line: str) -> None:
        self._events.append(_UID.sub("…", line))

    def open(self) -> None:
        sys.stdout.write(_OPEN)
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGWINCH, self._redraw)
        if sys.stdin.isatty():
            descriptor = sys.stdin.fileno()
            self._before = termios.tcgetattr(descriptor)
            tty.setcbreak(descriptor)
            loop.add_reader(descriptor, self._read)

    def draw(self, overview: Overview, as_of_s: float, advice: Sequence[str]) -> None:
        """`as_of_s`: when the overview was read, which is shown. `advice`: what to do next."""
        self._shown = (overview, as_of_s, advice)
        self._redraw()

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_signal_handler(signal.SIGWINCH)
        if self._before is not None:
            loop.remove_reader(sys.stdin.fileno())
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
        sys.stdout.write(_CLOSE)
        sys.stdout.flush()

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24

    def _redraw(self) -> None:
        if self._shown is None:
            return
        overview, as_of_s, advice = self._shown
        around = Around(self._address, self._commands, advice)
        lines = frame(self._viewer, overview, list(self._events), as_of_s, around, self._size())
        # Home; each line erased, then written. After a full line the cursor stays on its last cell: erased then, that
        # cell would be lost.
        sys.stdout.write("\x1b[H" + "\r\n".join(f"\x1b[2K{line}" for line in lines))
        sys.stdout.flush()

    def _read(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), 1024)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            return
        for key in self._keys.read(data):
            self._viewer.press(key, rows_on(self._size()[1]))
        if self._viewer.ends:
            self._end()
        self._redraw()
