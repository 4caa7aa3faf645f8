"""Every example runs as the README says, and does what its comments promise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
ENBLOC = [sys.executable, "-c", "from enbloc.cli.main import main; main()"]


def enbloc(*arguments: str | Path) -> str:
    done = subprocess.run([*ENBLOC, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_good_manifests_and_run(example: Path) -> None:
    enbloc("lint", example)
    enbloc("sim", example)


def test_quickstart_does_what_it_promises() -> None:
    result: dict[str, Any] = json.loads(enbloc("sim", EXAMPLES / "quickstart.yaml", "-o", "json"))
    bound: dict[str, set[float]] = {}
    for line in result["timeline"]:
        if line["what"] == "bound":
            bound.setdefault(line["name"].split("-")[0], set()).add(line["t"])
    assert bound == {"resnet": {0.0}, "bert": {60.0}}
    (giant,) = result["pending"]
    assert giant["gang"] == "default/giant"
    assert "cpu" in json.dumps(giant)
    assert result["ended"] == "idle"


def test_quickstart_reads_well() -> None:
    text = enbloc("sim", EXAMPLES / "quickstart.yaml")
    for words in ("Done: after 1m30s", "What ran", "default/resnet", "What still waits, and why", "default/giant: "):
        assert words in text
