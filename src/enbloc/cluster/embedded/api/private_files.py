"""Files that only this user may read: no symbolic link is followed, the owner is checked, the mode is 0600.

The directory that they are in is the caller's matter (`datadir`).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


class NotPrivate(OSError):
    """The file is not this user's own. The message is one line for the user."""


def open_private(path: Path, flags: int) -> int:
    """A descriptor of a regular file of this user with mode 0600; with `os.O_CREAT` it is created if it is missing.
    Raises `NotPrivate`, or another `OSError`."""
    try:
        descriptor = os.open(path, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except OSError as why:
        if path.is_symlink():
            raise NotPrivate(f"{path} is a symbolic link, which is not followed: move it away") from None
        if isinstance(why, IsADirectoryError):
            raise NotPrivate(f"{path} cannot be read: it is not a regular file; move it away") from None
        raise why
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise NotPrivate(f"{path} cannot be read: it is not a regular file; move it away")
        if found.st_uid != os.geteuid():
            raise NotPrivate(f"{path} belongs to user {found.st_uid}, not to this one: move it away")
        if found.st_nlink > 1:
            raise NotPrivate(f"{path} has {found.st_nlink} hard links: move it away")
        if found.st_mode & 0o022:
            raise NotPrivate(f"{path} can be written by others (mode {stat.S_IMODE(found.st_mode):o}): move it away")
        if found.st_mode & 0o055:
            os.fchmod(descriptor, 0o600)
        if flags & os.O_TRUNC:
            os.ftruncate(descriptor, 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_private(path: Path, *, most_bytes: int = 2**20) -> bytes | None:
    """The content; `None` if there is no such file. Raises `NotPrivate`, or another `OSError`."""
    try:
        descriptor = open_private(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(most_bytes)


def read_secret(path: Path) -> bytes | None:
    """As `read_private`, for a file that must not have been readable by others either."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise NotPrivate(f"{path} can be read by others (mode {mode:o}): delete it, and another one is created")
    return read_private(path)


def write_private(path: Path, content: bytes) -> None:
    """Creates or replaces the content. Raises `NotPrivate`, or another `OSError`."""
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
        file.write(content)
