"""How good are expected starts? Asks for them during generated loads, and compares with the starts that then happened.

    .venv/bin/python scripts/forecast_error.py [--loads N] [--seed N] [--trace FILE.swf[.gz]]

Prints the tables of docs/forecast.md. The same arguments give the same figures.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from enbloc.advice.trials import Trials
from enbloc.config import Config, parse
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

NODES, NODE_CPU, JOBS = 8, 16, 60
ASKED_EVERY_S = 300
MOST_ASKED = 12
Obj = dict[str, Any]
Actual = Callable[[random.Random, int], int]
"""The run time of a job whose author expects so many seconds."""


class Forecast(NamedTuple):
    """One answer, and what came of it; all in seconds."""

    wait: int
    """From the question to the start that happened."""
    expected: int | None
    """From the question to the expected start."""


class Load(NamedTuple):
    name: str
    actual: Actual
    come_later: bool
    config: Obj | None = None


def _sooner(rng: random.Random, expected: int) -> int:
    return rng.randint(expected // 10, expected)


LOADS = (
    Load("run times as expected, no job comes later", lambda rng, expected: expected, False),
    Load("run times as expected, jobs keep coming", lambda rng, expected: expected, True),
    Load("jobs end after 10 to 100 % of what is expected", _sooner, True),
    Load(
        "the same, with EASY backfill",
        _sooner,
        True,
        {"actions": [{"name": "allocate"}, {"name": "backfill", "arguments": {"mode": "easy"}}]},
    ),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--loads", type=int, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--trace", type=Path, help="also ask during the first days of a trace in the SWF format")
    options.add_argument("--trace-jobs", type=int, default=400)
    asked = options.parse_args()
    print(_HEAD)
    for load in LOADS if asked.loads else ():
        found: list[Forecast] = []
        for number in range(asked.loads):
            rng = random.Random(f"{asked.seed}/{number}")
            found += ask(generated(rng, load), parse(load.config))
        print(row(load.name, found))
    if asked.trace is not None:
        documents = from_trace(asked.trace, asked.trace_jobs)
        last_s = int(documents[-1]["metadata"]["annotations"]["sim.enbloc.dev/at"].removesuffix("s"))
        found = ask(documents, parse(None), last_s // MOST_ASKED)
        print(row(f"{asked.trace.name}, {asked.trace_jobs} jobs, users' estimates", found))


def generated(rng: random.Random, load: Load) -> list[Obj]:
    nodes = [node(f"n{number}", NODE_CPU) for number in range(NODES)]
    jobs, at_s = [], 0
    for number in range(JOBS):
        at_s += rng.randint(0, 120) if load.come_later else 0
        expected = rng.choice((120, 300, 600, 1200, 3600))
        size, cpu = rng.choice((1, 2, 4, 8, 16)), rng.choice((1, 2, 4, 8))
        jobs.append(job(f"j{number:03d}", at_s, size, cpu, expected, load.actual(rng, expected)))
    return nodes + jobs


def from_trace(path: Path, count: int) -> list[Obj]:
    """Jobs of a trace, from its first queue on, on nodes of one processor each; users' estimates as expected times."""
    import gzip

    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()
    processors = next(int(line.split(":")[1].split()[0]) for line in lines if line.startswith("; MaxProcs"))
    rows = [list(map(int, map(float, line.split()))) for line in lines if line.strip() and not line.startswith(";")]
    rows = [one for one in rows if one[3] > 0 and 0 < one[4] <= processors][:count]
    first = rows[0][1]
    jobs = [
        job(f"j{one[0]}", one[1] - first, one[4], 1, one[8] if one[8] > 0 else one[3], min(one[3], max(one[8], 1)))
        for one in rows
    ]
    return [node(f"n{number}", 16) for number in range(processors // 16)] + jobs


def node(name: str, cpu: int) -> Obj:
    room = {"cpu": str(cpu), "memory": "64Gi", "pods": "250"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": room}}


def job(name: str, at_s: int, size: int, cpu: int, expected_s: int, actual_s: int) -> Obj:
    times = {"sim.enbloc.dev/at": f"{at_s}s", "enbloc.dev/expected-duration": f"{expected_s}s"}
    template = {
        "metadata": {"annotations": {"sim.enbloc.dev/run-time": f"{max(1, actual_s)}s"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "job", "resources": {"requests": {"cpu": str(cpu)}}}],
        },
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": times},
        "spec": {"schedulerName": "enbloc", "tasks": [{"name": "w", "replicas": size, "template": template}]},
    }


def ask(documents: Sequence[Obj], config: Config, every_s: int = ASKED_EVERY_S) -> list[Forecast]:
    """At regular instants, every gang that waits then: when is it expected to start, and when did it?"""
    simulation = _simulation(documents, config)
    said: list[tuple[int, str, int | None]] = []
    for number in range(1, MOST_ASKED + 1):
        at_s = number * every_s
        result = simulation.run(at_s * SECOND)
        waiting = [entry["gang"] for entry in result.pending]
        if waiting:
            known = [_without_run_time(obj) for obj in result.objects]
            expected = Trials(known, simulation.begin_ns + at_s * SECOND, config).forecast(waiting)
            said += [(at_s, gang, expected.get(gang)) for gang in waiting]
    started = {gang["gang"]: gang["started"] for gang in simulation.run().all_gangs}
    return [
        Forecast(round(started[gang] - at_s), None if start_ns is None else start_ns // SECOND)
        for at_s, gang, start_ns in said
        if started.get(gang) is not None
    ]


def _simulation(documents: Sequence[Obj], config: Config) -> Simulation:
    return Simulation(read_scenario([Document("load", at, obj) for at, obj in enumerate(documents, 1)]), config)


def _without_run_time(obj: Obj) -> Obj:
    """The forecast may know what the author expects, not what will happen."""
    if obj["kind"] == "Job":
        return {**obj, "spec": {**obj["spec"], "tasks": [_plain(task) for task in obj["spec"]["tasks"]]}}
    return _plain({"template": obj})["template"] if obj["kind"] == "Pod" else obj


def _plain(task: Obj) -> Obj:
    template = task["template"]
    metadata = template.get("metadata") or {}
    kept = {key: text for key, text in (metadata.get("annotations") or {}).items() if not key.endswith("/run-time")}
    return {**task, "template": {**template, "metadata": {**metadata, "annotations": kept}}}


_HEAD = (
    "| load | asked | known | exact | median error | 90 % within | later than said | mean wait |\n"
    "|---|---|---|---|---|---|---|---|"
)


def row(name: str, found: Sequence[Forecast]) -> str:
    known = [one for one in found if one.expected is not None]
    errors = sorted(abs(one.wait - (one.expected or 0)) for one in known)
    if not errors:
        return f"| {name} | {len(found)} | 0 | – | – | – | – | – |"
    exact = sum(error <= 1 for error in errors) / len(errors)
    later = sum(one.wait > (one.expected or 0) + 1 for one in known) / len(errors)
    middle, most = errors[len(errors) // 2], errors[min(len(errors) - 1, len(errors) * 9 // 10)]
    wait = round(sum(one.wait for one in known) / len(known))
    share = f"{len(known) / len(found):.0%}"
    return f"| {name} | {len(found)} | {share} | {exact:.0%} | {middle} s | {most} s | {later:.0%} | {wait} s |"


if __name__ == "__main__":
    main()
