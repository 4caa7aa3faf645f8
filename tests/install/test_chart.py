"""The Helm chart is made of the objects of `enbloc install`; `make helm` compares what Helm makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from enbloc.cli.main import cli
from enbloc.install import Settings, manifests
from enbloc.install.rights import DASHBOARD, rights


def _chart(directory: Path) -> dict[str, str]:
    done = CliRunner().invoke(cli, ["install", "--chart", str(directory)])
    assert (done.exit_code, done.output) == (0, "")
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


def test_every_object_is_in_the_chart_and_no_mark_is_left(tmp_path: Path) -> None:
    files = _chart(tmp_path)
    assert set(files) == {
        "Chart.yaml",
        "values.yaml",
        "crds/definitions.yaml",
        "templates/enbloc.yaml",
        "templates/NOTES.txt",
    }
    template = files["templates/enbloc.yaml"]
    for mark in ("-mark", "marks.example", "192.0.2.97", ": 97"):
        assert mark not in template, mark
    objects = manifests(Settings("", dashboard=True))
    definitions = [obj for obj in objects if obj["kind"] == "CustomResourceDefinition"]
    assert list(yaml.load_all(files["crds/definitions.yaml"], yaml.CSafeLoader)) == definitions
    others = [obj for obj in objects if obj["kind"] not in ("CustomResourceDefinition", "Namespace")]
    assert template.count("\nkind: ") == len(others)
    assert template.count("{{- if .Values.dashboard }}") == sum(
        (obj["metadata"].get("labels") or {}).get("app.kubernetes.io/component") == DASHBOARD for obj in others
    )


def test_the_default_values_are_the_defaults_of_install(tmp_path: Path) -> None:
    values = yaml.safe_load(_chart(tmp_path)["values.yaml"])
    printed = CliRunner().invoke(cli, ["install", "--no-merge"]).stdout
    objects = {(obj["kind"], obj["metadata"]["name"]): obj for obj in yaml.load_all(printed, yaml.CSafeLoader)}
    assert values["config"] == objects["ConfigMap", "enbloc-config"]["data"]["enbloc.yaml"]
    pod = objects["Deployment", "enbloc-scheduler"]["spec"]
    assert (values["replicas"], values["image"]) == (pod["replicas"], pod["template"]["spec"]["containers"][0]["image"])
    assert (values["dashboard"], values["apiServerCidrs"], values["ownerKinds"]) == (False, [], [])


def test_the_dashboard_may_only_read(tmp_path: Path) -> None:
    assert {verb for right in rights(DASHBOARD) for verb in right.verbs} == {"get", "list", "watch"}
    assert {"secrets", "configmaps"}.isdisjoint(right.resource for right in rights(DASHBOARD))
    objects = manifests(Settings("", dashboard=True))
    names = {(obj["kind"], obj["metadata"]["name"]) for obj in objects}
    assert {
        ("Deployment", "enbloc-dashboard"),
        ("Service", "enbloc-dashboard"),
        ("NetworkPolicy", "enbloc-dashboard"),
    } < names
    assert ("Role", "enbloc-dashboard") not in names
    assert not any("dashboard" in obj["metadata"]["name"] for obj in manifests(Settings("")))


@pytest.mark.parametrize("name", ["/proc/nothing", "/dev/null/x"])
def test_a_directory_that_cannot_be_written_is_one_line(name: str) -> None:
    done = CliRunner().invoke(cli, ["install", "--chart", name])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.stderr
