"""A plot of the starvation benchmark: SVG, one panel per policy, CPUs in use over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from benchmarks.starvation import HOUR_S, Load, Outcome, figures
from enbloc.units import SECOND, format_duration

WIDTH: Final = 860
LEFT: Final = 64
RIGHT: Final = 216
TOP: Final = 76
PANEL: Final = 132
GAP: Final = 46
BINS: Final = 180

SMALL, LARGE, WAITS, INK, FAINT = "#a9c4e4", "#e07b39", "#a33d0b", "#24292f", "#6e7781"
"""Distinguishable without colour vision: they differ in lightness."""

Scale = Callable[[float], float]

TITLES: Final = {
    "none": "Without: small jobs take whatever is free",
    "reserve": "reserve: nodes are reserved for a starving gang",
    "easy": "backfill in mode easy: no job delays the first in the queue",
}


def draw(load: Load, outcomes: Sequence[Outcome]) -> str:
    height = TOP + len(outcomes) * (PANEL + GAP) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(LEFT, 26, "How long does a large gang wait in a busy cluster?", size=17, weight=600),
        *_legend(load),
    ]
    for number, (one, numbers) in enumerate(zip(outcomes, figures(load, outcomes)["runs"], strict=True)):
        parts += _panel(load, one, numbers, TOP + number * (PANEL + GAP) + 18)
    return "\n".join([*parts, "</svg>", ""])


def _legend(load: Load) -> Iterator[str]:
    large = f"the large gang: {load.large_pods} pods, a node each"
    small = f"small jobs, {load.load * 100:.0f} % load"
    places = ((LEFT, SMALL, 42, small), (LEFT + 190, LARGE, 42, large), (LEFT + 450, WAITS, 46, "it waits"))
    for x, colour, y, label in places:
        yield _box(x, y, x + 12, 96 - y, colour)
        yield _text(x + 18, 52, label, fill=FAINT)


def _panel(load: Load, one: Outcome, numbers: dict[str, float], top: float) -> Iterator[str]:
    wide, end = WIDTH - LEFT - RIGHT, _end(load)
    bottom = top + PANEL

    def x(seconds: float) -> float:
        return LEFT + wide * min(seconds, end) / end

    def y(cpus: float) -> float:
        return bottom - PANEL * cpus / load.cpus

    began = load.large_at_s + one.large_waited_s
    yield _text(LEFT, top - 7, TITLES[one.policy], weight=600)
    yield f'<rect x="{LEFT}" y="{top}" width="{wide}" height="{PANEL}" fill="#f6f8fa"/>'
    means = list(_means(one, end))
    step = end / BINS
    for colour, line in ((LARGE, [small + large for small, large in means]), (SMALL, [small for small, _ in means])):
        points = [f"{LEFT:.1f},{bottom:.1f}"]
        for number, cpus in enumerate(line):
            points += [f"{x(number * step):.1f},{y(cpus):.1f}", f"{x((number + 1) * step):.1f},{y(cpus):.1f}"]
        points.append(f"{x(end):.1f},{bottom:.1f}")
        yield f'<polygon points="{" ".join(points)}" fill="{colour}"/>'
    yield _box(x(load.large_at_s), top - 1, x(began), top + 5, WAITS)
    for seconds, label in ((load.large_at_s, "comes"), (began, "starts")):
        if seconds <= end:
            yield _line(x(seconds), top, x(seconds), bottom, INK, dash="3 3")
            anchor = "start" if label == "starts" or x(began) - x(load.large_at_s) > 60 else "end"
            yield _text(x(seconds) + (4 if anchor == "start" else -4), top + 19, label, size=11, anchor=anchor)
    yield from _axes(load, top, bottom, x, y)
    yield from _figures(numbers, top)


def _axes(load: Load, top: float, bottom: float, x: Scale, y: Scale) -> Iterator[str]:
    yield _line(LEFT, bottom, WIDTH - RIGHT, bottom, FAINT)
    for part in (0, 0.5, 1):
        cpus = load.cpus * part
        yield _text(LEFT - 8, y(cpus) + 4, f"{cpus:.0f}", fill=FAINT, size=11, anchor="end")
    yield _text(LEFT - 8, top - 7, "CPUs", fill=FAINT, size=11, anchor="end")
    for hour in range(int(_end(load) / HOUR_S) + 1):
        yield _text(x(hour * HOUR_S), bottom + 15, f"{hour} h", fill=FAINT, size=11, anchor="middle")


def _figures(numbers: dict[str, float], top: float) -> Iterator[str]:
    left = WIDTH - RIGHT + 22
    yield _text(left, top + 26, _time(numbers["large_waited_s"]), size=22, weight=700, fill=LARGE)
    yield _text(left, top + 42, "the large gang waits", fill=FAINT, size=11)
    rows = (
        ("utilisation", f"{numbers['utilisation'] * 100:.1f} %"),
        ("small jobs wait, mean", _time(numbers["small_waited_mean_s"])),
        ("95 % of them at most", _time(numbers["small_waited_p95_s"])),
    )
    for number, (what, figure) in enumerate(rows):
        yield _text(left, top + 70 + 18 * number, what, fill=FAINT, size=11)
        yield _text(WIDTH - 14, top + 70 + 18 * number, figure, size=11, anchor="end", weight=600)


def _end(load: Load) -> float:
    """The plot extends a little beyond the last small job."""
    return (load.hours + 1) * HOUR_S


def _means(one: Outcome, end: float) -> Iterator[tuple[float, float]]:
    """CPUs of small jobs and of the large gang, averaged over short intervals."""
    sums = [[0.0, 0.0] for _ in range(BINS)]
    step = end / BINS
    for (since, small, large), (until, _, _) in zip(one.used, [*one.used[1:], (end, 0, 0)], strict=True):
        at = since
        while at < min(until, end):
            number = min(int(at / step + 1e-9), BINS - 1)
            to = min(until, end, (number + 1) * step)
            sums[number][0] += small * (to - at)
            sums[number][1] += large * (to - at)
            at = max(to, at + 1e-6)
    return ((small / step, large / step) for small, large in sums)


def _time(seconds: float) -> str:
    """To the minute, or to the second if it is short."""
    unit = 60 if seconds >= 120 else 1
    text = format_duration(round(seconds / unit) * unit * SECOND)
    return text.removesuffix("0s") if text.endswith("m0s") else text


def _text(
    x: float, y: float, text: str, *, size: int = 12, fill: str = INK, anchor: str = "start", weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, dash: str = "") -> str:
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'


def _box(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<rect x="{x1:.1f}" y="{y1:.1f}" width="{max(0.0, x2 - x1):.1f}" height="{y2 - y1:.1f}" fill="{colour}"/>'
