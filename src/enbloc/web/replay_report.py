"""A replay as one HTML file, in the style of the dashboard and without scripts: `enbloc replay --report`."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import Any, Final

from enbloc.listing import plural
from enbloc.units import SECOND, format_duration
from enbloc.web.assets import read

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_COLOURS: Final = ("#3d7dbb", "#e0a93b", "#17692f", "#b3261e", "#7b4fa8", "#2f9e9e", "#8a5a00", "#5c6470", "#c2559d")
_WIDTH, _HEIGHT, _LEFT = 640, 220, 46
_POINTS: Final = 300
_COLUMNS: Final = (
    ("mean wait", "mean_wait_s"),
    ("median", "p50_wait_s"),
    ("p90", "p90_wait_s"),
    ("p99", "p99_wait_s"),
    ("mean completion", "mean_jct_s"),
    ("makespan", "makespan_s"),
)
_GROUPS: Final = (("by_size", "Size"), ("by_user", "User"), ("by_queue", "Queue"))


def replay_page(answer: Mapping[str, Any], title: str) -> str:
    """`answer`: what `enbloc replay -o json` prints."""
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{_text(title)}</title>'
        f"<style>\n{read('style.css')}</style>"
    )
    body = "\n".join(_sections(answer))
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body><main>\n{body}\n</main></body>\n</html>\n'


def _sections(answer: Mapping[str, Any]) -> Iterator[str]:
    cluster, trace = answer["cluster"], answer["trace"]
    size = f"{cluster['per_node']} {cluster['resource']}"
    yield f"<h1>{plural(trace['jobs'], 'job')} on {plural(cluster['nodes'], 'node')} of {_text(size)}</h1>"
    left_out = [f"{plural(count, 'job')} left out: {reason}" for reason, count in trace["skipped"].items()]
    if trace["bad_lines"]:
        left_out.append(f"{plural(trace['bad_lines'], 'line')} cannot be read")
    yield "".join(f'<p class="dim">{_text(line)}</p>' for line in left_out)
    yield "<h2>Policies</h2>" + _policies(answer["policies"])
    yield "<h2>Waits, as shares of all jobs</h2>" + _curves(answer["policies"])
    for compared in answer["comparison"]:
        yield from _compared(compared)


def _policies(policies: Sequence[Mapping[str, Any]]) -> str:
    header = ["policy", *(title for title, _ in _COLUMNS), "bounded slowdown", "use", "evictions"]
    rows = [
        [
            policy["policy"],
            *(_time(policy[key]) for _, key in _COLUMNS),
            f"{policy['mean_bounded_slowdown']:,.1f}",
            f"{policy['utilisation']:.1%}",
            f"{policy['evictions']:,}",
        ]
        for policy in policies
    ]
    return _table(header, rows)


def _curves(policies: Sequence[Mapping[str, Any]]) -> str:
    """How many jobs had started after which wait; waits on a logarithmic axis from 1 s."""
    waits = {one["policy"]: _waits(one["starts"]) for one in policies}
    longest = max((all_waits[-1] for all_waits in waits.values() if all_waits), default=1.0)
    decades = max(1, len(str(int(longest))))
    parts = []
    for decade in range(decades + 1):
        x = _LEFT + (_WIDTH - _LEFT) * decade / decades
        label = format_duration(10**decade * SECOND)
        parts.append(f'<line x1="{x:.1f}" y1="0" x2="{x:.1f}" y2="{_HEIGHT}"/>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT + 14}" text-anchor="middle">{label}</text>')
    for share in (0, 0.5, 1):
        y = _HEIGHT * (1 - share)
        parts.append(f'<text x="{_LEFT - 4}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    legend = []
    for number, (name, found) in enumerate(waits.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        legend.append(f'<span><i style="background:{colour}"></i>{_text(name)}</span>')
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _points(found, decades))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.8" points="{points}"/>')
    view = f"0 -6 {_WIDTH + 20} {_HEIGHT + 26}"
    return (
        f'<div class="legend">{"".join(legend)}</div>'
        f'<svg class="chart" style="height:16rem" viewBox="{view}" role="img" '
        f'aria-label="Share of jobs that had started, by wait">{"".join(parts)}</svg>'
    )


def _points(waits: Sequence[float], decades: int) -> Iterator[tuple[float, float]]:
    step = max(1, len(waits) // _POINTS)
    for number in [*range(0, len(waits), step), len(waits) - 1] if waits else []:
        x = _LEFT + (_WIDTH - _LEFT) * min(1.0, log10(max(waits[number], 1.0)) / decades)
        yield x, _HEIGHT * (1 - (number + 1) / len(waits))


def _waits(starts: Sequence[Mapping[str, Any]]) -> list[float]:
    return sorted(max(0.0, one["start"] - one["submit"]) for one in starts if one["start"] is not None)


def _compared(compared: Mapping[str, Any]) -> Iterator[str]:
    before, after = compared["before"], compared["after"]
    yield f"<h2>{_text(after)} against {_text(before)}</h2>"
    yield f"<p>{_won(compared['sooner'], compared['later'])}.</p>"
    for key, title in _GROUPS:
        groups = [group for group in compared[key] if group["name"]]
        if len(groups) < (1 if key == "by_size" else 2):
            continue
        rows = []
        for group in groups:
            old, new = group["mean_wait_before_s"], group["mean_wait_after_s"]
            waits = (_time(old), _time(new), _bar(old, new))
            rows.append([group["name"], f"{group['jobs']:,}", f"{group['sooner']:,}", f"{group['later']:,}", *waits])
        yield _table([title, "jobs", "win", "lose", before, after, "change of the mean wait"], rows, raw={6})
    rows = [
        [
            one["job"],
            f"{one['units']:,}",
            one["user"],
            one["queue"],
            _time(one["wait_before_s"]),
            _time(one["wait_after_s"]),
        ]
        for one in compared["most_changed"]
    ]
    if rows:
        yield "<h3>Jobs that changed most</h3>" + _table(["job", "size", "user", "queue", before, after], rows)


def _won(sooner: int, later: int) -> str:
    return f"{sooner:,} {'wins' if sooner == 1 else 'win'}, {later:,} {'loses' if later == 1 else 'lose'}"


def _bar(old: float, new: float) -> str:
    """The change of the mean wait: with a minus the group wins. The bar is half full where nothing changed."""
    if not old:
        return "" if not new else "from nothing"
    share = new / old
    filled = f'<i style="width:{min(share, 2) * 50:.0f}%"></i><u style="left:50%"></u>'
    return f'<div class="bar" style="min-width:8rem">{filled}</div>{share - 1:+.0%}'


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], raw: frozenset[int] | set[int] = frozenset()) -> str:
    heads = "".join(f"<th{'' if not n else _NUMBER}>{_text(title)}</th>" for n, title in enumerate(header))
    lines = []
    for row in rows:
        cells = (
            f"<td{'' if not n else _NUMBER}>{cell if n in raw else _text(cell)}</td>" for n, cell in enumerate(row)
        )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


_NUMBER: Final = ' class="num"'


def _time(seconds: float) -> str:
    return format_duration(round(seconds) * SECOND)


def _text(text: object) -> str:
    return html.escape(str(text))
