"""Options of `enbloc sim`: nodes without a file for them, a default run time, and exit codes for pipelines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from enbloc.cli.main import cli
from support import manifests as m


def sim(tmp_path: Path, documents: list[dict[str, Any]], *options: str) -> Result:
    file = tmp_path / "in.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return CliRunner().invoke(cli, ["sim", str(file), *options])


def test_nodes_of_a_shape(tmp_path: Path) -> None:
    gpus = m.gang("a", 4, extra={"nvidia.com/gpu": 8})
    done = sim(tmp_path, gpus, "--nodes", "4", "--node-resources", "cpu=64,memory=1Ti,nvidia.com/gpu=8", "-o", "json")
    [gang] = json.loads(done.stdout)["gangs"]
    assert gang["nodes"] == ["node-1", "node-2", "node-3", "node-4"]


def test_a_default_run_time(tmp_path: Path) -> None:
    done = sim(tmp_path, [m.pod("p")], "--nodes", "1", "--default-run-time", "90s")
    assert "Simulation finished at 1m30s." in done.stdout


@pytest.mark.parametrize(
    ("documents", "fail_on", "code"),
    [
        ([m.pod("p", 99)], "waiting", 1),
        ([m.pod("p", 99)], "rejected", 0),
        ([m.pod("p")], "waiting,rejected", 0),
        ([m.job("j", m.role("w", 1, minimum=2))], "rejected", 1),
        ([m.job("j", m.role("w", 1, minimum=2))], "waiting", 0),
    ],
)
def test_fail_on(tmp_path: Path, documents: list[dict[str, Any]], fail_on: str, code: int) -> None:
    assert sim(tmp_path, documents, "--nodes", "1", "--fail-on", fail_on).exit_code == code


def test_an_unknown_condition_to_fail_on_is_refused(tmp_path: Path) -> None:
    done = sim(tmp_path, [m.pod("p")], "--fail-on", "slow")
    assert done.exit_code == 2
    assert "--fail-on: 'slow' is none of waiting, rejected" in done.output


def test_strict_runs_nothing_that_lint_would_refuse(tmp_path: Path) -> None:
    held = m.pod("p", resourceClaims=[{"name": "gpu"}])
    assert sim(tmp_path, [held], "--nodes", "1").exit_code == 0
    done = sim(tmp_path, [held], "--nodes", "1", "--strict")
    assert done.exit_code == 1
    assert "spec.resourceClaims" in done.output


def test_n3_objects_without_effect_are_listed(tmp_path: Path) -> None:
    idle = {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": {"name": "plain"}, "spec": {}}
    done = sim(tmp_path, [idle], "--nodes", "1")
    said = "Objects without effect\n  JobFlow default/plain: no controller here acts on JobFlow of flow.volcano.sh"
    assert said in done.stdout


def test_n2_what_lint_warns_of_is_said_here_too(tmp_path: Path) -> None:
    queue = m.queue("q", wieght=1)
    queue["metadata"]["annotations"] = {"volcano.sh/hierarchy": "root/x"}
    done = sim(tmp_path, [queue], "--nodes", "1")
    said = done.stdout.partition("Warnings\n")[2]
    assert "Queue q: spec.wieght: is not known; did you mean weight?" in said
    assert said.count("volcano.sh/hierarchy") == 1  # the Warning event says the same
    found = json.loads(sim(tmp_path, [queue], "--nodes", "1", "-o", "json").stdout)["warnings"]
    assert [one["field"] for one in found] == ["spec.wieght", "metadata.annotations[volcano.sh/hierarchy]"]


def test_options_of_whatif_may_stand_after_the_change(tmp_path: Path) -> None:
    file = tmp_path / "now.yaml"
    file.write_text(yaml.safe_dump_all([m.node("n1"), m.node("n2"), m.job("j", m.role("w", 1))]))
    before = CliRunner().invoke(cli, ["whatif", "--from", str(file), "-o", "json", "drain", "n1"])
    after = CliRunner().invoke(cli, ["whatif", "drain", "n1", "--from", str(file), "-o", "json"])
    assert json.loads(after.stdout)["whatif"] == "node n1 drained"
    assert after.stdout == before.stdout
    bad = CliRunner().invoke(cli, ["whatif", "drain", "n1", "--from", str(file), "--until", "soon"])
    assert (bad.exit_code, "--until: 'soon' is not a duration" in bad.stderr) == (2, True)
