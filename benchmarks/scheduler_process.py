"""A scheduler as a process of its own: started, ended, and what it took of CPU and memory."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ENDS_WITHIN_S = 30.0


class Used(NamedTuple):
    cpu_s: float
    peak_mb: int


class SchedulerProcess:
    """Its output goes to a file, of which the end is shown if it fails."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0

    @property
    def name(self) -> list[str]:
        """Its command, for people."""
        return [Path(self._command[0]).name, *self._command[1:]]

    def start(self) -> None:
        with self._log.open("wb") as out:
            self.started_s = time.monotonic()
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )

    def cpu_s(self) -> float:
        """The CPU seconds that it has used so far; 0 if unknown (no /proc)."""
        if self._process is None:
            return 0.0
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def failure(self) -> str | None:
        """Why it has ended, if it has."""
        if self._process is None or self._process.poll() is None:
            return None
        lines = self._log.read_text(errors="replace").splitlines()[-15:]
        return f"{self._command[0]} ended with code {self._process.returncode}:\n" + "\n".join(lines)

    async def stop(self) -> Used:
        """Ends it with SIGTERM, after a while with SIGKILL."""
        process = self._process
        assert process is not None, "it was not started"
        if process.poll() is not None:
            return Used(0.0, 0)
        peak_mb = _peak_mb(process.pid)
        process.send_signal(signal.SIGTERM)
        until = time.monotonic() + ENDS_WITHIN_S
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                return Used(round(used.ru_utime + used.ru_stime, 2), peak_mb)
            if time.monotonic() > until:
                process.kill()
            await asyncio.sleep(0.02)


class SchedulerProcesses:
    """A scheduler that is one process, or several, all of them taken together."""

    def __init__(self, commands: Sequence[Sequence[str]], folder: Path) -> None:
        """The output of each goes to a file in the folder."""
        self._log = folder / "log"
        logs = [self._log, *(folder / f"log-{number}" for number in range(1, len(commands)))]
        self._parts = [SchedulerProcess(command, log) for command, log in zip(commands, logs, strict=True)]

    @property
    def started_s(self) -> float:
        return self._parts[0].started_s

    @property
    def log(self) -> str:
        """What the first one printed."""
        return self._log.read_text(errors="replace")

    @property
    def name(self) -> str:
        """The commands, for people."""
        return " and ".join(" ".join(part.name) for part in self._parts)

    def start(self) -> None:
        for part in self._parts:
            part.start()

    def cpu_s(self) -> float:
        return sum(part.cpu_s() for part in self._parts)

    def failure(self) -> str | None:
        """Why one of them has ended, if one has."""
        return next((why for why in (part.failure() for part in self._parts) if why is not None), None)

    async def stop(self) -> Used:
        used = await asyncio.gather(*(part.stop() for part in self._parts if part.started_s))
        return Used(round(sum(one.cpu_s for one in used), 2), sum(one.peak_mb for one in used))


def _peak_mb(pid: int) -> int:
    """Peak resident memory in MB; 0 if unknown (no /proc). `ru_maxrss` of `wait4` would include this process's own,
    copied by fork."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM:")), 0)


def enbloc_run(kubeconfig: str | None, context: str | None, namespace: str, config: Path) -> list[str]:
    """The command of `enbloc run` for one namespace's scheduler name."""
    words = [sys.executable, "-c", "from enbloc.cli.main import main; main()", "run"]
    words += ["--config", str(config), "--port", "0", "--lease-namespace", namespace]
    words += ["--kubeconfig", kubeconfig] if kubeconfig else []
    return words + (["--context", context] if context else [])
