"""A round: every scheduler once with the same load, on the same nodes, a bare loop between each two."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.live import Run, measure, rank, shares
from benchmarks.live_bench import Bare, LiveBench
from benchmarks.live_load import Load
from benchmarks.peers.schedulers import Commands, Scheduler
from e2e.api import Json
from e2e.control_plane import ControlPlane
from enbloc.cluster.kube import KubeCluster, connect

MOST_BARE: Final = 2_500
"""Pods of one bare loop: enough for its rate."""

Result = dict[str, Any]


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Round:
    """One load on one control plane."""

    def __init__(self, plane: ControlPlane, load: Result, at_most_s: float) -> None:
        self._plane = plane
        self._load = load
        self._at_most_s = at_most_s

    async def run(self, schedulers: Sequence[Scheduler], done: Callable[[Result], None]) -> None:
        """Calls `done` with what each did, or with why it did not."""
        cluster = await connect(str(self._plane.kubeconfig), None)
        bench = LiveBench(cluster, lambda what: note(f"  {what}"), self._at_most_s)
        count = min(MOST_BARE, max(1, self._load["pods"] // 2))
        try:
            await bench.make_nodes(self._load["nodes"])
            before = await bench.bare(count)
            rate = before.created_and_bound_per_s / 2 if self._load["arrive"] else 0.0
            waits_s = await bench.bare_arrivals(self._wanted(bench, None), rate) if rate else []
            arrivals = {"rate": round(rate), "bare_gang_p50_s": rank(waits_s, 50), "bare_gang_p99_s": rank(waits_s, 99)}
            for scheduler in schedulers:
                note(f"{scheduler.name} ({scheduler.dialect}), {self._load}")
                same = {**self._load, **_who(scheduler), "load_average": round(os.getloadavg()[0], 1)}
                await self._change_namespace(bench)
                took = await self._one(cluster, bench, scheduler, rate)
                if isinstance(took, str):
                    note(f"failed: {took}")
                    done({**same, "failed": took})
                    continue
                run, commands, listed_s = took
                after = await bench.bare(count)
                same |= {"commands": commands, "at_most_s": self._at_most_s, **(arrivals if rate else {})}
                done({**same, **_figures(run, before.with_another(after), listed_s)})
                before = after
        finally:
            await bench.clean()
            await cluster.close()

    async def _one(
        self, cluster: KubeCluster, bench: LiveBench, scheduler: Scheduler, rate: float
    ) -> tuple[Run, list[str], float] | str:
        """Its run, the commands as people read them, and the time of listing; or why it failed."""
        shown: list[str] = []

        def commands(namespace: str, folder: Path) -> Sequence[Sequence[str]]:
            found = of(namespace, folder)
            shown.extend(_shown(words, self._plane.kubeconfig, namespace, folder) for words in found)
            return found

        of: Commands = scheduler.commands(self._plane.kubeconfig)
        load = self._wanted(bench, scheduler)
        try:
            for obj in scheduler.objects(bench.namespace):
                await asyncio.to_thread(self._plane.apply, obj)
            run, listed_s = await measure(cluster, bench, load, rate, commands, lambda what: None)
        except Exception as why:  # whatever a peer breaks, the others are measured
            await bench.delete_gangs(load.dialect)
            return f"{type(why).__name__}: {why}" if not isinstance(why, RuntimeError) else str(why)
        return run, shown, listed_s

    def _wanted(self, bench: LiveBench, scheduler: Scheduler | None) -> Load:
        name = (scheduler and scheduler.only_name) or bench.namespace
        dialect = scheduler.dialect if scheduler else "koordinator"
        return Load(bench.namespace, name, dialect, self._load["pods"], self._load["gang_size"], bench.label)

    async def _change_namespace(self, bench: LiveBench) -> None:
        """With the Events in one request: a peer may have written one for each pod."""
        path = f"/api/v1/namespaces/{bench.namespace}/events"
        await asyncio.to_thread(self._plane.impatient_api(120).request, "DELETE", path)
        await bench.change_namespace()


def define(plane: ControlPlane, schedulers: Sequence[Scheduler]) -> None:
    """The kinds that the schedulers need, as their projects define them."""
    for folder in dict.fromkeys(one.definitions for one in schedulers if one.definitions):
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(folder))
        plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", str(folder), timeout_s=90)


def _who(scheduler: Scheduler) -> Json:
    return {
        "scheduler": scheduler.name,
        "version": scheduler.version,
        "dialect": scheduler.dialect,
        "how": scheduler.how,
    }


def _figures(run: Run, bare: Bare, listed_s: float) -> Result:
    return {**shares(run, bare), "list_and_decode_s": round(listed_s, 3), **run.figures()}


def _shown(words: Sequence[str], kubeconfig: Path, namespace: str, folder: Path) -> str:
    """A command without what differs from run to run."""
    found = []
    for word in words:
        for part, name in ((str(kubeconfig), "KUBECONFIG"), (f"{folder}/", ""), (namespace, "NAMESPACE")):
            word = word.replace(part, name)
        found.append(word.rpartition("/")[2] if word.startswith("/") else word)
    return " ".join("'…'" if word.startswith("from enbloc") else word for word in found if word != "env")
