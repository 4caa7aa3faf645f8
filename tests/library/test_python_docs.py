"""Every Python block of docs/python.md runs, top to bottom, in one namespace."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_block_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = BLOCK.findall(text)
    assert len(blocks) == 8
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, "docs/python.md", "exec"), names)
    assert (tmp_path / "gantt.svg").read_text().startswith("<svg")
