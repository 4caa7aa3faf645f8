"""A Gantt chart as SVG, of our own making: no plotting library is needed, and the same input gives the same bytes."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from enbloc.listing import plural

_ROW: Final = 18
_LABELS: Final = 220
_WIDTH: Final = 960
_MOST_ROWS: Final = 500
_WAIT: Final = "#d9b25f"
_RUN: Final = {"failed": "#b5483c", "removed": "#8a8f98"}
_RUN_ELSE: Final = "#3d7dbb"


class Bar(NamedTuple):
    """One row: it waits from `came` to `started`, and runs to `ended`, or waits to it if it never started; `None`: not
    within the picture."""

    name: str
    came: float | None
    started: float | None
    ended: float | None
    outcome: str = ""


class Picture:
    """An SVG that a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


def gantt(bars: Sequence[Bar], end: float) -> Picture:
    """The first 500 bars, in the given order."""
    shown = bars[:_MOST_ROWS]
    scale = (_WIDTH - _LABELS - 20) / max(end, 1e-9)
    height = _ROW * len(shown) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
    ]
    for row, bar in enumerate(shown):
        parts.extend(_row(bar, row, scale, end))
    parts.extend(_axis(end, scale, _ROW * len(shown) + 8))
    if len(bars) > len(shown):
        parts.append(f'<text x="4" y="{height - 6}">and {plural(len(bars) - len(shown), "more gang")}</text>')
    return Picture("".join([*parts, "</svg>\n"]))


def _row(bar: Bar, row: int, scale: float, end: float) -> list[str]:
    top = row * _ROW + 4
    found = [f'<text x="{_LABELS - 6}" y="{top + 11}" text-anchor="end">{html.escape(bar.name[-34:])}</text>']
    came = bar.came if bar.came is not None else bar.started
    if came is None:
        return found
    started = next((time for time in (bar.started, bar.ended) if time is not None), end)
    found.append(_rect(came, started, top, scale, _WAIT, f"{bar.name} waits {started - came:g} s"))
    if bar.started is not None:
        ended = bar.ended if bar.ended is not None else end
        text = f"{bar.name} runs from {bar.started:g} s to {ended:g} s: {bar.outcome}"
        found.append(_rect(bar.started, ended, top, scale, _RUN.get(bar.outcome, _RUN_ELSE), text))
    return found


def _rect(begin: float, end: float, top: int, scale: float, colour: str, text: str) -> str:
    if end <= begin:
        return ""
    x, width = _LABELS + begin * scale, max((end - begin) * scale, 0.5)
    return (
        f'<rect x="{x:.2f}" y="{top}" width="{width:.2f}" height="{_ROW - 5}" fill="{colour}">'
        f"<title>{html.escape(text)}</title></rect>"
    )


def _axis(end: float, scale: float, top: int) -> list[str]:
    """Five marks in seconds."""
    marks = [end * part / 4 for part in range(5)] if end > 0 else [0.0]
    return [
        f'<text x="{_LABELS + mark * scale:.2f}" y="{top + 14}" text-anchor="middle" fill="#555">{mark:,.0f} s</text>'
        for mark in marks
    ]
