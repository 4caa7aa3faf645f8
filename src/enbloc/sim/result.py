"""The result of a simulation, and its JSON.

The JSON is written one line or object at a time, so that a long run needs no second copy in memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

import msgspec

from enbloc.api.meta import Obj
from enbloc.scenario.documents import Finding
from enbloc.scenario.timeline import Line
from enbloc.sim.statistics import GangRecord
from enbloc.sim.without_effect import WithoutEffect

IDLE = "idle"
UNTIL = "until"
CUT_OFF = "cut-off"


class Result(msgspec.Struct, frozen=True):
    """The timeline, the objects at the end, and the gangs that wait."""

    end: float
    ended: str
    timeline: list[Line]
    objects: list[Obj]
    pending: list[dict[str, Any]]
    summary: dict[str, Any]
    gangs: list[GangRecord] = []
    """What each gang that started did, for the text output."""
    all_gangs: list[dict[str, Any]] = []
    """The same as JSON, and those that never started."""
    without_effect: list[WithoutEffect] = []
    warnings: list[Finding] = []
    """What admission warns of in the files: what is not known, not honoured, or counts as something else (N2)."""
    series: list[dict[str, Any]] = []
    """The use of each resource over time."""
    reason: str = ""
    """Why the run was cut off, with the last lines of the timeline."""

    def write_json(self, out: BinaryIO) -> None:
        encoder = msgspec.json.Encoder()
        out.write(b'{"end": ' + encoder.encode(self.end) + b', "ended": ' + encoder.encode(self.ended))
        lists: tuple[tuple[str, Iterable[Any]], ...] = (
            ("timeline", self.timeline),
            ("objects", self.objects),
            ("pending", self.pending),
            ("gangs", self.all_gangs),
            ("without_effect", self.without_effect),
            ("warnings", self.warnings),
            ("series", self.series),
        )
        for key, items in lists:
            out.write(b',\n"' + key.encode() + b'": [')
            _write_items(items, encoder, out)
            out.write(b"]")
        out.write(b',\n"summary": ' + encoder.encode(self.summary) + b"}\n")


def _write_items(items: Iterable[Any], encoder: msgspec.json.Encoder, out: BinaryIO) -> None:
    separator = b"\n"
    for item in items:
        out.write(separator + encoder.encode(item))
        separator = b",\n"
