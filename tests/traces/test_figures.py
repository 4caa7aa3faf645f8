"""The script that writes the figures of docs/simulation.md."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("simulation_figures", ROOT / "scripts" / "simulation_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_row_is_replaced_in_its_place_and_the_rest_stays() -> None:
    script = _script()
    page = "before\n<!-- figures: sdsc -->\nold\n| `sjf` | users | 1 |\n<!-- end -->\nafter\n"
    fifo, *_, sjf = (row for row in script.SECTIONS["sdsc"].rows if row.key.startswith(("| `fifo` ", "| `sjf` ")))
    written = script.write_row(page, "sdsc", fifo, "2 | 3 | 4")
    assert written.splitlines()[3:-2] == ["|---|---|---|---|---|", f"{fifo.key}2 | 3 | 4 |", "| `sjf` | users | 1 |"]
    assert written.startswith("before\n<!-- figures: sdsc -->\n| policy |")
    assert written.endswith("<!-- end -->\nafter\n")
    again = script.write_row(written, "sdsc", sjf, "5 | 6 | 7")
    assert again == written.replace("| `sjf` | users | 1 |", f"{sjf.key}5 | 6 | 7 |")
    with pytest.raises(ValueError, match="has no section speed"):
        script.write_row(page, "speed", fifo, "")


def test_the_page_has_every_section() -> None:
    script, page = _script(), (ROOT / "docs" / "simulation.md").read_text()
    for name in script.SECTIONS:
        assert f"<!-- figures: {name} -->" in page
