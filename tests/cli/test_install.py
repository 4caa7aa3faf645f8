"""`enbloc install` where a cluster has definitions already: read from the API, merged or left, and named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from cluster.embedded.http.serving import served_in_background
from enbloc import config
from enbloc.api.meta import Obj
from enbloc.cli.main import cli
from enbloc.install.definitions import DEFINED, definitions
from enbloc.install.merging import field_paths
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation

NAME = "podgroups.scheduling.volcano.sh"


def theirs() -> Obj:
    """A definition of Volcano's with a field that we do not know, and without most that we do."""
    spec = {"type": "object", "properties": {"minMember": {"type": "integer"}, "novel": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {"group": "scheduling.volcano.sh", "names": names, "scope": "Namespaced", "versions": [version]},
    }


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """A cluster with one definition of another project that lacks fields, and one that lacks none."""
    simulation = Simulation(read_scenario([]), config.parse(None))
    complete = dict(zip(DEFINED, definitions({}), strict=True))["Queue.scheduling.volcano.sh"]
    for one in (theirs(), complete):
        simulation.store.create(one)
    with served_in_background(tmp_path, simulation.store) as (path, _):
        yield path


def install(*arguments: str) -> tuple[Result, dict[str, Any]]:
    done = CliRunner().invoke(cli, ["install", *arguments])
    assert done.exit_code == 0, done.output
    objects = [one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "CustomResourceDefinition"]
    return done, {one["metadata"]["name"]: one for one in objects}


def test_v1_plain_install_narrows_no_definition_that_is_there(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    done, found = install()
    assert set(field_paths(theirs())) < set(field_paths(found[NAME]))
    assert f"{NAME} exists: merged, " in done.stderr
    assert "queues.scheduling.volcano.sh" not in found
    assert "queues.scheduling.volcano.sh exists and has every field that is read here: left as it is" in done.stderr


def test_without_a_cluster_it_says_that_nothing_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    done, found = install()
    assert len(found) == len(DEFINED)
    assert "are not merged: no cluster" in done.stderr


def test_no_merge_asks_no_cluster(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    done, found = install("--no-merge")
    assert "novel" not in str(found[NAME])
    assert done.stderr == ""


def test_merge_needs_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    done = CliRunner().invoke(cli, ["install", "--merge"])
    assert done.exit_code == 2
    assert "no cluster" in done.stderr
