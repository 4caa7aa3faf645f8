"""Gangs, queues and nodes in rows, out of what a cluster lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from enbloc import config
from enbloc.facts.overview import KINDS, Overview, explain, read_overview, shown
from enbloc.facts.tables import explanation_lines, gangs_table, nodes_table, queues_table
from enbloc.sim.documents import read_documents
from enbloc.sim.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


def overview_at(seconds: int) -> Overview:
    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse(None))
    simulation.run(seconds * SECOND)
    store = simulation._store
    return read_overview({kind: store.list(kind)[0] for kind in KINDS})


def text_of(renderable: Any) -> str:
    console = Console(width=140, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_the_quickstart_at_a_glance() -> None:
    overview = overview_at(30)
    assert [(gang.gang, gang.state) for gang in overview.gangs] == [
        ("default/bert", "Waiting"),
        ("default/giant", "Waiting"),
        ("default/resnet", "Running"),
    ]
    bert = overview.gangs[0]
    assert (bert.minimum, bert.queue, bert.dialect) == (3, "default", "volcano")
    assert "it needs 6 cpu, and 2 are free of 16" in bert.message
    default = next(queue for queue in overview.queues if queue.queue == "default")
    assert (default.running, default.waiting, default.used["cpu"]) == (1, 2, 14 * SECOND)
    assert [(node.node, node.pods, node.resources["cpu"].percent) for node in overview.nodes] == [
        ("node-1", 2, 75),
        ("node-2", 2, 100),
    ]
    assert "default/bert" in text_of(gangs_table(overview, 0))
    assert "cpu 14" in text_of(queues_table(overview))
    assert "8/8" in text_of(nodes_table(overview, bars=True))
    assert shown(overview)["nodes"][1]["resources"]["cpu"] == {"used": "8", "room": "8", "percent": 100}


def test_a_gang_is_explained() -> None:
    overview = overview_at(30)
    told = explain(overview, "default/giant")
    assert told is not None
    assert told.sentence == "It waits: not let in: it needs 12 cpu, and 2 are free of 16."
    assert told.ahead == ["default/bert"]
    assert told.numbers["freeInCluster"]["cpu"] == "2"
    assert any("default/bert" in line for line in explanation_lines(told))
    running = explain(overview, "resnet")
    assert running is not None
    assert running.sentence.startswith("It runs: 4 pods on node-1 (2), node-2 (2)")
    assert explain(overview, "default/nobody") is None
    over = explain(overview_at(70), "default/resnet")
    assert over is not None
    assert over.sentence == "It is over: 4 pods succeeded, 0 failed."
