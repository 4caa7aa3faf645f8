"""I5: a scheduler that starts anew decides what the one before it would have decided: at every instant of every story,
example and random scenario at which something happened. `make test` restarts at a few of them, `make soak` at all.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from enbloc.config import parse
from enbloc.scenario.documents import Document, read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.result import Result
from enbloc.sim.simulation import Simulation
from enbloc.units import parse_duration
from oracle import __main__ as command
from oracle import compare, generate
from support.restarts import Run, changed_by_restarts, restart_step

HERE = Path(__file__).parent
FILES = [*sorted((HERE / "scenarios").glob("*.yaml")), *sorted((HERE.parent / "examples").glob("*.yaml"))]
FOUND = sorted((HERE / "oracle" / "found").glob("*.yaml"))
LAYERS = ("koordinator", "waves", "edits", "evict", "reserve")

SAMPLE = 4
"""At how many instants `make test` restarts the scheduler, in a run of its own each."""
SOAK_SEEDS = int(os.environ.get("ENBLOC_RESTART_SEEDS", "200"))


def of_file(path: Path) -> Run:
    """Stories say in the comment that opens them with which config, and until when, they run."""
    header = path.read_text().partition("\n\n")[0]
    config = re.search(r"^# config: (.+)$", header, re.MULTILINE)
    until = re.search(r"^# until: (.+)$", header, re.MULTILINE)

    def run(at: float | None) -> Result:
        documents = read_documents([str(path)])
        if at is not None:
            documents.append(Document("restart.yaml", 1, restart_step(at)))
        simulation = Simulation(read_scenario(documents), parse(yaml.safe_load(config[1]) if config else None))
        return simulation.run(parse_duration(until[1]) if until else None)

    return run


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_i5_stories_and_examples_restarted(path: Path) -> None:
    assert changed_by_restarts(of_file(path), SAMPLE) == []


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_i5_what_the_oracle_found_restarted(path: Path) -> None:
    documents, settings, _ = command.load(str(path))
    assert compare.restarts(documents, settings, SAMPLE) == []


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("layer", LAYERS)
def test_i5_random_scenarios_restarted(layer: str, seed: int) -> None:
    assert compare.restarts(*generate.scenario(seed, layer), SAMPLE) == []


@pytest.mark.soak
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_i5_stories_and_examples_restarted_at_every_instant(path: Path) -> None:
    assert changed_by_restarts(of_file(path)) == []


@pytest.mark.soak
@pytest.mark.parametrize("layer", LAYERS)
def test_i5_random_scenarios_restarted_at_every_instant(layer: str) -> None:
    found = []
    for seed in range(SOAK_SEEDS):
        found += [f"{layer}/{seed}: {why}" for why in compare.restarts(*generate.scenario(seed, layer))]
    assert found == []
