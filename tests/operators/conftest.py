"""What the tests of operators share. Everything under this folder carries the mark `operators`: `make operators` runs
it, `make test` and `make e2e` leave it out."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.operators)
