"""All of `docs/performance.md` in one run of bounded time: `python -m benchmarks.peers.plan --minutes 35`.

Parts run one after the other, the most important first, each as a process of its own that is ended after its time. A
part for which no time is left is left out, and the page says so. The page is written after every part, from all that
was measured so far; a file of results that exists is continued. `--tiny` runs every part with small loads, to see that
all of it works. A peer that did not bind all pods of a load in its time is not run with it again.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers.performance import markdown

ROOT = Path(__file__).parents[2]
PEERS = ("-m", "benchmarks.peers")
DOCUMENT = ROOT / "docs" / "performance.md"
BACKLOG = "backlog"
GRACE_S = 20.0
"""For a part to clean up, after its time."""


class Part(NamedTuple):
    name: str
    about_s: float
    """On two idle cores."""
    words: tuple[str, ...]
    """The arguments of Python."""
    result: str = ""
    """The name under which what it prints is added to the results; empty: it adds them itself."""
    load: tuple[int, int, int] | None = None
    """Nodes, pods and the size of gangs, where schedulers are compared."""


class Sizes(NamedTuple):
    nodes: int
    pods: int
    many_nodes: int
    many_pods: int
    wide: int
    at_most_s: int
    growth: float
    memory: tuple[int, int]
    engine: tuple[int, int]


FULL = Sizes(500, 5000, 2000, 10000, 500, 120, 1.0, (10_000, 200_000), (5_000, 20_000))
TINY = Sizes(10, 40, 20, 80, 40, 45, 0.05, (50, 400), (100, 400))


def parts(sizes: Sizes, minutes_of_peers: float) -> Iterator[Part]:
    """In the order in which they run."""
    ours = ("--only", "enbloc/native", "--only", "enbloc/volcano")
    fast = ("--only", "kube-scheduler", "--only", "scheduler-plugins")
    backlog = (*ours, "--only", "enbloc/job", *fast, "--only", "koordinator", "--only", "yunikorn", "--only", "kai")
    usual, many = (sizes.nodes, sizes.pods), (sizes.many_nodes, sizes.many_pods)
    live = _live(sizes)
    first = live(BACKLOG, 60 * minutes_of_peers, usual, 20, *backlog)
    arrivals = live("arrivals", 110, usual, 20, *ours, "--arrive", "--no-backlog")
    again = 60 * minutes_of_peers
    engine = (*PEERS, "--engine", "--engine-size", *map(str, sizes.engine), "--no-document")
    yield first
    yield arrivals
    yield Part("engine and simulation", 75, engine)
    yield first._replace(name="backlog, second repeat", about_s=again)
    yield arrivals._replace(name="arrivals, second repeat")
    yield live("gangs of 1", 200, usual, 1, *ours, *fast)
    yield live(f"gangs of {sizes.wide}", 160, usual, sizes.wide, *ours, *fast)
    yield live(f"{sizes.many_nodes:,} nodes", 260, many, 20, *ours, *fast)
    growth = ("-m", "benchmarks", "growth", "-o", "json", "--scale", str(sizes.growth))
    yield Part("growth", 120, growth, "growth")
    nodes, pods = map(str, sizes.memory)
    yield Part("memory", 120, ("-m", "benchmarks.memory", "--nodes", nodes, "--pods", pods), "memory")
    yield live("backlog, third repeat, without slow peers", 190, usual, 20, *ours, *fast)
    yield arrivals._replace(name="arrivals, third repeat")


def _live(sizes: Sizes) -> Any:
    def part(name: str, about_s: float, load: tuple[int, int], gang_size: int, *words: str) -> Part:
        nodes, pods = map(str, load)
        fixed = (*PEERS, "--nodes", nodes, "--pods", pods, "--gang-size", str(gang_size), "--repeats", "1")
        bound = ("--at-most", str(sizes.at_most_s), "--no-build", "--no-document")
        return Part(name, about_s, (*fixed, *bound, *words), load=(*load, gang_size))

    return part


class Run:
    """One run of all parts, up to a deadline."""

    def __init__(self, results: Path, until_s: float, is_tiny: bool) -> None:
        self._results = results
        self._until_s = until_s
        self._is_tiny = is_tiny

    def measured(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._results.read_text().splitlines()] if self._results.exists() else []

    def run(self, some: Sequence[Part]) -> None:
        for part in some:
            left_s = self._until_s - time.monotonic()
            if left_s < min(part.about_s, 3600):
                self._add(
                    {"left_out": part.name, "why": f"it takes about {part.about_s:.0f} s, {left_s:.0f} s were left"}
                )
                continue
            note(f"{time.strftime('%H:%M:%S')} {part.name}: about {part.about_s:.0f} s, {left_s:.0f} s are left")
            begun_s = time.monotonic()
            why = self._one(part, min(3 * part.about_s + 60, left_s))
            took_s = time.monotonic() - begun_s
            note(f"{time.strftime('%H:%M:%S')} {part.name}: {took_s:.0f} s{f', {why}' if why else ''}")
            if why:
                self._add({"left_out": part.name, "why": why})
            self.write()

    def write(self) -> None:
        """The page, from what was measured so far."""
        found = self.measured()
        if any("scheduler" in one and "failed" not in one for one in found):
            document = DOCUMENT if not self._is_tiny else self._results.with_suffix(".md")
            document.write_text(markdown(found, statistics.median))

    def _one(self, part: Part, within_s: float) -> str:
        """Runs it; returns why it did not come to its end, or nothing."""
        words = [sys.executable, *part.words]
        words += [word for name in self._too_slow(part) for word in ("--without", name)]
        if not part.result:
            words += ["--results", str(self._results)]
        path = os.pathsep.join(str(ROOT / one) for one in ("src", "."))
        process = subprocess.Popen(
            words, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        try:
            out, _ = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"it was ended after {within_s:.0f} s: what it had measured by then counts"
        if process.returncode:
            return f"it ended with code {process.returncode}: what it had measured by then counts"
        if part.result:
            self._add({part.result: json.loads(out)})
        return ""

    def _too_slow(self, part: Part) -> list[str]:
        """The peers of the part that failed with its load, or did not bind all of it in their time."""
        named = {word for before, word in pairwise(part.words) if before == "--only"}
        return sorted(
            {
                f"{one['scheduler']}/{one['dialect']}"
                for one in self.measured()
                if one.get("scheduler", "").lower() in named
                and (one["nodes"], one["pods"], one["gang_size"]) == part.load
                and one.get("bound", 0) < one["pods"]
            }
        )

    def _add(self, result: dict[str, Any]) -> None:
        with self._results.open("a") as file:
            file.write(json.dumps(result) + "\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a part with all that it started: some of it is in sessions of its own."""
    started = _descendants(process.pid)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _descendants(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            below = [int(word) for word in child.read_text().split()]
        except OSError:
            continue
        for one in below:
            found += [one, *_descendants(one)]
    return found


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.plan", description=__doc__)
    parser.add_argument("--minutes", type=float, default=35.0, help="after which no part goes on")
    parser.add_argument("--results", type=Path, default=Path("peers.jsonl"), help="a file of JSON lines, continued")
    parser.add_argument("--backlog-minutes", type=float, default=8.0, help="of one repeat with all peers")
    parser.add_argument("--tiny", action="store_true", help="small loads; the page goes beside the results")
    parser.add_argument("--page", action="store_true", help="only write the page again")
    parser.add_argument("--part", action="append", default=[], help="only parts whose names begin so")
    wanted = parser.parse_args()
    run = Run(wanted.results, time.monotonic() + 60 * wanted.minutes, wanted.tiny)
    if not wanted.page:
        compileall.compile_dir(str(ROOT / "src"), quiet=1)  # Python may have been told not to write compiled files
        sizes = TINY if wanted.tiny else FULL
        found = parts(sizes, wanted.backlog_minutes)
        run.run([one for one in found if not wanted.part or one.name.startswith(tuple(wanted.part))])
    run.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
