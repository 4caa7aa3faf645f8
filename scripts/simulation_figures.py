"""Measures the figures of docs/simulation.md on the real traces, and writes them there.

    python scripts/simulation_figures.py [--traces DIR] [sdsc] [muri] [itp] [speed]

Each section of the page stands between `<!-- figures: NAME -->` and `<!-- end -->`; without names all that the page has
are measured. The traces are not part of the project: see docs/traces.md.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from enbloc import garbage_collector
from enbloc.config.policies import policy_config
from enbloc.traces.cluster import shape_of
from enbloc.traces.comparison import size_class
from enbloc.traces.formats.columns import parse_map
from enbloc.traces.reading import read_trace
from enbloc.traces.replay import Replayed, Settings, prepare, replay, replay_all
from enbloc.traces.synthetic import synthetic_trace

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "simulation.md"
MURI_MAP = "submit=submit_time:ms,duration=duration:ms,gpus=num_gpu"
ITP_POLICIES = ("fifo", "fifo-skip", "easy", "conservative", "sjf", "srtf")


class Known(NamedTuple):
    policy: str
    estimates: str
    expected: str


SDSC = (
    Known("fifo", "users", "15,675 and 140.2"),
    Known("easy", "users", "3,689 and 18.3"),
    Known("easy", "exact", "3,300 and 14.6"),
    Known("fifo-skip", "users", ""),
    Known("conservative", "users", ""),
    Known("sjf", "users", ""),
    Known("default", "users", ""),
)
MURI = (
    ("muri1", "srtf", 1_370_603),
    ("muri1", "srsf", 980_141),
    ("muri1_pr", "srtf", 2_303_544),
    ("muri1_pr", "srsf", 1_801_860),
)


def sdsc(traces: Path) -> Iterator[str]:
    trace = read_trace(traces / "sdsc5k.swf")
    yield "| policy | run times known | mean wait, s | bounded slowdown (10 s) | expected |"
    yield "|---|---|---|---|---|"
    for one in SDSC:
        settings = Settings(shape_of(trace, None, None), True, one.estimates)  # type: ignore[arg-type]
        found = _replayed(one.policy, settings, prepare(trace, settings)[0]).measures
        wait, slowdown = f"{found['mean_wait_s']:,.1f}", f"{found['mean_bounded_slowdown']:.1f}"
        yield f"| `{one.policy}` | {one.estimates} | {wait} | {slowdown} | {one.expected} |"


def muri(traces: Path) -> Iterator[str]:
    yield "| trace | policy | mean completion, s | paper, s | difference | evictions a job |"
    yield "|---|---|---|---|---|---|"
    for name, policy, expected in MURI:
        trace = read_trace(traces / f"{name}.csv", None, parse_map(MURI_MAP))
        settings = Settings(shape_of(trace, 8, None), True, "exact", 1.015)
        jobs, _ = prepare(trace, settings)
        found = _replayed(policy, settings, jobs).measures
        jct = found["mean_jct_s"]
        moves = found["evictions"] / len(jobs)
        yield f"| `{name}` | `{policy}` | {jct:,.0f} | {expected:,} | {jct / expected - 1:+.1%} | {moves:.1f} |"


def itp(traces: Path) -> Iterator[str]:
    """The same cluster under six policies: the mean wait by size of the gang."""
    trace = read_trace(traces / "itp_cluster03.csv", None, parse_map("submit=submission_time,duration=duration"))
    settings = Settings(shape_of(trace, 16, None), True, "exact")
    jobs, _ = prepare(trace, settings)
    replayed = [_replayed(policy, settings, jobs) for policy in ITP_POLICIES]
    sizes = sorted({size_class(job.units) for job in jobs}, key=lambda name: int(name.split("-")[0]))
    yield "| policy | all | " + " | ".join(f"{size} GPUs" for size in sizes) + " |"
    yield "|---|---|" + "---|" * len(sizes)
    for one in replayed:
        cells = [_mean_wait(one, size) for size in sizes]
        yield f"| `{one.policy}` | {one.measures['mean_wait_s'] / 3600:,.1f} h | " + " | ".join(cells) + " |"


def speed(traces: Path) -> Iterator[str]:
    trace = read_trace(traces / "sdsc5k.swf")
    seconds = {}
    for fast in (True, False):
        settings = Settings(shape_of(trace, None, None), fast, "users")
        jobs, _ = prepare(trace, settings)
        begin = time.process_time()
        replay("fifo", policy_config("fifo"), settings, jobs)
        seconds[fast] = time.process_time() - begin
    synthetic = synthetic_trace(80_000, 1)
    settings = Settings(shape_of(synthetic, None, None), True)
    begin = time.process_time()
    replay("fifo-skip", policy_config("fifo-skip"), settings, prepare(synthetic, settings)[0])
    yield "| what | CPU seconds |"
    yield "|---|---|"
    yield f"| SDSC, `fifo`, `--fast` | {seconds[True]:.1f} |"
    yield f"| SDSC, `fifo`, whole stack | {seconds[False]:.1f} ({seconds[False] / seconds[True]:.0f} times) |"
    yield f"| 80,000 synthetic jobs, `fifo-skip`, `--fast` | {time.process_time() - begin:.1f} |"


SECTIONS: dict[str, Callable[[Path], Iterator[str]]] = {"sdsc": sdsc, "muri": muri, "itp": itp, "speed": speed}


def _replayed(policy: str, settings: Settings, jobs: Sequence[Any]) -> Replayed:
    print(f"{policy}, {len(jobs):,} jobs …", file=sys.stderr, flush=True)
    (found,) = replay_all([(policy, policy_config(policy))], settings, jobs)
    return found


def _mean_wait(replayed: Replayed, size: str) -> str:
    waits = [one.wait_ns or 0 for one in replayed.outcomes if size_class(one.job.units) == size]
    return f"{sum(waits) / len(waits) / 3.6e12:,.1f} h"


def write_section(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with the lines between the marks of a section."""
    marks = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not marks.search(page):
        raise ValueError(f"the page has no section {name}")
    return marks.sub(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=[])
    default = os.environ.get("ENBLOC_TRACES") or ROOT.parent / "shared" / "traces"
    parser.add_argument("--traces", type=Path, default=Path(default))
    given = parser.parse_args()
    garbage_collector.relax(garbage_collector.BATCH)
    page = PAGE.read_text()
    for name in given.sections or [name for name in SECTIONS if f"<!-- figures: {name} -->" in page]:
        lines = list(SECTIONS[name](given.traces))
        PAGE.write_text(write_section(PAGE.read_text(), name, lines))
        print("\n".join(lines))


if __name__ == "__main__":
    main()
