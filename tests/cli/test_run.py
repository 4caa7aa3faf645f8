"""`enbloc run` says what is wrong in one line, and ends with 2."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from enbloc.cli.main import cli


@pytest.mark.parametrize(
    "arguments, reported",
    [
        (["--components", "sched"], "unknown component 'sched'"),
        (["--components", ","], "no component"),
        (
            ["--components", "dashbord"],
            "unknown component 'dashbord' (there are: scheduler, controllers, webhook, dashboard)",
        ),
        (["--kubeconfig", "/nowhere/config"], "there is no such kubeconfig"),
        (["--config", "/nowhere/enbloc.yaml"], "/nowhere/enbloc.yaml"),
    ],
)
def test_bad_usage_is_reported_in_one_line(arguments: list[str], reported: str) -> None:
    done = CliRunner().invoke(cli, ["run", *arguments])
    assert done.exit_code == 2
    assert reported in done.output
    assert len(done.output.strip().splitlines()) == 1


def test_a_context_that_does_not_exist(tmp_path: object) -> None:
    path = f"{tmp_path}/config"
    with open(path, "w") as file:
        file.write('{"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}')
    done = CliRunner().invoke(cli, ["run", "--kubeconfig", path, "--context", "moon"])
    assert done.exit_code == 2
    assert "moon" in done.output
