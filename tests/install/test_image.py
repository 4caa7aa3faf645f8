"""The image: built of pinned packages, from here alone."""

from __future__ import annotations

import re
from pathlib import Path

from enbloc.install.workloads import USER_ID

ROOT = Path(__file__).parent.parent.parent


def pins(file: str) -> dict[str, str]:
    lines = (ROOT / "requirements" / file).read_text().splitlines()
    return dict(re.findall(r"^([\w.-]+)==([^ ;]+)", "\n".join(lines), re.MULTILINE))


def test_the_image_has_what_was_tested() -> None:
    image, tested = pins("image.txt"), pins("lock.txt")
    assert image.items() <= tested.items()
    assert {"aiohttp", "cryptography", "kubernetes-asyncio", "msgspec", "numpy"} <= image.keys()
    assert not {"pytest", "mypy", "ruff", "hypothesis"} & image.keys()


def test_no_host_is_named_and_no_container_runs_as_root() -> None:
    text = (ROOT / "Dockerfile").read_text()
    images = re.findall(r"^(?:FROM|ARG PYTHON=)\s*(\S+)", text, re.MULTILINE)
    assert images
    assert all("/" not in image for image in images)
    assert f"USER {USER_ID}:{USER_ID}" in text
    for file in ("image.txt", "lock.txt"):
        assert "http" not in re.sub(r"#.*", "", (ROOT / "requirements" / file).read_text()).replace("aiohttp", "")
