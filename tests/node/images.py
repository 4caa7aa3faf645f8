"""Images for a node that has no registry: ours as `make image` built it, and two of what this machine has.

`pause` is a program of a few lines, `busybox` Debian's static one; both have one layer and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
BUSYBOX = "localhost/busybox:test"
PAUSE = "localhost/pause:test"
TOOLS = ("cat", "date", "echo", "hostname", "id", "sh", "sleep", "test", "true", "wget")


def build_pause(folder: Path) -> Path:
    """The archive of the pause image."""
    root = folder / "pause"
    root.mkdir(parents=True)
    subprocess.run(
        ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", root / "pause", "."],
        cwd=HERE / "go" / "pause",
        env={**os.environ, "CGO_ENABLED": "0"},
        check=True,
        timeout=600,
    )
    return _archive(folder, root, PAUSE, ("/pause",))


def build_busybox(folder: Path) -> Path:
    """The archive of an image with a shell and a few tools, from Debian's package busybox-static."""
    program = shutil.which("busybox")
    assert program is not None, "install Debian's package busybox-static"
    root = folder / "busybox"
    (root / "bin").mkdir(parents=True)
    shutil.copy(program, root / "bin" / "busybox")
    for tool in TOOLS:
        (root / "bin" / tool).symlink_to("busybox")
    return _archive(folder, root, BUSYBOX, ("/bin/sh",))


def _archive(folder: Path, root: Path, image: str, entrypoint: tuple[str, ...]) -> Path:
    store = ("buildah", "--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot", str(folder / "run"))

    def buildah(*words: str) -> str:
        done = subprocess.run([*store, *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, f"buildah {' '.join(words)}: {done.stderr}"
        return done.stdout.strip()

    container = buildah("from", "scratch")
    buildah("copy", "--quiet", container, str(root), "/")
    words = ", ".join(f'"{word}"' for word in entrypoint)
    buildah("config", "--entrypoint", f"[{words}]", "--env", "PATH=/bin", "--user", "65532:65532", container)
    buildah("commit", "--quiet", "--rm", container, image)
    archive = folder / f"{root.name}.tar"
    buildah("push", "--quiet", image, f"docker-archive:{archive}:{image}")
    return archive
