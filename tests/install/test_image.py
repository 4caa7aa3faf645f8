"""The image: built of pinned packages, from here alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from enbloc.install.manifests import USER_ID

ROOT = Path(__file__).parent.parent.parent


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / file).read_text().splitlines()
    return dict(re.findall(r"^([\w.-]+)==([^ ;]+)", "\n".join(lines), re.MULTILINE))


def test_the_image_has_what_was_tested() -> None:
    image, tested = pins("image.txt"), pins("lock.txt")
    assert image.items() <= tested.items()
    assert {"aiohttp", "cryptography", "msgspec", "numpy"} <= image.keys()
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & image.keys()


def test_only_what_running_needs_is_left_in_the_image() -> None:
    """Both builds take the packages away that only building needs."""
    needed: set[str] = set()
    waiting = ["enbloc"]
    while waiting:
        for text in metadata.requires(waiting.pop()) or ():
            asked = Requirement(text)
            name = canonicalize_name(asked.name)
            if name not in needed and (asked.marker is None or asked.marker.evaluate({"extra": ""})):
                needed.add(name)
                waiting.append(name)
    building = pins("image.txt").keys() - needed
    script = (ROOT / "scripts" / "image.sh").read_text()
    assert set(re.findall(r"building='\^\((.*)\)=='", script)[0].split("|")) == building
    docker = (ROOT / "Dockerfile").read_text()
    assert set(re.findall(r"uninstall --yes (.*)", docker)[0].split()) == building | {"pip"}


def test_no_host_is_named_and_no_container_runs_as_root() -> None:
    text = (ROOT / "Dockerfile").read_text()
    images = re.findall(r"^(?:FROM|ARG PYTHON=)\s*(\S+)", text, re.MULTILINE)
    assert images
    assert all("/" not in image for image in images)
    assert f"USER {USER_ID}:{USER_ID}" in text
    for file in ("image.txt", "lock.txt"):
        assert "http" not in re.sub(r"#.*", "", (ROOT / "requirements" / file).read_text()).replace("aiohttp", "")


def test_other_apt_sources_are_refused_before_anything_is_built(tmp_path: Path) -> None:
    """Only with the tools that come before the build: nothing could be built here."""
    for tool in ("bash", "dirname", "git", "grep", "mktemp", "rm"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    sources = tmp_path / "debian.sources"
    sources.write_text("Types: deb\nSuites: trixie\nComponents: main\n")
    done = subprocess.run(
        [tmp_path / "bash", ROOT / "scripts" / "image.sh", "enbloc:test"],
        env={"PATH": str(tmp_path), "ENBLOC_APT_SOURCES": str(sources), "SOURCE_DATE_EPOCH": "0"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert f"{sources} does not name bookworm" in done.stderr
