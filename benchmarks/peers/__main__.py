"""The same gangs on the same API server for Enbloc and its peers, in turn, several times: `python benchmarks/peers`.

Needs the programs of `make e2e` (a control plane of its own, on loopback: API server and etcd, no kubelets) and builds
kube-scheduler from the same pinned module. Each repeat runs every scheduler once, in the same order, with a loop that
only binds before and after each: shares are of those two. Prints JSON lines, and writes `docs/performance.md`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(Path(__file__).parent)]

import without_network  # noqa: E402
from performance import markdown  # noqa: E402
from schedulers import GIVEN, Scheduler, enbloc, kube_scheduler, other  # noqa: E402

from e2e import binaries, running  # noqa: E402
from e2e.control_plane import ControlPlane  # noqa: E402
from enbloc.bench.live import measure, rank, shares  # noqa: E402
from enbloc.bench.live_bench import LiveBench  # noqa: E402
from enbloc.bench.live_load import Load  # noqa: E402
from enbloc.cluster.kube import connect  # noqa: E402

KUBE_SCHEDULER = binaries.Program(
    "kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes", "2 to 5 minutes"
)
DOCUMENT = ROOT / "docs" / "performance.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks/peers", description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--pods", type=int, nargs="+", default=[5000, 10000])
    parser.add_argument("--gang-size", type=int, nargs="+", default=[1, 20, 500])
    parser.add_argument(
        "--arrive", action="store_true", help="also let pods arrive, at half the rate at which a bare loop takes them"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=PATH", help="a scheduler's binary")
    parser.add_argument("--without", action="append", default=[], metavar="NAME[/DIALECT]", help="leave it out")
    parser.add_argument("--engine", action="store_true", help="measure only what needs no API server")
    parser.add_argument("--results", type=Path, help="add the measurements to this file, as JSON lines")
    parser.add_argument("--from", dest="earlier", type=Path, nargs="+", help="write the document from these results")
    parser.add_argument("--no-document", action="store_true", help=f"do not write {DOCUMENT.relative_to(ROOT)}")
    return parser.parse_args()


def schedulers(given: Sequence[str], without: Sequence[str]) -> list[Scheduler]:
    programs = binaries.ensure((KUBE_SCHEDULER,))
    found = [enbloc(dialect) for dialect in ("native", "volcano", "koordinator", "job")]
    found.append(kube_scheduler(programs["kube-scheduler"], binaries.version(KUBE_SCHEDULER)))
    for one in given:
        name, _, path = one.partition("=")
        if not os.access(path, os.X_OK):
            raise SystemExit(f"--peer: {one}: NAME=PATH, and the path is that of a program")
        found.append(GIVEN[name](Path(path)) if name in GIVEN else other(name, Path(path)))
    left_out = {name.lower() for name in without}
    return [one for one in found if not left_out & {one.name.lower(), f"{one.name}/{one.dialect}".lower()}]


async def one_run(kubeconfig: Path, scheduler: Scheduler, load: dict[str, Any]) -> dict[str, Any]:
    """One scheduler, between two bare loops."""
    cluster = await connect(str(kubeconfig), None)
    bench = LiveBench(cluster, lambda what: print(f"  {what}", file=sys.stderr))
    half = max(1, load["pods"] // 2)
    try:
        await bench.make_nodes(load["nodes"])
        before = await bench.bare(half)
        wanted = Load(bench.namespace, bench.namespace, scheduler.dialect, load["pods"], load["gang_size"])
        command = scheduler.command(kubeconfig)
        rate = before.created_and_bound_per_s / 2 if load["arrive"] else 0.0
        waits_s = await bench.bare_arrivals(wanted, rate) if rate else []
        took, listed_s = await measure(cluster, bench, wanted, rate, command, lambda what: None)
        bare = before.with_another(await bench.bare(half))
    finally:
        await bench.clean()
        await cluster.close()
    arrivals = {"rate": round(rate), "bare_gang_p50_s": rank(waits_s, 50), "bare_gang_p99_s": rank(waits_s, 99)}
    return {
        **load,
        "scheduler": scheduler.name,
        "version": scheduler.version,
        "dialect": scheduler.dialect,
        **shares(took, bare),
        **(arrivals if rate else {}),
        "list_and_decode_s": round(listed_s, 3),
        "load_average": round(os.getloadavg()[0], 1),
        **took.figures(),
    }


def main() -> None:
    chosen = arguments()
    if chosen.earlier:
        lines = [line for path in chosen.earlier for line in path.read_text().splitlines()]
        DOCUMENT.write_text(markdown([json.loads(line) for line in lines], statistics.median))
        return
    if chosen.engine:
        figures = json.dumps(without_network.figures())
        print(figures)
        if chosen.results is not None:
            with chosen.results.open("a") as file:
                file.write(figures + "\n")
        return
    found = schedulers(chosen.peer, chosen.without)
    programs = binaries.ensure()
    loads = [
        {"nodes": nodes, "pods": pods, "gang_size": size, "arrive": arrive}
        for nodes, pods in zip(chosen.nodes, chosen.pods, strict=True)
        for size in chosen.gang_size
        for arrive in ([False, True] if chosen.arrive else [False])
    ]
    results: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="enbloc-peers-") as folder,
        ControlPlane(programs, Path(folder), controllers=()) as plane,
    ):
        plane.kwok.kill()  # the pods do not run: only scheduling is measured
        running.define(plane)
        for load in loads:
            for _ in range(chosen.repeats):
                for scheduler in found:
                    print(f"{scheduler.name} ({scheduler.dialect}), {load}", file=sys.stderr)
                    try:
                        results.append(asyncio.run(one_run(plane.kubeconfig, scheduler, load)))
                    except RuntimeError as why:
                        print(f"failed: {why}", file=sys.stderr)
                        continue
                    print(json.dumps(results[-1]), flush=True)
                    if chosen.results is not None:  # what was measured is there though the rest is cut off
                        with chosen.results.open("a") as file:
                            file.write(json.dumps(results[-1]) + "\n")
    if not chosen.no_document and results:
        DOCUMENT.write_text(markdown(results, statistics.median))


if __name__ == "__main__":
    main()
