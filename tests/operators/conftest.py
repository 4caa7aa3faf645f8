"""What the tests of operators share. Everything under this folder carries the mark `operators`: `make operators` runs
it, `make test` and `make e2e` leave it out."""

from __future__ import annotations

import pytest

from e2e import binaries
from operators.selection import programs_of


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.operators)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds what the chosen tests need, and nothing else, where its progress is seen."""
    chosen = programs_of(item for item in session.items if item.get_closest_marker("operators"))
    if chosen and not session.config.option.collectonly and binaries.main(chosen):
        pytest.exit("not all programs are there", returncode=1)
