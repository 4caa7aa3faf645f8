"""Bytes of a terminal into names of keys."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

_SEQUENCES: Final = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\x1b[H": "home",
    "\x1bOH": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1bOF": "end",
    "\x1b[4~": "end",
    "\x1b[Z": "back-tab",
    "\t": "tab",
    "\r": "enter",
    "\n": "enter",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x1b": "escape",
}
_KEY: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z~]|\x1bO[A-Z]|.", re.DOTALL)


class Keys:
    """Decodes what is read; a character that was cut in half is kept for the next read."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self, data: bytes) -> Iterator[str]:
        """The name of a key, or the character that it types; sequences that mean nothing here are left out."""
        for found in _KEY.findall(self._decoder.decode(data)):
            if found in _SEQUENCES:
                yield _SEQUENCES[found]
            elif len(found) == 1 and found.isprintable():
                yield found
