"""Where things are on disk: DIR/pods/UID/CONTAINER for each container, DIR/pods/UID/.volumes, DIR/claims.

In a container's directory: `root`, which stands for the root of its file system; `N.log`, the output of its N-th run;
`process`, the record of what runs.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from enbloc.cluster.embedded.process.leftovers import RECORD
from enbloc.cluster.embedded.process.logs import OLDER


class Place:
    """The directory of one pod. UIDs may come from a user: one that is no plain word is not taken as a path."""

    def __init__(self, directory: Path, uid: str) -> None:
        self.path = pods_directory(directory) / folder_of(uid)
        self.volumes = self.path / ".volumes"
        self.scratch = self.path / ".tmp"

    def root(self, container: str) -> Path:
        return self.path / container / "root"

    def record(self, container: str) -> Path:
        return self.path / container / RECORD

    def log(self, container: str, run: int) -> Path:
        return self.path / container / f"{run}.log"

    def forget_old_logs(self, container: str, run: int) -> None:
        """Those of the present run and of the one before are kept."""
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


class Sweeper:
    """Removes directories. They are out of the way at once; what is in them, which may be much, goes on a thread of its
    own. What is still left when it is closed goes with the next start."""

    def __init__(self, directory: Path) -> None:
        self._trash = directory / "trash"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sweeper")
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
