"""What a simulation gives back, and how it is printed for programs.

The JSON is written piece by piece, one line or object at a time, so that a long run costs no second copy in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

import msgspec

from enbloc.api.meta import Obj
from enbloc.scenario.timeline import Line
from enbloc.sim.statistics import GangRecord

IDLE = "idle"
UNTIL = "until"
CUT_OFF = "cut-off"


class Result(msgspec.Struct, frozen=True):
    """A run: what happened, what is there now, what waits and why."""

    end: float
    ended: str
    timeline: list[Line]
    objects: list[Obj]
    pending: list[dict[str, Any]]
    summary: dict[str, Any]
    gangs: list[GangRecord] = []
    """What each gang did, for people."""
    story: str = ""
    """Why the run was cut off."""

    def write_json(self, out: BinaryIO) -> None:
        encoder = msgspec.json.Encoder()
        out.write(b'{"end": ' + encoder.encode(self.end) + b', "ended": ' + encoder.encode(self.ended))
        for key, items in (("timeline", self.timeline), ("objects", self.objects), ("pending", self.pending)):
            out.write(b',\n"' + key.encode() + b'": [')
            _write_items(items, encoder, out)
            out.write(b"]")
        out.write(b',\n"summary": ' + encoder.encode(self.summary) + b"}\n")


def _write_items(items: Iterable[Any], encoder: msgspec.json.Encoder, out: BinaryIO) -> None:
    separator = b"\n"
    for item in items:
        out.write(separator + encoder.encode(item))
        separator = b",\n"
