"""Reads the output of containers, which their shims write: two files for each run, the older one ending in `.old`.

Each line on disk is `TIME F text` or, where a line was split (too long, or not ended by a newline), `TIME P text`.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from enbloc.cluster.embedded.nodes.runtime import LogQuery, LogReader
from enbloc.cluster.embedded.process.supervisor import log_time

OLDER: Final = ".old"
PIECE_BYTES: Final = 1 << 18
_LOOK_EVERY_S: Final = 0.1


class FileLogReader:
    """The output of one run of a container. `runs` tells whether the run goes on."""

    def __init__(self, path: Path, query: LogQuery, runs: Callable[[], bool]) -> None:
        self._path = path
        self._runs = runs
        self._runs_still = runs()  # asked before reading: what was written before the end is read after it
        self._timestamps = query.timestamps
        self._since = log_time(query.since_ns) if query.since_ns is not None else b""
        self._left = query.limit_bytes
        self._cut = b""  # the beginning of an incomplete line
        self._begins_line = True
        self._file = open(path, "rb")  # noqa: SIM115 - until `close`
        lines = self._lines(self._older() + self._file.read())
        if query.tail_lines is not None:
            lines = _last(lines, query.tail_lines)
        shown = self._shown(lines)
        self._ready = deque(shown[at : at + PIECE_BYTES] for at in range(0, len(shown), PIECE_BYTES))

    def read(self) -> bytes:
        if self._left == 0:
            return b""
        if not self._ready and not self.ended:
            self._runs_still = self._runs()
            self._ready.append(self._shown(self._lines(self._more())))
        data = self._ready.popleft() if self._ready else b""
        if self._left is not None:
            data = data[: self._left]
            self._left -= len(data)
        return data

    @property
    def ended(self) -> bool:
        return self._left == 0 or (not self._runs_still and not self._ready)

    def close(self) -> None:
        self._file.close()

    def _older(self) -> bytes:
        """The content of the older file; nothing if that is the file that was being read until its rotation."""
        try:
            with open(self._path.with_name(self._path.name + OLDER), "rb") as older:
                if os.path.sameopenfile(older.fileno(), self._file.fileno()):
                    return b""
                return older.read()
        except FileNotFoundError:
            return b""

    def _more(self) -> bytes:
        data = self._file.read(PIECE_BYTES)
        if data or not self._is_rotated():
            return data
        data = self._file.read(PIECE_BYTES)  # what was written between the two checks
        if not data:
            self._file.close()
            self._file = open(self._path, "rb")  # noqa: SIM115
            data = self._file.read(PIECE_BYTES)
        return data

    def _is_rotated(self) -> bool:
        try:
            return not os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def _lines(self, data: bytes) -> list[bytes]:
        *lines, self._cut = (self._cut + data).split(b"\n")
        return [line for line in lines if line[: len(self._since)] >= self._since]

    def _shown(self, lines: list[bytes]) -> bytes:
        out = []
        for line in lines:
            stamp, _, rest = line.partition(b" ")
            if self._timestamps and self._begins_line:
                out.append(stamp + b" ")
            self._begins_line = rest[:1] == b"F"
            out.append(rest[2:] + b"\n" if self._begins_line else rest[2:])
        return b"".join(out)


def _last(lines: list[bytes], count: int) -> list[bytes]:
    """The last lines; a line in parts counts once."""
    if count <= 0:
        return []
    whole = 0
    for at in range(len(lines) - 1, -1, -1):
        if at == len(lines) - 1 or _is_whole(lines[at]):
            whole += 1
            if whole > count:
                return lines[at + 1 :]
    return lines


def _is_whole(line: bytes) -> bool:
    return line.partition(b" ")[2][:1] == b"F"


async def follow(reader: LogReader) -> AsyncIterator[bytes]:
    """The output until the run has ended. Closes the reader."""
    try:
        while True:
            data = reader.read()
            if data:
                yield data
            elif reader.ended:
                return
            else:
                await asyncio.sleep(_LOOK_EVERY_S)
    finally:
        reader.close()
