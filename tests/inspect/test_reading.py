"""A reading that is brought up to date says the same as one that starts anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from enbloc.config import parse
from enbloc.inspect.gangs import Reading
from enbloc.inspect.overview import KINDS, overview_of
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation

ROOT = Path(__file__).parents[2]
STORIES = sorted([*(ROOT / "examples").glob("*.yaml"), *(ROOT / "tests" / "scenarios").glob("*.yaml")])


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.stem)
def test_reading_that_is_updated_equals_a_new_one(story: Path) -> None:
    """After every instant of the story, in every row."""
    simulation = Simulation(read_scenario(read_documents([str(story)])), parse(None))
    store = simulation._store
    updated = Reading({})
    compared = []

    def compare(*_: object) -> None:
        objects = {kind: store.list(kind)[0] for kind in KINDS}
        updated.update(objects)
        assert overview_of(updated) == overview_of(Reading(objects))
        compared.append(len(objects["Pod"]))

    simulation.run(600 * 10**9, compare)
    assert compared
