"""A process that a test started: run, killed, stopped, resumed and started again by the PID that we were given.

Each part leads a process group of its own and writes one log over all its lives. Whoever dies without cleaning up, by
`kill -9` too, is cleaned up after: the warden sees the end of its input and kills what is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

POLL_S = 0.05
TAIL_BYTES = 16_384


class NotReady(Exception):
    """A part ended, or did not answer in time; the message has the end of its log."""


class Warden:
    """Kills the process groups that it was told of when our own process is gone."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _WARDEN], stdin=subprocess.PIPE, start_new_session=True, text=True
        )

    def watch(self, group: int) -> None:
        self._tell(f"+{group}")

    def forget(self, group: int) -> None:
        self._tell(f"-{group}")

    def dismiss(self) -> None:
        """Everything was stopped; there is nothing left to watch."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(10)

    def _tell(self, word: str) -> None:
        if self._process.stdin is not None:
            self._process.stdin.write(word + "\n")
            self._process.stdin.flush()


_WARDEN = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""


def always() -> bool:
    """Of a part that is ready as soon as it runs."""
    return True


class Part:
    """One program and its command line; at most one process of it lives at a time."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        warden: Warden,
        *,
        ready: Callable[[], bool] = always,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        self._warden = warden
        self._ready = ready
        self._env = {**os.environ, **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Of the living process; `None` if there is none."""
        alive = self._process is not None and self._process.poll() is None
        return self._process.pid if alive and self._process is not None else None

    def start(self) -> None:
        """Returns at once; `wait_ready` waits."""
        if self.pid is not None:
            raise RuntimeError(f"{self.name} runs already, as {self.pid}")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._env,
                start_new_session=True,
            )
        self._warden.watch(self._process.pid)

    def wait_ready(self, within_s: float = 60) -> None:
        until = time.monotonic() + within_s
        while True:
            if self.pid is None:
                code = None if self._process is None else self._process.returncode
                raise NotReady(f"{self.name} ended with {code}; its log ends with:\n{self.tail()}")
            if self._ready():
                return
            if time.monotonic() > until:
                raise NotReady(f"{self.name} was not ready within {within_s} s; its log ends with:\n{self.tail()}")
            time.sleep(POLL_S)

    def restart(self, within_s: float = 60) -> None:
        """Starts a new process, after the end of the old one if it still lives."""
        self.stop()
        self.start()
        self.wait_ready(within_s)

    def kill(self) -> None:
        """SIGKILL: no chance to say goodbye."""
        self._end(signal.SIGKILL, 10)

    def stop(self, within_s: float = 10) -> None:
        """SIGTERM, and SIGKILL if that was not heard in time. Harmless if nothing runs."""
        self._end(signal.SIGTERM, within_s)

    def pause(self) -> None:
        """SIGSTOP: it holds its connections and answers nobody, as a machine that hangs."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def tail(self, limit: int = TAIL_BYTES) -> str:
        """The end of the log."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - limit))
            return log.read().decode(errors="replace")

    def _signal(self, number: signal.Signals) -> None:
        if self.pid is None:
            raise RuntimeError(f"{self.name} does not run")
        os.killpg(self.pid, number)

    def _end(self, number: signal.Signals, within_s: float) -> None:
        process = self._process
        if process is None:
            return
        for attempt in (number, signal.SIGKILL):
            if process.poll() is None:  # not waited for, so the number is still its own
                os.killpg(process.pid, attempt)
                os.killpg(process.pid, signal.SIGCONT)  # one that is paused does not hear SIGTERM
            try:
                process.wait(within_s)
                break
            except subprocess.TimeoutExpired:
                within_s = 10
        self._warden.forget(process.pid)
        self._process = None
