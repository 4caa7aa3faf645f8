"""The live path against a real API server, as a user runs it: `enbloc run` as a process of its own, seen from outside.

A backlog of gangs exists before the process is started, or gangs arrive at a rate while it runs. A watch of this
process sees the Bindings; what the API server was asked for is the difference of its own counters. The reference is a
loop that only binds, on as many connections: the limit of that server on that machine. Half of the reference is
measured before and half after, so that a changing load of the machine distorts the ratio less.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.live_bench import Bare, LiveBench, Progress, Seen
from benchmarks.live_load import KIND_OF, Load
from benchmarks.scheduler_process import SchedulerProcesses, Used, enbloc_run
from enbloc.api.writes import Refused
from enbloc.cluster.kube import KubeCluster, connect

Commands = Callable[[str, Path], Sequence[Sequence[str]]]
"""Of a scheduler, one for each of its processes: from the namespace of the bench and a folder for its files."""


class Wanted(NamedTuple):
    """What is measured."""

    nodes: int
    pods: int
    gang_size: int
    dialect: str
    arrive: float = 0.0
    """Pods per second that arrive while the scheduler runs; 0: all of them wait when it is started."""
    record: bool = False
    """Whether it keeps a flight recorder, whose share of its CPU time is shown."""


class Run(NamedTuple):
    """One scheduler's run, as seen from outside. Seconds since its process was started."""

    bound: int
    first_s: float
    all_s: float
    binds_per_s: float
    waits_s: list[float]
    """Per gang, sorted."""
    partly_started: int
    used: Used
    first_cpu_s: float
    """CPU seconds of the process until the first Binding."""
    requests: dict[str, int]
    """`VERB resource[/subresource]` → how many; without watches, and without those of the bench."""
    log: str = ""
    """What it printed."""

    def figures(self) -> dict[str, Any]:
        return {
            "bound": self.bound,
            "first_bind_s": round(self.first_s, 3),
            "all_bound_s": round(self.all_s, 3),
            "bound_per_s": round(self.binds_per_s),
            "gang_p50_s": round(rank(self.waits_s, 50), 3),
            "gang_p99_s": round(rank(self.waits_s, 99), 3),
            "partly_started": self.partly_started,
            "cpu_s": self.used.cpu_s,
            "first_bind_cpu_s": round(self.first_cpu_s, 2),
            "peak_memory_mb": self.used.peak_mb,
            **recorder_figures(self.log, self.used.cpu_s),
            "requests": self.requests,
        }


