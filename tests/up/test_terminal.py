"""The live view on a real terminal (tmux): it follows a change of size, and leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"
pytestmark = [pytest.mark.soak, pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")]
Tmux = Callable[..., str]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    def run(*arguments: str) -> str:
        command = ["tmux", "-S", str(tmp_path / "socket"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout

    code = "from enbloc.cli.main import main; main()"
    up = f"{sys.executable} -c '{code}' up --port 0 --load {QUICKSTART} 2>{tmp_path}/errors; echo over $?; sleep 60"
    environment = ["-e", f"HOME={tmp_path}", "-e", f"PATH={os.environ['PATH']}"]
    run("new-session", "-d", "-x", "80", "-y", "24", *environment, up)
    yield run
    run("kill-server")


def _until(tmux: Tmux, has: Callable[[list[str]], bool]) -> list[str]:
    end_s = time.monotonic() + 60
    lines: list[str] = []
    while time.monotonic() < end_s:
        lines = tmux("capture-pane", "-p").split("\n")
        if has(lines):
            return lines
        time.sleep(0.2)
    raise AssertionError("\n".join(lines))


def _has(text: str) -> Callable[[list[str]], bool]:
    return lambda lines: any(text in line for line in lines)


def test_resizing_leaves_no_garbage_and_the_end_restores_the_terminal(tmux: Tmux) -> None:
    _until(tmux, _has("default/bert"))
    for columns, height in ((50, 15), (120, 40), (80, 24), (30, 8), (100, 30)):
        tmux("resize-window", "-x", str(columns), "-y", str(height))
        lines = _until(tmux, lambda lines: lines[0].startswith("enbloc is up") and _has("default/bert")(lines))
        assert sum("enbloc is up" in line for line in lines) == 1
    tmux("send-keys", "C-c")
    lines = _until(tmux, _has("over 0"))
    assert [line for line in lines if line] == ["enbloc has stopped.", "over 0"]
