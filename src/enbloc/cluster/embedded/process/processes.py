"""Commands that run: started, signalled and killed through the supervisor, whose answers are gathered here.

A thread listens to the supervisor and calls `wake` for each answer; whoever owns the store then takes the news. If
the supervisor itself is killed, everything that it ran is dead (see `supervisor.py`): that is told as news, and the
next start makes a new one.
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
from enbloc.cluster.embedded.process.leftovers import record_supervisor

KILLED: Final = 137
STOP_WITHIN_S: Final = 12.0


class Command(msgspec.Struct, frozen=True):
    """What to run, and where what it writes goes."""

    argv: Sequence[str]
    env: dict[str, str]
    cwd: Path
    log: Path
    log_bytes: int
    record: Path
    token: str


class News(msgspec.Struct, frozen=True):
    """Something that happened to a process. `why` is told if it could not be started."""

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
                start_new_session=True,  # Ctrl-C is not for it
            )
        its.close()
        record_supervisor(directory, self.process.pid)
        self.running: set[int] = set()


class Processes:
    """All commands of one node runtime. `remove`, if given, is deleted by the supervisor once all have ended, even if
    this process is gone by then."""

    def __init__(self, directory: Path, wake: Callable[[], None], remove: Path | None = None) -> None:
        self._directory = directory
        self._wake = wake
        self._remove = remove
        self._lock = threading.Lock()
        self._session: _Session | None = None
        self._news: deque[News] = deque()
        self._count = 0

    @property
    def has_news(self) -> bool:
        return bool(self._news)

    def take_news(self) -> list[News]:
        taken = []
        while self._news:
            taken.append(self._news.popleft())
        return taken

    def start(self, command: Command) -> int:
        """The number of the process; what becomes of it is news."""
        self._count += 1
        number = self._count
        order = {
            "do": "start",
            "id": number,
            "argv": list(command.argv),
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
        """To the process group."""
        if self._session is not None:
            self._send(self._session, {"do": "signal", "id": number, "number": signal_number})

    def kill(self, number: int) -> None:
        """The process and all that it ever started."""
        if self._session is not None:
            self._send(self._session, {"do": "kill", "id": number})

    def running(self) -> set[int]:
        with self._lock:
            return set(self._session.running) if self._session is not None else set()

    def close(self) -> None:
        """Kills whatever runs; returns when it is gone."""
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
            time.sleep(0.002)  # the listener sees the end

    def _begin(self) -> _Session:
        session = _Session(self._directory, self._remove)
        threading.Thread(target=self._listen, args=(session,), name="processes", daemon=True).start()
        return session

    def _send(self, session: _Session, order: dict[str, Any]) -> None:
        try:
            session.sock.sendall(json.dumps(order).encode() + b"\n")
        except OSError:
            pass  # it is gone; the listener tells what that means

    def _listen(self, session: _Session) -> None:
        """On a thread of its own, until the supervisor is gone."""
        lines = supervisor.Lines(session.sock)
        while (answers := lines.read()) is not None:
            for answer in answers:
                news = msgspec.convert(answer, News)
                if news.what != "started":
                    with self._lock:
                        session.running.discard(news.id)
                self._news.append(news)
            self._wake()
        with self._lock:
            lost, session.running = sorted(session.running), set()
            if self._session is session:
                self._session = None
        session.sock.close()
        session.process.wait()
        self._news.extend(News(number, "ended", code=KILLED) for number in lost)
        if lost:
            self._wake()


def new_token() -> str:
    """Names one start of one container, in its environment and in its record."""
    return os.urandom(16).hex()
