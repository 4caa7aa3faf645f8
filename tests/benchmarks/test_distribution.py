"""What is installed and what is shipped: benchmarks are in the archive of the sources, and in no wheel."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_archive_of_the_sources_has_the_benchmarks_and_the_wheel_has_not(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    (wheel,), (archive,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    installed = zipfile.ZipFile(wheel).namelist()
    assert {"enbloc/cli/main.py", "enbloc/api/protobuf_messages.txt"} <= set(installed)
    assert not [name for name in installed if "bench" in name]
    with tarfile.open(archive) as opened:
        shipped = {name.partition("/")[2] for name in opened.getnames()}
    assert {"benchmarks/__main__.py", "benchmarks/growth.json", "benchmarks/peers/notes.md"} <= shipped
