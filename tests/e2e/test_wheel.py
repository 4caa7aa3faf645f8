"""What a user gets: the wheel in an empty environment, every command from an empty directory, and a release."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_MB = 170
"""The environment of a user."""
COMMANDS = (
    *("up", "sim", "run", "install", "config", "gangs", "queues", "nodes", "explain", "whatif", "lint", "replay"),
    *("snapshot", "dashboard", "capture", "replay-recording", "shadow", "completion"),
)


class Installed:
    """The command of an environment that has the wheel and what it depends on."""

    def __init__(self, wheel: Path, folder: Path) -> None:
        self.wheel, self.environment, self.home = wheel, folder / "environment", folder / "empty"
        self.home.mkdir()
        subprocess.run([sys.executable, "-m", "venv", str(self.environment)], check=True, timeout=300)
        python = str(self.environment / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(wheel)], check=True, timeout=600)

    @property
    def surroundings(self) -> dict[str, str]:
        """Nothing of this checkout: no PYTHONPATH, no KUBECONFIG, an empty home."""
        return {"PATH": f"{self.environment / 'bin'}:{os.defpath}", "HOME": str(self.home)}

    def run(self, *arguments: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            ["enbloc", *arguments], cwd=self.home, env=self.surroundings, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(wheel, tmp_path_factory.mktemp("user"))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(installed: Installed, command: str) -> None:
    assert f"Usage: enbloc {command}" in installed.run(command, "--help")


def test_the_commands_are_those_of_the_help(installed: Installed) -> None:
    listed = {
        line.split()[0] for line in installed.run("--help").splitlines() if line.startswith("  ") and line[2] != " "
    }
    assert set(COMMANDS) <= listed


def test_commands_work_without_a_clone(installed: Installed) -> None:
    manifest = installed.home / "train.yaml"
    shutil.copy(ROOT / "examples" / "train.yaml", manifest)
    answer = json.loads(installed.run("sim", manifest, "--nodes", "2", "-o", "json"))
    assert [one["gang"] for one in answer["pending"]] == ["default/train"]
    installed.run("lint", manifest)
    installed.run("config")
    installed.run("completion", "bash")
    assert "kind: CustomResourceDefinition" in installed.run("install", "--no-merge", "--image", "example/enbloc:1")
    installed.run("install", "--chart", installed.home / "chart")
    (installed.home / "jobs.csv").write_text("id,submit,duration,gpus\na,0,10,1\nb,5,10,1\n")
    assert "2 jobs on 1 node" in installed.run("replay", "jobs.csv", "--nodes", "1")
    installed.run("gangs", code=2)  # no cluster: one line, no traceback


def test_up_serves_its_page_and_ends_on_ctrl_c(installed: Installed) -> None:
    command = ["enbloc", "up", "--port", "0", "--load", str(ROOT / "examples" / "train.yaml")]
    up = subprocess.Popen(
        command,
        cwd=installed.home,
        env=installed.surroundings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert up.stdout is not None
        assert up.stdout.readline().startswith("enbloc is up: http://127.0.0.1:")
        kubeconfig = next(line for line in up.stdout if "KUBECONFIG=" in line).split("KUBECONFIG=")[1].strip()
        cluster = installed.surroundings | {"KUBECONFIG": kubeconfig}
        for asked in (["gangs"], ["queues"], ["nodes"], ["explain", "default/train"], ["snapshot"]):
            done = subprocess.run(["enbloc", *asked], env=cluster, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
    finally:
        up.send_signal(signal.SIGINT)
        _, errors = up.communicate(timeout=60)
    assert up.returncode == 0, errors


def test_the_environment_is_small(installed: Installed) -> None:
    size_kb = int(
        subprocess.run(["du", "-sk", installed.environment], capture_output=True, check=True).stdout.split()[0]
    )
    print(f"environment of a user: {size_kb / 1024:.0f} MB")
    assert size_kb <= MOST_MB * 1024


def test_uvx_runs_the_wheel(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "uv"], check=True, timeout=300)
    python = tmp_path / "uv" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "uv"], check=True, timeout=600)
    command = [str(tmp_path / "uv" / "bin" / "uvx"), "--from", str(wheel), "enbloc", "--version"]
    environment = os.environ | {"UV_CACHE_DIR": str(tmp_path / "cache"), "UV_PYTHON": sys.executable}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("enbloc"), done.stderr


def test_a_release_is_reproducible(tmp_path: Path) -> None:
    """But for the image, which `make image` builds: from one commit, twice, in two clones."""
    assert _release(tmp_path / "a") == _release(tmp_path / "b")


def _release(clone: Path) -> Sequence[str]:
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True, timeout=120)
    (clone / ".venv").symlink_to(Path(sys.executable).parent.parent)
    done = subprocess.run(
        [clone / "scripts" / "release.sh"],
        env=os.environ | {"IMAGE": "no"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    sums = (clone / "dist" / "SHA256SUMS").read_text().splitlines()
    assert sorted(Path(line.split()[1]).suffix for line in sums) == [".gz", ".tgz", ".whl"]
    return sums
