"""The processes of containers: started, signalled and killed through the supervisor, which reports their events.

A thread reads the supervisor's answers and calls `wake` for each; the store's thread then takes the events. If the
supervisor itself is killed, everything that it ran is dead (see `supervisor.py`): this is reported as events, and the
next start forks a new supervisor.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from enbloc.cluster.embedded.process import supervisor
from enbloc.cluster.embedded.process.orphans import record_supervisor

KILLED: Final = 137
STOP_WITHIN_S: Final = 12.0


class Command(msgspec.Struct, frozen=True):
    """What to run, and where its output goes."""

    argv: Sequence[str]
    env: dict[str, str]
    cwd: Path
    log: Path
    log_bytes: int
    record: Path
    token: str
    prefix: Sequence[str] = ()
    """What stands before `argv`: it makes the container's mounts."""


class ProcessEvent(msgspec.Struct, frozen=True):
    """A process started, ended, or failed to start; `why` is set if it failed."""

    id: int
    what: Literal["started", "ended", "failed"]
    pid: int = 0
    code: int = 0
    why: str = ""


class _Session:
    """One supervisor, from its start to its end."""

    def __init__(self, directory: Path, remove: Path | None) -> None:
        self.sock, its = socket.socketpair()
        script = [sys.executable, "-I", "-S", supervisor.__file__]
        with open(directory / "supervisor.log", "ab") as log:
            self.process = subprocess.Popen(
                [*script, str(remove)] if remove is not None else script,
                stdin=its.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd="/",
                start_new_session=True,  # Ctrl-C must not reach it
            )
        its.close()
        record_supervisor(directory, self.process.pid)
        self.running: set[int] = set()


class Processes:
    """All processes of a node runtime. The supervisor deletes `remove`, if given, once all have ended, even if this
    process is gone by then."""

    def __init__(self, directory: Path, wake: Callable[[], None], remove: Path | None = None) -> None:
        self._directory = directory
        self._wake = wake
        self._remove = remove
        self._lock = threading.Lock()
        self._session: _Session | None = None
        self._events: deque[ProcessEvent] = deque()
        self._count = 0

    @property
    def has_events(self) -> bool:
        return bool(self._events)

    def take_events(self) -> list[ProcessEvent]:
        taken = []
        while self._events:
            taken.append(self._events.popleft())
        return taken

    def start(self, command: Command) -> int:
        """Starts a command and returns its number; what happens to it is reported as events."""
        self._count += 1
        number = self._count
        order = {
            "do": "start",
            "id": number,
            "argv": [*command.prefix, *command.argv],
            "env": command.env,
            "cwd": str(command.cwd),
            "log": str(command.log),
            "log_bytes": command.log_bytes,
            "record": str(command.record),
            "token": command.token,
        }
        with self._lock:
            session = self._session
            if session is None or session.process.poll() is not None:
                session = self._session = self._begin()
            session.running.add(number)
        self._send(session, order)
        return number

    def signal(self, number: int, signal_number: int) -> None:
        """Signals the process group."""
        if self._session is not None:
            self._send(self._session, {"do": "signal", "id": number, "number": signal_number})

    def kill(self, number: int) -> None:
        """Kills the process and all its descendants."""
        if self._session is not None:
            self._send(self._session, {"do": "kill", "id": number})

    def running(self) -> set[int]:
        with self._lock:
            return set(self._session.running) if self._session is not None else set()

    def close(self) -> None:
        """Kills what runs; returns when it is dead."""
        session = self._session
        if session is None:
            return
        session.sock.shutdown(socket.SHUT_WR)
        try:
            session.process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            session.process.kill()
            session.process.wait()
        deadline = time.monotonic() + 1
        while self._session is session and time.monotonic() < deadline:
            time.sleep(0.002)  # until the listener has read the end

    def _begin(self) -> _Session:
        session = _Session(self._directory, self._remove)
        threading.Thread(target=self._listen, args=(session,), name="processes", daemon=True).start()
        return session

    def _send(self, session: _Session, order: dict[str, Any]) -> None:
        try:
            session.sock.sendall(json.dumps(order).encode() + b"\n")
        except OSError:
            pass  # the supervisor is gone; the listener reports what follows

    def _listen(self, session: _Session) -> None:
        """Runs on a thread of its own until the supervisor is gone."""
        lines = supervisor.Lines(session.sock)
        while (answers := lines.read()) is not None:
            for answer in answers:
                event = msgspec.convert(answer, ProcessEvent)
                if event.what != "started":
                    with self._lock:
                        session.running.discard(event.id)
                self._events.append(event)
            self._wake()
        with self._lock:
            lost, session.running = sorted(session.running), set()
            if self._session is session:
                self._session = None
        session.sock.close()
        session.process.wait()
        self._events.extend(ProcessEvent(number, "ended", code=KILLED) for number in lost)
        if lost:
            self._wake()


def new_token() -> str:
    """A name for one start of one container, in its environment and in its record."""
    return os.urandom(16).hex()
