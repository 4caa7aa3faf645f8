"""Ends orphaned processes: those of an earlier run that was killed together with its supervisor, found by their
records.

A pid alone identifies no process: it may have been reused. A process is ours if its pid and its start time are those of
the record, on the same boot of the machine; or if the record's token, which is random, is in its environment.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from enbloc.cluster.embedded.process.supervisor import send_group, send_signal, start_time

TOKEN: Final = "ENBLOC_PROCESS"
"""The environment variable that holds the token of a record."""
RECORD: Final = "process"
"""The file name of a record, in the container's directory."""
_SUPERVISOR: Final = "supervisor"
_BOOT: Final = "boot"
WAIT_S: Final = 8.0


class _Record(NamedTuple):
    pid: int
    start: int
    token: str


def record_supervisor(directory: Path, pid: int) -> None:
    (directory / _SUPERVISOR).write_text(f"{pid} {start_time(pid)} -\n")
    (directory / _BOOT).write_text(_boot_id())


def end_orphans(directory: Path) -> int:
    """Ends the processes that an earlier run left in this directory, which this process has locked; returns how
    many."""
    if not _is_same_boot(directory):
        return 0
    for record in _read([directory / _SUPERVISOR]):
        _wait_for(record)  # it ends its processes when it reads the end of its socket
    records = list(_read(directory.glob(f"pods/*/*/{RECORD}")))
    ended: set[int] = set()
    deadline = time.monotonic() + WAIT_S
    while (found := _alive(records)) and time.monotonic() < deadline:
        for pid, leads in found.items():
            if leads:
                send_group(pid, signal.SIGKILL)
            send_signal(pid, signal.SIGKILL)
        ended |= found.keys()
        time.sleep(0.01)
    return len(ended)


def _wait_for(record: _Record) -> None:
    deadline = time.monotonic() + WAIT_S
    while start_time(record.pid) == record.start and time.monotonic() < deadline:
        if _state(record.pid) == "Z":
            return
        time.sleep(0.01)
    if record.start and start_time(record.pid) == record.start:
        send_signal(record.pid, signal.SIGKILL)  # its shims then end theirs


def _read(paths: Iterable[Path]) -> Iterator[_Record]:
    for path in paths:
        try:
            pid, start, token = path.read_text().split()
            yield _Record(int(pid), int(start), token)
        except (OSError, ValueError):
            continue  # a half-written record: its command was never started


def _alive(records: list[_Record]) -> dict[int, bool]:
    """Our processes that are alive, and whether each leads a process group of ours."""
    found = {
        record.pid: True
        for record in records
        if record.start and start_time(record.pid) == record.start and _state(record.pid) != "Z"
    }
    tokens = {f"{TOKEN}={record.token}".encode() for record in records if len(record.token) >= 32}
    if tokens:
        for pid in _processes():
            if pid not in found and pid != os.getpid() and tokens & _environment(pid):
                found[pid] = False
    return found


def _processes() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if name.isdecimal():
            yield int(name)


def _environment(pid: int) -> set[bytes]:
    try:
        return set(Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    except OSError:
        return set()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "Z"


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return "unknown"


def _is_same_boot(directory: Path) -> bool:
    try:
        known = (directory / _BOOT).read_text()
    except OSError:
        return False
    return known != "unknown" and known == _boot_id()
