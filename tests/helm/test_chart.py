"""What Helm makes of the chart is what `enbloc install` prints with the same options. Run by `make helm`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from e2e import binaries
from enbloc.cli.main import cli
from helm.programs import HELM

pytestmark = pytest.mark.helm


@pytest.fixture(scope="module")
def helm() -> str:
    given = os.environ.get("HELM", "")
    path = Path(given) if given else binaries.path(HELM)
    if not path.is_file():
        pytest.skip("helm is not built: `make helm` does it")
    return str(path)


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("chart")
    done = CliRunner().invoke(cli, ["install", "--chart", str(directory)])
    assert done.exit_code == 0, done.output
    return directory


def _objects(text: str) -> dict[tuple[str, str], Any]:
    return {
        (obj["kind"], obj["metadata"]["name"]): obj
        for obj in yaml.load_all(text, yaml.CSafeLoader)
        if obj and obj["kind"] != "Namespace"
    }


def _installed(*options: str) -> dict[tuple[str, str], Any]:
    done = CliRunner().invoke(cli, ["install", "--no-merge", *options])
    assert done.exit_code == 0, done.output
    return _objects(done.stdout)


def _templated(
    helm: str, chart: Path, namespace: str, values: dict[str, Any], file: Path
) -> dict[tuple[str, str], Any]:
    file.write_text(json.dumps(values))
    command = [
        helm,
        "template",
        "enbloc",
        str(chart),
        "--namespace",
        namespace,
        "--kube-version",
        "1.36.0",  # a helm that was built without Helm's own flags takes another one for granted
        "--include-crds",
        "--values",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return _objects(done.stdout)


def test_helm_finds_no_fault_in_the_chart(helm: str, chart: Path) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", str(chart)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_defaults_give_what_install_prints(helm: str, chart: Path, tmp_path: Path) -> None:
    found = _templated(helm, chart, "enbloc-system", {}, tmp_path / "values.json")
    wanted = _installed()
    assert found.keys() == wanted.keys()
    assert [key for key in wanted if found[key] != wanted[key]] == []


def test_values_are_the_options_of_install(helm: str, chart: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("schedulerNames: [enbloc, volcano]\nactions: 'enqueue, allocate'\n")
    image = f"registry.example/enbloc@sha256:{'0' * 64}"
    options = ["--namespace", "gangs", "--image", image, "--replicas", "3", "--config", str(config), "--dashboard"]
    options += ["--api-server-cidr", "10.0.0.5/32", "--api-server-cidr", "10.0.1.0/24"]
    wanted = _installed(*options)
    values = {
        "image": image,
        "replicas": 3,
        "dashboard": True,
        "apiServerCidrs": ["10.0.0.5/32", "10.0.1.0/24"],
        "schedulerNames": ["enbloc", "volcano"],
        "config": wanted["ConfigMap", "enbloc-config"]["data"]["enbloc.yaml"],
    }
    found = _templated(helm, chart, "gangs", values, tmp_path / "values.json")
    assert found.keys() == wanted.keys()
    assert [key for key in wanted if found[key] != wanted[key]] == []
    assert ("Deployment", "enbloc-dashboard") in found


def test_kinds_grouped_by_owner_get_their_rights(helm: str, chart: Path, tmp_path: Path) -> None:
    values = {"ownerKinds": [{"group": "ray.io", "plural": "rayclusters"}]}
    found = _templated(helm, chart, "enbloc-system", values, tmp_path / "values.json")
    rules = found["ClusterRole", "enbloc-scheduler"]["rules"]
    assert {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "list", "watch"]} in rules
