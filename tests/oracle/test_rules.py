"""docs/semantics.md is what the oracle implements: every rule has its place in it, or a reason why not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from oracle import rules

HERE = Path(__file__).parent
RULES = re.findall(r"^- \*\*([A-Z]\d+)\b", (HERE.parents[1] / "docs" / "semantics.md").read_text(), re.MULTILINE)
SOURCES = [path for path in HERE.glob("*.py") if not path.name.startswith("test_") and path.name != "rules.py"]
CITED = {name for path in SOURCES for name in re.findall(r"\b([A-Z]\d{1,2})\b", path.read_text())}
NAMED = {
    name.upper() for path in SOURCES for name in re.findall(r"^def ([a-z]\d{1,2})_", path.read_text(), re.MULTILINE)
}
EXCUSED = {**rules.SHARED, **rules.BY_COMPARISON, **rules.NOT_WRITTEN}


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_is_written_or_says_why_not(rule: str) -> None:
    assert rule in CITED or rule in EXCUSED


def test_what_is_excused_is_a_rule_and_not_written() -> None:
    assert not set(EXCUSED) - set(RULES)
    assert not set(rules.NOT_WRITTEN) & NAMED


def test_functions_are_named_after_rules_that_exist() -> None:
    assert not NAMED - set(RULES)
