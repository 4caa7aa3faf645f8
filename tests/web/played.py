"""Clusters that were played to some instant, for the tests of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from enbloc import config
from enbloc.cluster.embedded.api.store import Store
from enbloc.inspect.overview import KINDS
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND
from enbloc.web.pages import Pages

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


def played(seconds: int = 30, *more: Path) -> Store:
    """The quickstart, and files with more objects: resnet runs, bert and giant wait."""
    return run([QUICKSTART, *more], seconds)


def run(files: Sequence[Path], seconds: int) -> Store:
    simulation = Simulation(read_scenario(read_documents([str(file) for file in files])), config.parse(None))
    simulation.run(seconds * SECOND)
    return simulation._store


def pages_of(store: Store) -> Pages:
    return Pages(
        lambda: {kind: store.list(kind)[0] for kind in KINDS},
        dict,
        events=lambda: store.list("Event")[0],
        version=lambda: store.version,
    )
