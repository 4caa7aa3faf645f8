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


def test_a_section_is_replaced_and_the_rest_stays() -> None:
    script = _script()
    page = "before\n<!-- figures: sdsc -->\nold\nold\n<!-- end -->\nafter\n<!-- figures: muri -->\n<!-- end -->\n"
    written = script.write_section(page, "sdsc", ["| a |", "|---|"])
    assert written == page.replace("old\nold", "| a |\n|---|")
    with pytest.raises(ValueError, match="has no section speed"):
        script.write_section(page, "speed", [])


def test_the_page_has_a_section_for_what_is_known() -> None:
    page = (ROOT / "docs" / "simulation.md").read_text()
    for name in ("sdsc", "muri"):
        assert f"<!-- figures: {name} -->" in page