async def run(kubeconfig: str | None, context: str | None, wanted: Wanted, progress: Progress) -> dict[str, Any]:
    """Measures, and cleans up. Raises `NoCredentials`, `Refused` or `NotServed`."""
    cluster = await connect(kubeconfig, context)
    bench = LiveBench(cluster, progress)
    half = max(1, wanted.pods // 2)
    try:
        await bench.check_served(wanted.dialect)
        await bench.make_nodes(wanted.nodes)
        before = await bench.bare(half)
        bare_waits_s = await _bare_arrivals(bench, wanted)

        def commands(namespace: str, folder: Path) -> list[list[str]]:
            config = folder / "config.yaml"
            config.write_text(json.dumps({"schedulerNames": [namespace]}))
            words = enbloc_run(kubeconfig, context, namespace, config)
            return [[*words, "--record", str(folder / "recording")] if wanted.record else words]

        load = Load(bench.namespace, bench.namespace, wanted.dialect, wanted.pods, wanted.gang_size)
        took, listed_s = await measure(cluster, bench, load, wanted.arrive, commands, progress)
        bare = before.with_another(await bench.bare(half))
    finally:
        await bench.clean()
        await cluster.close()
    figures: dict[str, Any] = {**wanted._asdict(), **shares(took, bare), **took.figures()}
    if listed_s:
        figures["list_and_decode_s"] = round(listed_s, 3)
    if bare_waits_s:
        figures["bare_gang_p50_s"] = round(rank(bare_waits_s, 50), 3)
        figures["bare_gang_p99_s"] = round(rank(bare_waits_s, 99), 3)
    return figures


def shares(took: Run, bare: Bare) -> dict[str, Any]:
    """What the bare loops reached, and the scheduler's share of it."""
    return {
        "bare_bind_per_s": round(bare.binds_per_s),
        "bare_create_and_bind_per_s": round(bare.created_and_bound_per_s),
        "share_of_limit": round(took.binds_per_s / bare.binds_per_s, 3),
        "share_of_create_and_bind": round(took.binds_per_s / bare.created_and_bound_per_s, 3),
    }


async def _bare_arrivals(bench: LiveBench, wanted: Wanted) -> list[float]:
    if not wanted.arrive:
        return []
    load = Load(bench.namespace, "none", wanted.dialect, wanted.pods, wanted.gang_size)
    return await bench.bare_arrivals(load, wanted.arrive)


async def measure(
    cluster: KubeCluster, bench: LiveBench, load: Load, arrive: float, commands: Commands, progress: Progress
) -> tuple[Run, float]:
    """Runs one scheduler; the second value is how long it took here to list and decode the backlog, else 0."""
    seen, listed_s = Seen(load), 0.0
    with tempfile.TemporaryDirectory(prefix="enbloc-bench-") as name:
        folder = Path(name)
        process = SchedulerProcesses(commands(load.namespace, folder), folder)
        first_cpu_s: list[float] = []
        seen.at_first = lambda: first_cpu_s.append(process.cpu_s())
        if not arrive:
            await bench.make_backlog(load, seen)
            begun = time.monotonic()
            await asyncio.gather(cluster.list("Pod", load.namespace), cluster.list("Node"))
            listed_s = time.monotonic() - begun
        await cluster.start(["Pod"], seen.observe)
        before = await requests_of(cluster)
        progress(f"starts {process.name}")
        process.start()
        try:
            if arrive:
                await bench.warm_up(load, process)
                await bench.arrivals(load, seen, arrive)
            await bench.wait_bound(seen, process)
            requests = await requests_of(cluster)
        finally:
            used = await process.stop()
            log = process.log
            await cluster.stop_watching()
    await bench.delete_gangs(load.dialect)
    span_s = max(seen.last_s - seen.first_s, 1e-9)
    own = _made_meanwhile(load) if arrive else Counter[str]()
    return (
        Run(
            seen.bound,
            seen.first_s - process.started_s,
            seen.last_s - process.started_s,
            (seen.bound - 1) / span_s,
            seen.waits_s(process.started_s),
            seen.partly_started,
            used,
            first_cpu_s[0] if first_cpu_s else 0.0,
            dict(sorted((requests - before - own).items())),
            log,
        ),
        listed_s,
    )


def _made_meanwhile(load: Load) -> Counter[str]:
    """What the bench itself asks for while gangs arrive."""
    gangs = -(-load.pods // load.gang_size)
    if load.dialect == "job":
        return Counter({"POST jobs": gangs})
    return Counter({"POST pods": load.pods, "POST podgroups": gangs if load.dialect in KIND_OF else 0})


def recorder_figures(log: str, cpu_s: float) -> dict[str, float]:
    """What a flight recorder took, by its own last line: on the scheduler's thread, and in all."""
    found = re.search(r"recorder: \d+ calls, ([\d.]+) s of CPU in them, ([\d.]+) s in its own thread", log)
    if not found or not cpu_s:
        return {}
    hot_s, own_s = float(found[1]), float(found[2])
    return {
        "recorder_cpu_s": round(hot_s + own_s, 3),
        "recorder_hot_path_share": round(hot_s / cpu_s, 4),
        "recorder_share": round((hot_s + own_s) / cpu_s, 4),
    }


async def requests_of(cluster: KubeCluster) -> Counter[str]:
    """What the API server has answered so far, by its own counters; empty if it does not show them to us."""
    try:
        text = await cluster.text("/metrics")
    except Refused:
        return Counter()
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if line.startswith("apiserver_request_total{"):
            labels, _, value = line.rpartition(" ")
            parts = dict(part.partition("=")[::2] for part in labels[labels.index("{") + 1 : -1].split(","))
            verb, resource, sub = (parts.get(key, "").strip('"') for key in ("verb", "resource", "subresource"))
            if verb not in ("WATCH", "CONNECT") and resource and resource not in ("leases",):
                found[f"{verb} {resource}{'/' + sub if sub else ''}"] += int(float(value))
    return found


def rank(ordered: Sequence[float], percent: int) -> float:
    """The value that `percent` of all do not exceed."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0.0
