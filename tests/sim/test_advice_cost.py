"""What trials may cost is counted: each of the first 20 gangs gets its own, and none runs for days."""

from __future__ import annotations

import pytest

from enbloc.advice.advise import ADVISED, advise
from enbloc.advice.candidates import others
from enbloc.advice.case import Case
from enbloc.advice.change import StepDoc
from enbloc.advice.remedies import remedies
from enbloc.advice.trials import QUIET_NS, WORK, Trials
from enbloc.config import parse
from enbloc.gangs.hints import RUN_TIME
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from support.manifests import gang, job, node, pod, policy, role
from support.simulation import NO_EVICTIONS, documents

GANGS = 25


def crowd() -> tuple[Simulation, Result]:
    """One node, one gang on it, and many of two shapes behind it."""
    gangs = [gang(f"g{number:02d}", 4, cpu=1 + number % 2) for number in range(GANGS)]
    simulation = Simulation(read_scenario(documents(node("n1", cpu=4), *gangs)), parse(None))
    return simulation, simulation.run(30 * SECOND)


def test_the_first_twenty_gangs_have_remedies_and_the_others_null() -> None:
    simulation, result = crowd()
    advise(simulation, result)
    tried = [entry["remedies"] is not None for entry in result.pending]
    assert tried == [True] * ADVISED + [False] * (len(result.pending) - ADVISED)
    assert len(tried) > ADVISED
    assert any(entry["remedies"] for entry in result.pending[:ADVISED])


def test_a_trial_that_does_not_help_ends_soon_and_writes_no_numbers() -> None:
    simulation, result = crowd()
    trials = Trials(result.objects, simulation.begin_ns + simulation.elapsed_ns, simulation.config)
    last = result.pending[-1]["gang"]
    extra = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "small"},
        "status": {"allocatable": {"cpu": "500m"}},
    }
    assert trials.start_after(last, [{"do": "create", "object": extra}]) is None
    assert WORK - trials.left < 30, "each of the gangs' pods had its condition rewritten, or time ran on to starvation"
    assert QUIET_NS < 172_800 * SECOND


def test_a_forecast_waits_for_ends_that_are_days_away() -> None:
    """Only where nothing but timers is left, an hour without a change ends it."""
    long = [
        {
            **obj,
            "metadata": {**obj["metadata"], "annotations": {**obj["metadata"].get("annotations", {}), RUN_TIME: "30h"}},
        }
        for obj in gang("first", 4)
    ]
    simulation = Simulation(read_scenario(documents(node("n1", cpu=4), long, gang("next", 4, at="5s"))), parse(None))
    result = simulation.run(60 * SECOND)
    advise(simulation, result)
    assert [(entry["gang"], entry["expected_start"]) for entry in result.pending] == [("default/next", 108_000.0)]


def short_of_a_node() -> Trials:
    """`default/waits` needs one more node."""
    simulation = Simulation(read_scenario(documents(node("n1", cpu=4), gang("waits", 2, cpu=4))), parse(None))
    result = simulation.run(30 * SECOND)
    return Trials(result.objects, simulation.begin_ns + simulation.elapsed_ns, simulation.config)


def test_a_change_after_which_the_cluster_never_rests_is_not_advised(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gang starts in the very instant in which another Job is restarted again and again."""
    monkeypatch.setattr("enbloc.sim.simulation.MOST_RESTARTS", 10)
    restarted = job(
        "restless",
        role("w", 1, run_time="0s", exit_code="1"),
        policies=[policy("RestartJob", "PodFailed")],
        maxRetry=1_000_000,
    )
    trials = short_of_a_node()
    more: StepDoc = {"do": "create", "object": node("n2", cpu=8)}
    assert trials.start_after("default/waits", [more]) == 0
    assert trials.start_after("default/waits", [more, {"do": "create", "object": restarted}]) is None


def test_a_start_that_is_no_earlier_is_none() -> None:
    trials = short_of_a_node()
    more: StepDoc = {"do": "create", "object": node("n2", cpu=8)}
    assert trials.start_after("default/waits", [more], before_ns=1) == 0
    assert trials.start_after("default/waits", [more], before_ns=0) is None


@pytest.mark.parametrize("work", [1, WORK])
def test_a_trial_that_the_budget_ended_rules_nothing_out(monkeypatch: pytest.MonkeyPatch, work: int) -> None:
    """The holder takes 30 s to end, and the budget is spent before: a gang of the same shape may have more left."""
    monkeypatch.setattr("enbloc.advice.trials.WORK", work)
    values = documents(node("n1", cpu=4), gang("holder", 4, stop_delay="30s"), pod("waits", 4, at="5s"))
    simulation = Simulation(read_scenario(values), parse(NO_EVICTIONS))
    result = simulation.run(30 * SECOND)
    trials = Trials(result.objects, simulation.begin_ns + simulation.elapsed_ns, simulation.config)
    (waits,) = [one for one in trials.engine.state.gangs.values() if one.spec.title == "default/waits"]
    found = remedies(Case(trials.simulation.store, trials.engine, simulation.config, waits), trials, None)
    assert any("default/holder" in one.change for one in found) == (work == WORK)
    assert others.ends not in [key[0] for key in trials.futile if isinstance(key, tuple)]
