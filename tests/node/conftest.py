"""What the tests on a real node share: programs, images, and the node with Enbloc's image on it.

Everything under this folder carries the mark `node`, which all but `make e2e-node` leave out.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from e2e import binaries
from node.images import build_busybox, build_pause
from node.machine import Machine, in_own_namespaces
from node.programs import PROGRAMS

HERE = Path(__file__).parent
ARCHIVE = HERE.parents[1] / "build" / "enbloc-image.tar"
NEEDED = {
    "buildah": "buildah",
    "busybox": "busybox-static",
    "containerd": "containerd",
    "ctr": "containerd",
    "ip": "iproute2",
    "iptables": "iptables",
    "runc": "runc",
}


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.node)


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A node that is Ready and has the three images. The tests run in the order of the file: it is one story."""
    if not in_own_namespaces():
        pytest.skip("a real node runs in namespaces of its own: `make e2e-node` makes them")
    lacking = sorted({package for tool, package in NEEDED.items() if shutil.which(tool) is None})
    assert not lacking, f"install Debian's packages: {' '.join(lacking)}"
    assert ARCHIVE.is_file(), "there is no image: `make image` builds it"
    programs = {program.name: binaries.path(program) for program in PROGRAMS}
    absent = [name for name, path in programs.items() if not path.is_file() and name != "helm"]
    assert not absent, f"not built: {', '.join(absent)}; `make e2e-node` does it"
    folder = tmp_path_factory.mktemp("node")
    images = [ARCHIVE, build_pause(folder / "images"), build_busybox(folder / "images")]
    try:
        with Machine(programs, folder).running() as started:
            for archive in images:
                started.import_image(archive)
            yield started
    finally:
        if not os.environ.get("ENBLOC_KEEP"):
            shutil.rmtree(folder / "containerd", ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    machine = getattr(item, "funcargs", {}).get("machine")
    if report.failed and isinstance(machine, Machine):
        report.sections.append(("logs of the node", machine.plane.story()))
        shown = machine.plane.kubectl("get", "pods,events", "-A", "-o", "wide", check=False, with_errors=True)
        report.sections.append(("pods and events", shown))
    return report
