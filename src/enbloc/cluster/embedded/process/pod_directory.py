"""The files of pods: DIR/pods/UID/CONTAINER for each container, DIR/pods/UID/.volumes, DIR/claims.

In a container's directory: `root`, its root directory; `N.log`, the output of its N-th run; `process`, the record of
its process.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from enbloc.cluster.embedded.process.logs import OLDER
from enbloc.cluster.embedded.process.orphans import RECORD


class PodDirectory:
    """The directory of one pod. A UID given by a user is used as a path only if it is letters, digits and dashes."""

    def __init__(self, directory: Path, uid: str) -> None:
        self.path = pods_directory(directory) / folder_of(uid)
        self.volumes = self.path / ".volumes"
        self.scratch = self.path / ".tmp"

    def root(self, container: str) -> Path:
        return self.path / container / "root"

    def mount_point(self, container: str) -> Path:
        """Where the container's own tree is mounted, for its processes alone; empty for all others."""
        return self.path / container / "tree"

    def record(self, container: str) -> Path:
        return self.path / container / RECORD

    def log(self, container: str, run: int) -> Path:
        return self.path / container / f"{run}.log"

    def remove_old_logs(self, container: str, run: int) -> None:
        """Keeps the logs of the present run and of the one before."""
        for old in (run - 2, run - 3):
            if old >= 0:
                log = self.log(container, old)
                for path in (log, log.with_name(log.name + OLDER)):
                    path.unlink(missing_ok=True)


def folder_of(uid: str) -> str:
    return uid if re.fullmatch(r"[A-Za-z0-9-]{1,64}", uid) else hashlib.sha256(uid.encode()).hexdigest()


def pods_directory(directory: Path) -> Path:
    return directory / "pods"


def claims_directory(directory: Path) -> Path:
    return directory / "claims"


class DirectoryRemover:
    """Removes directories: renames them at once, and deletes their content, which may be much, on a thread of its own.
    What is left at the end is deleted at the next start."""

    def __init__(self, directory: Path) -> None:
        self._trash = directory / "trash"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="remover")
        self._count = 0
        shutil.rmtree(self._trash, ignore_errors=True)

    def remove(self, path: Path) -> None:
        self._trash.mkdir(exist_ok=True)
        self._count += 1
        away = self._trash / str(self._count)
        try:
            path.rename(away)
        except FileNotFoundError:
            return
        self._thread.submit(shutil.rmtree, away, ignore_errors=True)

    def close(self) -> None:
        self._thread.shutdown(cancel_futures=True)
