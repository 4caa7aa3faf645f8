"""I5: a scheduler that starts anew decides what the one before it would have decided: at every instant of every story,
example, situation and random scenario at which something happened.

`make test` restarts at all instants of a run, and right after all of them; `make soak` also at each alone, so that no
restart hides what an earlier one would have changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from enbloc.config import parse
from enbloc.scenario.documents import Document, read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import parse_duration
from oracle import __main__ as command
from oracle import adapter, compare, generate, rules
from support.restarts import (
    Allows,
    RunOften,
    changed_by_frequent_restarts,
    changed_by_restarts,
    nothing_is_allowed,
    restart_step,
)
from support.stories import settings_of

HERE = Path(__file__).parent
FILES = [
    *sorted((HERE / "scenarios").glob("*.yaml")),
    *sorted((HERE.parent / "examples").rglob("*.yaml")),
    *sorted((HERE / "situations").glob("*.yaml")),
    *sorted((HERE / "install" / "stories").glob("*.yaml")),
]
FOUND = sorted((HERE / "oracle" / "found").glob("*.yaml"))
LAYERS = ("queues", "koordinator", "waves", "edits", "evict", "reserve", "all")


def of_file(path: Path) -> RunOften:
    """Stories say in the comment that opens them with which config, and until when, they run."""
    settings, until = settings_of(path)

    def run(moments: Sequence[float]) -> Result:
        documents = read_documents([str(path)])
        documents += [Document("restart.yaml", number, restart_step(at)) for number, at in enumerate(moments, 1)]
        simulation = Simulation(read_scenario(documents), parse(settings))
        return simulation.run(parse_duration(until) if until else None)

    return run


def of_documents(documents: list[dict[str, Any]], settings: dict[str, Any] | None) -> RunOften:
    def run(moments: Sequence[float]) -> Result:
        steps = [restart_step(at) for at in moments]
        return adapter.run_engine([*documents, *steps], adapter.configured(settings), compare.UNTIL)

    return run


def allowed_by_rules(documents: list[dict[str, Any]], settings: dict[str, Any] | None) -> Allows:
    """The oracle remembers what its own restarts may not lose: it decides the same."""

    def allows(moments: Sequence[float]) -> bool:
        return compare.disagreements([*documents, *map(restart_step, moments)], settings) == []

    return allows


def changed_by_each_restart(run: RunOften, allows: Allows = nothing_is_allowed) -> list[str]:
    return changed_by_restarts(lambda at: run(() if at is None else (at,)), allows=allows)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_i5_stories_and_examples_restarted(path: Path) -> None:
    assert changed_by_frequent_restarts(of_file(path)) == []


def _found(path: Path) -> object:
    open_bug = pytest.mark.xfail(reason="the engine is not fixed yet, see oracle/FOUND.md", strict=True)
    return pytest.param(path, id=path.stem, marks=[open_bug] if path.stem in rules.OPEN_RESTARTED else [])


@pytest.mark.parametrize("path", [_found(path) for path in FOUND])
def test_i5_what_the_oracle_found_restarted(path: Path) -> None:
    documents, settings, _ = command.load(str(path))
    assert changed_by_frequent_restarts(of_documents(documents, settings)) == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("layer", LAYERS)
def test_i5_random_scenarios_restarted(layer: str, seed: int) -> None:
    assert changed_by_frequent_restarts(of_documents(*generate.scenario(seed, layer))) == []


def test_i5_a_record_that_goes_with_its_pod_is_lost_as_the_rules_say() -> None:
    """The oldest pod of g0y is deleted at 33 s, and with it the record of the group's clock."""
    scenario = generate.scenario(25, "all")
    run, allows = of_documents(*scenario), allowed_by_rules(*scenario)
    assert "timeout" in "".join(changed_by_frequent_restarts(run))
    assert changed_by_frequent_restarts(run, allows) == []


@pytest.mark.soak
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_i5_stories_and_examples_restarted_at_every_instant(path: Path) -> None:
    assert changed_by_each_restart(of_file(path)) == []


@pytest.mark.soak
@pytest.mark.parametrize("layer", LAYERS)
def test_i5_random_scenarios_restarted_at_every_instant(layer: str, rounds: Iterator[int]) -> None:
    found = []
    for seed in rounds:
        scenario = generate.scenario(seed, layer)
        run, allows = of_documents(*scenario), allowed_by_rules(*scenario)
        whys = changed_by_frequent_restarts(run, allows) + changed_by_each_restart(run, allows)
        found += [f"{layer}/{seed}: {why}" for why in whys]
    assert found == []
