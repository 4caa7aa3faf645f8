"""Building and keeping programs, with a `go` that only pretends: what is built when, and what a killed build leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e import binaries

PRETENDS = """#!/bin/sh
echo "$@" >> "$CALLS"
while [ $# -gt 1 ]; do [ "$1" = -o ] && out="$2"; shift; done
echo some/package >&2
echo half > "$out"
[ -z "$SLOW" ] || sleep 60
[ -z "$FAILS" ] || { echo "no such module" >&2; exit 1; }
echo whole > "$out"
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and a `go` that writes down how it was called."""
    (tmp_path / "bin").mkdir()
    go = tmp_path / "bin" / "go"
    go.write_text(PRETENDS)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ENBLOC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    return tmp_path / "calls"


def test_builds_once(calls: Path) -> None:
    places = binaries.ensure()
    assert {path.read_text() for path in places.values()} == {"whole\n"}
    assert len(calls.read_text().splitlines()) == len(binaries.PROGRAMS)
    assert binaries.ensure() == places
    assert len(calls.read_text().splitlines()) == len(binaries.PROGRAMS)


def test_builds_what_is_missing(calls: Path) -> None:
    binaries.ensure()["kwok"].unlink()
    assert [program.name for program in binaries.missing()] == ["kwok"]
    calls.unlink()
    binaries.ensure()
    assert calls.read_text().rstrip().endswith("/cmd/kwok")


def test_failed_build_says_why_and_leaves_nothing(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "yes")
    with pytest.raises(binaries.Unavailable, match="no such module"):
        binaries.ensure()
    assert len(binaries.missing()) == len(binaries.PROGRAMS)


def test_killed_build_leaves_nothing_that_looks_whole(calls: Path) -> None:
    build = subprocess.Popen(
        [sys.executable, binaries.__file__], env={**os.environ, "SLOW": "yes"}, start_new_session=True
    )
    end = time.monotonic() + 10
    while not calls.exists():
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.2)
    os.killpg(build.pid, signal.SIGKILL)
    build.wait(10)
    assert len(binaries.missing()) == len(binaries.PROGRAMS)
    assert {path.read_text() for path in binaries.ensure().values()} == {"whole\n"}
    left = [path for path in binaries.cache().rglob("*") if path.is_file() and path.read_text() == "half\n"]
    assert left == []


def test_without_go_it_says_what_to_do(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, binaries.__file__],
        env={"PATH": str(tmp_path), "ENBLOC_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 1
    assert "kube-apiserver" in done.stderr
    assert "install Go" in done.stderr
    assert "Traceback" not in done.stderr
