"""The same gangs on the same API server for Enbloc and its peers, in turn, several times: `python -m benchmarks.peers`.

Needs the programs of `make e2e` (a control plane of its own, on loopback: API server and etcd, no kubelets) and builds
the peers from pinned modules (`programs.py`). Each repeat runs every scheduler once, in the same order, with a loop
that only binds before and after each: shares are of those two. Prints JSON lines, and writes `docs/performance.md`.
With `--results FILE` several runs make one page: `--from FILE` writes it again. `plan.py` runs all that the page needs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.peers import choice, without_network
from benchmarks.peers.performance import markdown
from benchmarks.peers.programs import programs_of
from benchmarks.peers.rounds import Result, Round, define, note
from benchmarks.peers.schedulers import BUILD, Scheduler, enbloc, given
from e2e import binaries, running
from e2e.control_plane import ControlPlane

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "performance.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--pods", type=int, nargs="+", default=[5000, 10000], help="as many as --nodes")
    parser.add_argument("--gang-size", type=int, nargs="+", default=[1, 20, 500])
    parser.add_argument(
        "--arrive", action="store_true", help="also let pods arrive, at half the rate at which a bare loop takes them"
    )
    parser.add_argument("--no-backlog", action="store_true", help="with --arrive: only that")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--at-most", type=float, default=300.0, metavar="SECONDS",
        help="how long a scheduler may take for a load; one that did not end is not run again with it",
    )  # fmt: skip
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="a scheduler's binary")
    parser.add_argument("--only", action="append", default=[], metavar="NAME[/DIALECT]", help="run it, not all")
    parser.add_argument("--without", action="append", default=[], metavar="NAME[/DIALECT]", help="leave it out")
    parser.add_argument("--no-build", action="store_true", help="leave out peers that are not built")
    parser.add_argument("--engine", action="store_true", help="measure only what needs no API server")
    parser.add_argument("--engine-size", type=int, nargs=2, default=(5_000, 20_000), metavar=("NODES", "PODS"))
    parser.add_argument("--results", type=Path, help="add the measurements to this file, as JSON lines")
    parser.add_argument("--from", dest="earlier", type=Path, nargs="+", help="write the document from these results")
    parser.add_argument("--no-document", action="store_true", help=f"do not write {DOCUMENT.relative_to(ROOT)}")
    found = parser.parse_args()
    if len(found.nodes) != len(found.pods):
        parser.error(f"--nodes has {len(found.nodes)} values, and --pods {len(found.pods)}: they go in pairs")
    return found


def schedulers(wanted: argparse.Namespace, missed: Callable[[Result], None]) -> list[Scheduler]:
    """Builds what is not built. Those that cannot be are `missed`. Raises `BadArgument`."""
    others = given(wanted.peer)
    names = [*(("Enbloc", dialect) for dialect in choice.ENBLOC), *choice.BUILT]
    names += ((one.name, one.dialect) for one in others)
    left = choice.chosen(names, wanted.only, wanted.without)
    found = []
    for name, dialect in left:
        if name == "Enbloc":
            found.append(enbloc(dialect))
        elif name in BUILD:
            try:
                if wanted.no_build and binaries.missing(programs_of(name)):
                    raise binaries.Unavailable("its pinned module was not built before this run")
                found.append(BUILD[name]())
            except binaries.Unavailable as why:
                note(f"{name} is left out: {why}")
                missed({"not_run": name, "why": str(why)})
    return [*found, *(one for one in others if (one.name, one.dialect) in left)]


def loads(wanted: argparse.Namespace) -> Iterator[Result]:
    for nodes, pods in zip(wanted.nodes, wanted.pods, strict=True):
        for size in wanted.gang_size:
            for arrive in [False] * (not wanted.no_backlog) + [True] * wanted.arrive:
                yield {"nodes": nodes, "pods": pods, "gang_size": size, "arrive": arrive}


def compare(wanted: argparse.Namespace, found: list[Scheduler], done: Callable[[Result], None]) -> None:
    programs = binaries.ensure()
    with (
        tempfile.TemporaryDirectory(prefix="enbloc-peers-") as folder,
        ControlPlane(programs, Path(folder), controllers=()) as plane,
    ):
        plane.kwok.kill()  # the pods do not run: only scheduling is measured
        running.define(plane)
        define(plane, found)
        for load in loads(wanted):
            too_slow: set[tuple[str, str]] = set()

            def ended(result: Result, too_slow: set[tuple[str, str]] = too_slow) -> None:
                done(result)
                if result.get("bound", 0) < result["pods"]:
                    too_slow.add((result["scheduler"], result["dialect"]))

            for _ in range(wanted.repeats):
                chosen = [one for one in found if (one.name, one.dialect) not in too_slow]
                asyncio.run(Round(plane, load, wanted.at_most).run(chosen, ended))


def main() -> int:
    wanted = arguments()
    measured: list[dict[str, Any]] = []

    def done(result: Result) -> None:
        measured.append(result)
        print(json.dumps(result), flush=True)
        if wanted.results is not None:  # what was measured is there though the rest is cut off
            with wanted.results.open("a") as file:
                file.write(json.dumps(result) + "\n")

    if wanted.earlier:
        measured = [json.loads(line) for path in wanted.earlier for line in path.read_text().splitlines()]
    elif wanted.engine:
        done(without_network.figures(*wanted.engine_size))
        return 0
    else:
        try:
            compare(wanted, schedulers(wanted, done), done)
        except choice.BadArgument as why:
            note(f"error: {why}")
            return 2
        if wanted.results is not None:
            measured = [json.loads(line) for line in wanted.results.read_text().splitlines()]
    if measured and not wanted.no_document:
        DOCUMENT.write_text(markdown(measured, statistics.median))
    return 0


if __name__ == "__main__":
    sys.exit(main())
