"""Reads a trace file: opens it, gzip or not, and finds out its format."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Final

import msgspec

from enbloc.traces.formats import batsim, columns, sacct, swf
from enbloc.traces.formats.columns import Column
from enbloc.traces.trace import Trace

FORMATS: Final = ("swf", "csv", "batsim", "sacct")
_SUFFIXES: Final = {".swf": "swf", ".csv": "csv", ".json": "batsim", ".sacct": "sacct"}
_MOST_BYTES: Final = 2**31
"""A trace is read into memory."""
_EXPANDS: Final = 100
_EXPANDS_ANYWAY: Final = 2**26
"""A compressed file may expand to 100 times its size, or to 64 MiB: traces expand to less, and what expands to more is
refused before it fills the memory."""


class BadTrace(Exception):
    """The file cannot be read as a trace; the message says why."""


def read_trace(path: Path, format: str | None = None, map: dict[str, Column] | None = None) -> Trace:
    """Raises `BadTrace`. Lines that cannot be read are in `Trace.faults`."""
    text = _text(path)
    chosen = format or _format_of(path, text)
    try:
        match chosen:
            case "swf":
                return swf.read(text.splitlines())
            case "csv":
                return columns.read(text.splitlines(), map)
            case "batsim":
                return batsim.read(text)
            case "sacct":
                return sacct.read(text.splitlines())
            case _:
                raise BadTrace(f"{path}: its format is not known by its name: say --format {'|'.join(FORMATS)}")
    except (ValueError, msgspec.DecodeError) as why:
        raise BadTrace(f"{path}: {why}") from None


def _format_of(path: Path, text: str) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    known = _SUFFIXES.get(suffixes[-1].lower() if suffixes else "")
    if known is not None:
        return known
    first = text.split("\n", 1)[0]
    return "sacct" if first.startswith("JobID|") or "|JobID|" in first else ""


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            most = min(_MOST_BYTES, max(_EXPANDS * len(data), _EXPANDS_ANYWAY))
            with gzip.open(path) as file:
                data = file.read(most + 1)
            if most < len(data) <= _MOST_BYTES:
                raise BadTrace(f"{path}: expands to more than {_EXPANDS} times its size: it is no trace")
    except (OSError, EOFError) as why:
        raise BadTrace(f"{path}: {why.strerror if isinstance(why, OSError) and why.strerror else why}") from None
    if len(data) > _MOST_BYTES:
        raise BadTrace(f"{path}: is larger than {_MOST_BYTES >> 30} GiB")
    return data.decode(errors="replace")
