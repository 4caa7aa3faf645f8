"""`enbloc gangs`, `queues`, `nodes`, `explain` against a cluster that KUBECONFIG points at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cluster.embedded.http.serving import served_in_background
from enbloc import config
from enbloc.cli.main import cli
from enbloc.scenario.documents import read_documents
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

pytest.importorskip("enbloc.cluster.kube.cluster", reason="the adapter for real clusters is not part of this tree")
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The quickstart after half a minute, served."""
    simulation = Simulation(read_scenario(read_documents([str(QUICKSTART)])), config.parse(None))
    simulation.run(30 * SECOND)
    with served_in_background(tmp_path_factory.mktemp("served"), simulation._store) as (path, _):
        yield path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def ask(kubeconfig: Path, *arguments: str) -> Any:
    done = run(*arguments, "--kubeconfig", str(kubeconfig), "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_everything_as_json(kubeconfig: Path) -> None:
    assert [gang["gang"] for gang in ask(kubeconfig, "gangs")["gangs"]] == [
        "default/bert",
        "default/giant",
        "default/resnet",
    ]
    assert [queue["queue"] for queue in ask(kubeconfig, "queues")["queues"]] == ["default", "root"]
    assert [node["pods"] for node in ask(kubeconfig, "nodes")["nodes"]] == [2, 2]
    reported = ask(kubeconfig, "explain", "default/giant")
    assert reported["ahead"] == ["default/bert"]
    assert "requests 12 cpu" in reported["sentence"]


def test_everything_for_people(kubeconfig: Path) -> None:
    for command, word in (("gangs", "default/bert"), ("queues", "cpu 14"), ("nodes", "8/8")):
        done = run(command, "--kubeconfig", str(kubeconfig))
        assert done.exit_code == 0, done.output
        assert word in done.output
    done = run("explain", "default/bert", "--kubeconfig", str(kubeconfig))
    assert done.output.startswith("default/bert: It waits: not enqueued: requests 6 cpu, 2 of 16 available.")
    assert "none: it is first in its queue" in done.output


def test_a_gang_that_is_not_there_is_exit_code_1(kubeconfig: Path) -> None:
    done = run("explain", "default/nobody", "--kubeconfig", str(kubeconfig))
    assert done.exit_code == 1
    assert "there is no gang default/nobody" in done.output


def test_a_kubeconfig_that_leads_nowhere_is_exit_code_2(tmp_path: Path) -> None:
    done = run("gangs", "--kubeconfig", str(tmp_path / "nothing"))
    assert done.exit_code == 2
    assert "Traceback" not in done.output
