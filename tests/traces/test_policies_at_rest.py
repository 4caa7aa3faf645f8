"""Policies keep I5 (a restart changes no later decision) and I7 (a cycle on an unchanged cluster decides nothing)."""

from __future__ import annotations

import random

import pytest
from tests.support.restarts import changed_by_restarts, restart_step
from tests.support.simulation import documents

from enbloc.api.meta import Obj
from enbloc.config import parse
from enbloc.config.policies import policy_config
from enbloc.engine.decisions import Bind, Evict
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.clock import EPOCH
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.traces import stack
from enbloc.traces.cluster import node, shape_of
from enbloc.traces.fast import FastReplay
from enbloc.traces.trace import Trace, TraceJob
from enbloc.units import SECOND, format_duration

_FAIR = {"plugins": [{"name": "fair", "arguments": {"halfLife": "60s"}}]}
_BACKFILL = {
    mode: [{"name": "allocate"}, {"name": "backfill", "arguments": {"mode": mode}}] for mode in ("easy", "conservative")
}
CONFIGS = {
    "conservative": policy_config("conservative"),
    "srtf": policy_config("srtf"),
    "srsf": policy_config("srsf"),
    "fair": parse({"actions": "allocate", "tiers": [_FAIR]}),
    "fair, fifo": parse({"actions": "allocate", "tiers": [_FAIR], "queues": {"dequeueStrategy": "fifo"}}),
    "fair, easy": parse({"actions": _BACKFILL["easy"], "tiers": [_FAIR]}),
    "fair, conservative": parse({"actions": _BACKFILL["conservative"], "tiers": [_FAIR]}),
    "fair, default": parse({"tiers": [_FAIR]}),
}
"""In FIFO queues and under backfill a gang may start because usage changed the order, and nothing else (G12)."""
_RESTARTED = ("conservative", "srtf", "srsf", "fair", "fair, fifo")
"""The others in the soak."""


def _jobs(seed: str, count: int) -> list[TraceJob]:
    dice, users, at = random.Random(seed), random.Random(f"{seed} users"), 0
    jobs = []
    for number in range(count):
        at += dice.choice((0, 2, 5, 30))
        run = dice.randint(2, 120)
        estimate = run + dice.choice((0, 0, 40))
        jobs.append(
            TraceJob(
                str(number),
                at * SECOND,
                run * SECOND,
                dice.randint(1, 6),
                estimate * SECOND,
                users.choice(("", "ann", "bob")),
            )
        )
    return jobs


class _Rested(FastReplay):
    """Wakes every gang after each instant: nothing may be decided that was not."""

    checked = 0

    def _settle(self) -> None:
        super()._settle()
        self._engine.force()
        decided = self._engine.run(EPOCH + self._now_ns)
        assert not [one for one in decided if isinstance(one, Bind | Evict)], f"at {self._now_ns / SECOND} s"
        self.checked += 1


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 4))])
@pytest.mark.parametrize("policy", CONFIGS)
def test_i7_a_cycle_on_an_unchanged_cluster_decides_nothing(policy: str, seed: int) -> None:
    trace = Trace(_jobs(f"{policy}{seed}", 40), processors=6)
    replay = _Rested(shape_of(trace, None, None), CONFIGS[policy])
    outcomes = replay.run(trace.jobs)
    assert replay.checked >= 40
    assert all(outcome.end_ns is not None for outcome in outcomes)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 8))])
@pytest.mark.parametrize(
    "policy",
    [name if name in _RESTARTED else pytest.param(name, marks=pytest.mark.soak) for name in CONFIGS],
)
def test_i5_a_restart_changes_no_later_decision(policy: str, seed: int) -> None:
    jobs = _jobs(f"restart {policy}{seed}", 10)
    shape = shape_of(Trace(jobs, processors=6), None, None)
    config = CONFIGS[policy]

    def run(restart_at: float | None) -> Result:
        objects: list[Obj] = [node(shape, number) for number in range(shape.nodes)]
        for number, job in enumerate(jobs):
            made = stack.job_object(shape, job, number)
            made["metadata"].setdefault("annotations", {})["sim.enbloc.dev/at"] = format_duration(job.submit_ns)
            objects.append(made)
        steps = [] if restart_at is None else [restart_step(restart_at)]
        simulation = Simulation(read_scenario(documents(*objects, *steps)), config)
        stack.keep_progress(simulation, jobs)
        return simulation.run()

    assert changed_by_restarts(run, most=6) == []
