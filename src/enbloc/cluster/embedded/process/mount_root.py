"""Gives a command its mounts at absolute paths, then becomes it; run as a script, with the standard library alone.

A mount namespace of its own (and a user namespace, unless it runs as root) has the machine's tree with the volumes in
it. A mount point that does not exist is not made on the machine: the directory that would hold it is mirrored, as an
empty one in memory into which everything that it holds is bound. Where the kernel allows none of this, `may_mount` says
so, and mount paths stay links (docs/decisions/0046).

    mount_root.py MOUNTS ROOT COMMAND [ARGUMENT...]     MOUNTS: JSON, [[source, path, read-only], ...]
    mount_root.py --probe ROOT                          whether it is allowed
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import subprocess
import sys
import tempfile
from typing import NoReturn

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PROBE_S = 10
COMMAND = (sys.executable, "-I", "-S", os.path.abspath(__file__))


def may_mount() -> str | None:
    """Why this machine allows no mount namespace; `None` if it does. It is tried, in a process of its own."""
    if sys.platform != "linux":
        return "this system has no mount namespaces"
    with tempfile.TemporaryDirectory(prefix="enbloc-mounts-") as directory:
        try:
            done = subprocess.run([*COMMAND, "--probe", directory], capture_output=True, text=True, timeout=PROBE_S)
        except (OSError, subprocess.TimeoutExpired) as why:
            return str(why)
    return None if done.returncode == 0 else done.stderr.strip() or f"exit code {done.returncode}"


def _call(name: str, *arguments: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    _call("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())


def enter() -> None:
    """A namespace of mounts of our own, in which what we mount is seen by nothing else."""
    user, group = os.getuid(), os.getgid()
    if user == 0:
        _call("unshare", CLONE_NEWNS)
    else:
        _call("unshare", CLONE_NEWNS | CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _mount("none", "/", "", MS_REC | MS_PRIVATE)


def build(root: str, mounts: list[tuple[str, str, bool]]) -> None:
    """The machine's tree at `root`, an empty directory, with the mounts in it."""
    mirrored: set[str] = set()
    _mirror(root, "/", mirrored)
    for source, path, read_only in sorted(mounts, key=lambda mount: mount[1]):
        target = root + path
        if not os.path.lexists(target) or os.path.islink(target):
            _prepare(root, path, mirrored, is_directory=os.path.isdir(source))
        _mount(source, target, "", MS_BIND | MS_REC)
        if read_only:
            _mount("none", target, "", MS_BIND | MS_REMOUNT | MS_RDONLY)


def _prepare(root: str, path: str, mirrored: set[str], *, is_directory: bool) -> None:
    """Makes the mount point: its nearest directory that exists on the machine is mirrored, the rest is made in it."""
    at = ""
    for part in path.strip("/").split("/")[:-1]:
        at += f"/{part}"
        if at in mirrored:
            continue
        if os.path.isdir(root + at) and not os.path.islink(root + at):
            _mirror(root, at, mirrored)
        else:
            os.mkdir(root + at)
            mirrored.add(at)
    if os.path.islink(root + path):
        os.unlink(root + path)
    if is_directory:
        os.mkdir(root + path)
    else:
        os.close(os.open(root + path, os.O_CREAT | os.O_WRONLY, 0o600))


def _mirror(root: str, path: str, mirrored: set[str]) -> None:
    """An empty directory in memory at this place, into which everything that the machine has there is bound."""
    target = root + path.rstrip("/")
    mirrored.add(path.rstrip("/"))
    names = sorted(os.listdir(path))
    _mount("tmpfs", target, "tmpfs", 0, "mode=0755")
    for name in names:
        source, place = os.path.join(path, name), f"{target}/{name}"
        if os.path.islink(source):
            os.symlink(os.readlink(source), place)
            continue
        if os.path.isdir(source):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
        try:
            _mount(source, place, "", MS_BIND | MS_REC)
        except OSError as why:  # vanished meanwhile, or not ours to see: it stays empty
            if why.errno not in (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EINVAL):
                raise


def main() -> NoReturn:
    words = sys.argv[1:]
    try:
        if words[0] == "--probe":
            enter()
            build(words[1], [(words[1], "/enbloc-probe/inside", False)])
            os._exit(0)
        directory = os.getcwd()
        enter()
        build(words[1], [(str(source), str(path), bool(only)) for source, path, only in json.loads(words[0])])
        os.chroot(words[1])
        os.chdir(directory)
    except OSError as why:
        print(f"mounts cannot be made: {why}", file=sys.stderr)
        os._exit(128)
    argv = words[2:]
    try:
        os.execvp(argv[0], argv)
    except OSError as why:
        print(f'"{argv[0]}" cannot be started: {why.strerror}', file=sys.stderr)
        os._exit(127 if why.errno == errno.ENOENT else 126)


if __name__ == "__main__":
    main()
