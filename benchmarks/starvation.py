"""Starvation in virtual time: a stream of small jobs keeps a cluster busy, and one large gang needs a part of it.

The same load is simulated under several policies. Everything is drawn from a seed, so the figures are the same on every
machine: how long the large gang waits, what that costs in utilisation, and how long small jobs wait.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from enbloc import config as configs
from enbloc.api.meta import Obj
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import Scenario, read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

NODE_CPUS: Final = 8
SMALL_CPUS: Final = 2
SMALL_PODS: Final = (1, 4)
SMALL_S: Final = (300, 1500)
"""Number of pods and run time of small jobs: from, to, uniformly drawn."""
LARGE_PART: Final = 0.3
"""The large gang's share of the cluster, in whole nodes."""
LARGE_S: Final = 1800
HOUR_S: Final = 3600
STARVES_AFTER_S: Final = 1800

LARGE: Final = "large"

_RESERVE: Final = {"name": "reserve", "arguments": {"starvingJobTimeThreshold": STARVES_AFTER_S}}
_EASY: Final = {"name": "backfill", "arguments": {"mode": "easy"}}
POLICIES: Final[dict[str, dict[str, Any]]] = {
    "none": {"actions": ["allocate", "backfill"]},
    "reserve": {"actions": ["allocate", "backfill", _RESERVE]},
    "easy": {"actions": ["allocate", _EASY]},
}


class Load(NamedTuple):
    """What arrives when."""

    nodes: int
    load: float
    """Requests of the small jobs, relative to the cluster's capacity."""
    hours: float
    """How long small jobs keep arriving."""
    seed: int

    @property
    def cpus(self) -> int:
        return self.nodes * NODE_CPUS

    @property
    def large_pods(self) -> int:
        return max(1, round(self.nodes * LARGE_PART))

    @property
    def large_at_s(self) -> int:
        return round(self.hours * HOUR_S / 6)


class Outcome(NamedTuple):
    """One policy's run."""

    policy: str
    large_waited_s: float
    utilisation: float
    """While small jobs kept arriving."""
    small_waits_s: list[float]
    """From arrival to start, of each small job; sorted."""
    used: list[tuple[float, int, int]]
    """Seconds, CPUs that small jobs use from then on, CPUs that the large gang uses."""


def run(load: Load) -> list[Outcome]:
    """The same load under each policy."""
    scenario = _scenario(load)
    outcomes = []
    for policy, data in POLICIES.items():
        result = Simulation(scenario, configs.parse(data)).run()
        outcomes.append(_outcome(policy, load, result))
    return outcomes


def figures(load: Load, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """As JSON."""
    return {
        "nodes": load.nodes,
        "cpus": load.cpus,
        "load": load.load,
        "hours": load.hours,
        "seed": load.seed,
        "small_jobs": len(outcomes[0].small_waits_s),
        "large_pods": load.large_pods,
        "large_cpus": load.large_pods * NODE_CPUS,
        "starves_after_s": STARVES_AFTER_S,
        "runs": [
            {
                "policy": one.policy,
                "large_waited_s": one.large_waited_s,
                "utilisation": round(one.utilisation, 4),
                "small_waited_median_s": _rank(one.small_waits_s, 50),
                "small_waited_p95_s": _rank(one.small_waits_s, 95),
                "small_waited_mean_s": round(sum(one.small_waits_s) / len(one.small_waits_s), 1),
            }
            for one in outcomes
        ],
    }


def _rank(ordered: Sequence[float], percent: int) -> float:
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


# ---- the load


def _scenario(load: Load) -> Scenario:
    objects = [*_nodes(load), *_jobs(load)]
    return read_scenario(Document("starvation", number, value) for number, value in enumerate(objects, 1))


def _nodes(load: Load) -> Iterator[Obj]:
    for number in range(load.nodes):
        allocatable = {"cpu": str(NODE_CPUS), "memory": "64Gi", "pods": "110"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{number + 1:03d}"},
            "status": {"allocatable": allocatable},
        }


def _jobs(load: Load) -> Iterator[Obj]:
    """Small ones arrive at random, and together they request `load` of the cluster's capacity."""
    dice = random.Random(load.seed)
    end = load.hours * HOUR_S
    left = load.load * load.cpus * end
    drawn = []
    while left > 0:
        drawn.append((dice.uniform(0, end), dice.randint(*SMALL_PODS), dice.randint(*SMALL_S)))
        left -= SMALL_CPUS * drawn[-1][1] * drawn[-1][2]
    for number, (at, pods, seconds) in enumerate(sorted(drawn), 1):
        yield _job(f"small-{number:05d}", at, pods, SMALL_CPUS, seconds)
    yield _job(LARGE, load.large_at_s, load.large_pods, NODE_CPUS, LARGE_S)


def _job(name: str, at: float, pods: int, cpus: int, seconds: int) -> Obj:
    """Every job states its true run time."""
    notes = {"sim.enbloc.dev/run-time": f"{seconds}s", "enbloc.dev/expected-duration": f"{seconds}s"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": str(cpus)}}}
    template = {"metadata": {"annotations": notes}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"sim.enbloc.dev/at": f"{round(at * 1000)}ms"}},
        "spec": {"schedulerName": "volcano", "tasks": [{"name": "worker", "replicas": pods, "template": template}]},
    }


# ---- the result


def _outcome(policy: str, load: Load, result: Result) -> Outcome:
    waits = {gang.name.partition("/")[2]: (gang.started_ns - gang.arrived_ns) / SECOND for gang in result.gangs}
    large = waits.pop(LARGE)
    used = list(_used(result))
    end = load.hours * HOUR_S
    busy = 0.0
    for (since, small, big), (until, _, _) in zip(used, [*used[1:], (end, 0, 0)], strict=True):
        busy += (small + big) * max(0.0, min(until, end) - min(since, end))
    return Outcome(policy, large, busy / (load.cpus * end), sorted(waits.values()), used)


def _used(result: Result) -> Iterator[tuple[float, int, int]]:
    """CPUs in use, from one time to the next."""
    used = {True: 0, False: 0}
    at = 0.0
    for line in result.timeline:
        if line.kind == "Pod" and line.what in ("bound", "succeeded"):
            if line.t > at:
                yield at, used[False], used[True]
                at = line.t
            is_large = line.name.startswith(f"{LARGE}-")
            used[is_large] += (NODE_CPUS if is_large else SMALL_CPUS) * (1 if line.what == "bound" else -1)
    yield at, used[False], used[True]
