"""The data directory of an embedded cluster, locked by one process at a time.

The lock is the kernel's (`flock`): it ends with the process that holds it, however that process ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

LOCK: Final = "lock"


class DataDirError(Exception):
    """The directory or its content cannot be used. The message is one line for the user."""


class DataDir:
    """A directory that is locked until it is closed; created if it is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as why:
            raise DataDirError(f"{path} cannot be used as a data directory: {_reason(why)}") from why
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as why:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip()
            os.close(self._lock)
            if why.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise DataDirError(f"{path} cannot be locked: {_reason(why)}") from why
            who = f" (process {holder})" if holder.isdecimal() else ""
            raise DataDirError(f"{path} is in use by another enbloc{who}: stop it, or take another directory") from why
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, str(os.getpid()).encode(), 0)

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _reason(why: OSError) -> str:
    return why.strerror or str(why)
