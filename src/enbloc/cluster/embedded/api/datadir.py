"""The data directory of an embedded cluster: of this user alone, and locked by one process at a time.

The lock is the kernel's (`flock`): it ends with the process that holds it, however that process ends.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from enbloc.cluster.embedded.api.private_files import NotPrivate, open_private

LOCK: Final = "lock"


class DataDirError(Exception):
    """The directory or its content cannot be used. The message is one line for the user."""


class DataDir:
    """A directory that is locked until it is closed; created if it is missing, with mode 0700."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(self.path)
            self._lock = open_private(self.path / LOCK, os.O_RDWR | os.O_CREAT)
        except NotPrivate as why:
            raise DataDirError(str(why)) from why
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


def _make_private(path: Path) -> None:
    """Mode 0700 for a directory that is empty or a data directory already. One that holds other things keeps its mode,
    and is refused if others can write to it."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to user {found.st_uid}, not to this one: take another directory")
    mode = stat.S_IMODE(found.st_mode)
    if not mode & 0o077:
        return
    if (path / LOCK).is_file() or not any(path.iterdir()):
        path.chmod(0o700)
    elif mode & 0o022:
        raise NotPrivate(f"{path} can be written by others (mode {mode:o}): take another directory, or chmod 700 it")


def _reason(why: OSError) -> str:
    return why.strerror or str(why)
