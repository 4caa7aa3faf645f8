"""What the end-to-end tests share: built programs, a control plane a module, and its logs when a test fails.

Everything under this folder carries the mark `e2e`, which `make test` leaves out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from e2e import binaries
from e2e.control_plane import ControlPlane


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def programs() -> Mapping[str, Path]:
    """Where the programs of a control plane are; built if they are not there yet."""
    try:
        return binaries.ensure()
    except binaries.Unavailable as why:
        pytest.fail(str(why), pytrace=False)


@pytest.fixture(scope="module")
def plane(programs: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane for the tests of one module. They may break it, and mend what they broke."""
    with ControlPlane(programs, tmp_path_factory.mktemp("plane")) as started:
        yield started


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        for name, value in getattr(item, "funcargs", {}).items():
            if isinstance(value, ControlPlane):
                report.sections.append((f"logs of {name}", value.story()))
    return report
