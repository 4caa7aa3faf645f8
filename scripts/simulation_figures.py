"""Measures the figures of docs/simulation.md on the real traces, and writes them there.

    python scripts/simulation_figures.py [--traces DIR] [SECTION[:ROW]]…

Each section of the page (sdsc, muri, itp, speed) stands between `<!-- figures: NAME -->` and `<!-- end -->`; without
names all that the page has are measured. `muri:srsf` measures the rows of that section that name `srsf`, and leaves the
others as they are: a row is written as soon as it is measured. The traces are not part of the project: see
docs/traces.md.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from enbloc import garbage_collector
from enbloc.config.policies import policy_config
from enbloc.traces.cluster import shape_of
from enbloc.traces.formats.columns import parse_map
from enbloc.traces.reading import read_trace
from enbloc.traces.replay import Replayed, Settings, prepare, replay, replay_all
from enbloc.traces.synthetic import synthetic_trace

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "simulation.md"
MURI_MAP = "submit=submit_time:ms,duration=duration:ms,gpus=num_gpu"
ITP_NODES = 20
ITP_SIZES = ((1, 8), (16, 16), (32, 64))
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
    Known("fair", "users", ""),
    Known("default", "users", ""),
)
MURI = (
    ("muri1", "srtf", 1_370_603),
    ("muri1", "srsf", 980_141),
    ("muri1_pr", "srtf", 2_303_544),
    ("muri1_pr", "srsf", 1_801_860),
)


class Row(NamedTuple):
    key: str
    """How the row begins."""
    measure: Callable[[Path], str]
    """The rest of it."""


class Section(NamedTuple):
    head: str
    rows: Sequence[Row]


def _sdsc(traces: Path, one: Known) -> str:
    trace = read_trace(traces / "sdsc5k.swf")
    settings = Settings(shape_of(trace, None, None), True, one.estimates)  # type: ignore[arg-type]
    found = _replayed(one.policy, settings, prepare(trace, settings)[0]).measures
    wait, slowdown = f"{found['mean_wait_s']:,.1f}", f"{found['mean_bounded_slowdown']:.1f}"
    return f"{wait} | {slowdown} | {one.expected}"


def _muri(traces: Path, name: str, policy: str, expected: int) -> str:
    trace = read_trace(traces / f"{name}.csv", None, parse_map(MURI_MAP))
    settings = Settings(shape_of(trace, 8, None), True, "exact", 1.015)
    jobs, _ = prepare(trace, settings)
    found = _replayed(policy, settings, jobs).measures
    jct, moves = found["mean_jct_s"], found["evictions"] / len(jobs)
    return f"{jct:,.0f} | {expected:,} | {jct / expected - 1:+.1%} | {moves:.1f}"


def _itp(traces: Path, policy: str) -> str:
    """The same cluster under a policy: the mean wait by size of the gang, and the use of the GPUs."""
    trace = read_trace(traces / "itp_cluster03.csv", None, parse_map("submit=submission_time,duration=duration"))
    settings = Settings(shape_of(trace, ITP_NODES, None), True, "exact")
    jobs, _ = prepare(trace, settings)
    found = _replayed(policy, settings, jobs)
    cells = [_mean_wait(found, low, high) for low, high in ITP_SIZES]
    most = max(one.wait_ns or 0 for one in found.outcomes) / 3.6e12
    return f"{found.measures['mean_wait_s'] / 3600:,.2f} | {' | '.join(cells)} | {most:,.0f}"


def _speed(traces: Path, most: int | None = None) -> str:
    trace = read_trace(traces / "sdsc5k.swf")
    seconds = {}
    for fast in (True, False):
        settings = Settings(shape_of(trace, None, None), fast, "users")
        jobs = prepare(trace, settings)[0][:most]
        begin = time.process_time()
        replay("fifo", policy_config("fifo"), settings, jobs)
        seconds[fast] = time.process_time() - begin
    return f"{seconds[True]:.1f} | {seconds[False]:.1f} | {seconds[False] / seconds[True]:.0f}"


def _many(jobs: int) -> str:
    """In a process of its own, whose peak is its own."""
    words = [sys.executable, __file__, "--many", str(jobs)]
    found = subprocess.run(words, check=True, capture_output=True, text=True)
    cpu_s, peak_mib = map(float, found.stdout.split())
    return f"{cpu_s:.1f} | | peak of memory {peak_mib:.0f} MiB"


def measure_many(jobs: int) -> None:
    garbage_collector.relax(garbage_collector.BATCH)
    synthetic = synthetic_trace(jobs, 1)
    settings = Settings(shape_of(synthetic, None, None), True)
    begin = time.process_time()
    replay("fifo-skip", policy_config("fifo-skip"), settings, prepare(synthetic, settings)[0])
    print(time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


SECTIONS: dict[str, Section] = {
    "sdsc": Section(
        "| policy | run times known | mean wait, s | bounded slowdown (10 s) | expected |\n|---|---|---|---|---|",
        [Row(f"| `{one.policy}` | {one.estimates} | ", partial(_sdsc, one=one)) for one in SDSC],
    ),
    "muri": Section(
        "| trace | policy | mean completion, s | paper, s | difference | evictions a job |\n|---|---|---|---|---|---|",
        [
            Row(f"| `{name}` | `{policy}` | ", partial(_muri, name=name, policy=policy, expected=expected))
            for name, policy, expected in MURI
        ],
    ),
    "itp": Section(
        "| policy | all | 1 to 8 GPUs | 16 | 32 and 64 | longest |\n|---|---|---|---|---|---|",
        [Row(f"| `{policy}` | ", partial(_itp, policy=policy)) for policy in ITP_POLICIES],
    ),
    "speed": Section(
        "| what | `--fast` | whole stack | times |\n|---|---|---|---|",
        [
            Row("| SDSC, the first 200 jobs, `fifo` | ", partial(_speed, most=200)),
            Row("| SDSC, 4,606 jobs, `fifo` | ", _speed),
            Row("| 2,000 synthetic jobs, `fifo-skip` | ", lambda traces: _many(2_000)),
            Row("| 10,000 synthetic jobs, `fifo-skip` | ", lambda traces: _many(10_000)),
            Row("| 80,000 synthetic jobs, `fifo-skip` | ", lambda traces: _many(80_000)),
        ],
    ),
}


def _replayed(policy: str, settings: Settings, jobs: Sequence[Any]) -> Replayed:
    print(f"{policy}, {len(jobs):,} jobs …", file=sys.stderr, flush=True)
    (found,) = replay_all([(policy, policy_config(policy))], settings, jobs)
    return found


def _mean_wait(replayed: Replayed, low: int, high: int) -> str:
    waits = [one.wait_ns or 0 for one in replayed.outcomes if low <= one.job.units <= high]
    return f"{sum(waits) / len(waits) / 3.6e12:,.2f}"


def write_row(page: str, name: str, row: Row, rest: str) -> str:
    """The page with a row of a section as it was measured; rows are in the order of the section."""
    marks = re.compile(rf"(<!-- figures: {name} -->\n)(.*?)(<!-- end -->)", re.DOTALL)
    found = marks.search(page)
    if not found:
        raise ValueError(f"the page has no section {name}")
    section = SECTIONS[name]
    lines = [*found[2].splitlines(), f"{row.key}{rest} |"]
    kept = {one.key: line for one in section.rows for line in lines if line.startswith(one.key)}
    body = "\n".join([section.head, *(kept[one.key] for one in section.rows if one.key in kept)])
    return page[: found.start()] + found[1] + body + "\n" + found[3] + page[found.end() :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION[:ROW]")
    default = os.environ.get("ENBLOC_TRACES") or ROOT.parent / "shared" / "traces"
    parser.add_argument("--traces", type=Path, default=Path(default))
    parser.add_argument("--page", type=Path, default=PAGE, help="another page than docs/simulation.md")
    parser.add_argument("--many", type=int, help="replay so many synthetic jobs: CPU seconds, and the peak in MiB")
    given = parser.parse_args()
    if given.many:
        measure_many(given.many)
        return
    garbage_collector.relax(garbage_collector.BATCH)
    for text in given.sections or [name for name in SECTIONS if f"<!-- figures: {name} -->" in given.page.read_text()]:
        name, _, wanted = text.partition(":")
        if name not in SECTIONS:
            parser.error(f"no section {name}; known: {', '.join(SECTIONS)}")
        for row in SECTIONS[name].rows:
            if wanted in row.key:
                rest = row.measure(given.traces)
                given.page.write_text(write_row(given.page.read_text(), name, row, rest))
                print(f"{row.key}{rest} |", flush=True)


if __name__ == "__main__":
    main()
