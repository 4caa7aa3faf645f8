"""A command of `kubectl exec`: with the environment and directory of a container that runs, and no longer than it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Callable, Sequence
from typing import Final

from enbloc.cluster.embedded.process import exec_child
from enbloc.cluster.embedded.process.processes import Command

CHUNK_BYTES: Final = 32 * 1024
LOOK_EVERY_S: Final = 0.2
"""How soon a command ends after its container."""


class ProcessContainer:
    """A container that runs: commands are started beside it. `is_running` says whether it still does."""

    def __init__(self, command: Command, address: str, is_running: Callable[[], bool]) -> None:
        self._env = command.env
        self._cwd = command.cwd
        self._prefix = command.prefix
        self.address = address
        self._is_running = is_running

    async def start(self, argv: Sequence[str], *, tty: bool) -> ProcessExec:
        streams = "tty" if tty else "pipes"
        command = [sys.executable, "-I", "-S", exec_child.__file__, str(os.getpid()), streams, *self._prefix, *argv]
        if not tty:
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, env=self._env, cwd=self._cwd, start_new_session=True
            )
            return ProcessExec(process, None, self._is_running)
        own, its = pty.openpty()
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=its, stdout=its, stderr=its, env=self._env, cwd=self._cwd, start_new_session=True
            )
        except BaseException:
            os.close(own)
            raise
        finally:
            os.close(its)
        return ProcessExec(process, own, self._is_running)


class ProcessExec:
    """A command under way; `terminal` is our end of its terminal, if it has one."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int | None, runs: Callable[[], bool]) -> None:
        self._process = process
        self._terminal = terminal
        self._container_runs = runs

    async def output(self) -> bytes:
        if self._terminal is not None:
            return await self._read_terminal(self._terminal)
        assert self._process.stdout is not None
        return await self._process.stdout.read(CHUNK_BYTES)

    async def errors(self) -> bytes:
        if self._process.stderr is None:
            return b""
        return await self._process.stderr.read(CHUNK_BYTES)

    async def write(self, data: bytes) -> None:
        if self._terminal is not None:
            await asyncio.get_running_loop().run_in_executor(None, _write_all, self._terminal, data)
            return
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()

    async def end_input(self) -> None:
        if self._terminal is None and self._process.stdin is not None:
            self._process.stdin.close()

    def resize(self, columns: int, rows: int) -> None:
        if self._terminal is not None and 0 < columns < 65_536 and 0 < rows < 65_536:
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def wait(self) -> int:
        """The exit code, 128+n after a signal; the command is killed when its container has ended."""
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    code = await self._process.wait()
                    return 128 - code if code < 0 else code
            except TimeoutError:
                if not self._container_runs():
                    self._kill()

    async def close(self) -> None:
        self._kill()
        with contextlib.suppress(ProcessLookupError):
            await self._process.wait()
        if self._terminal is not None:
            os.close(self._terminal)
            self._terminal = None

    def _kill(self) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def _read_terminal(self, terminal: int) -> bytes:
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(terminal, readable.set)
        try:
            await readable.wait()
            return os.read(terminal, CHUNK_BYTES)
        except OSError:  # the command has closed its end
            return b""
        finally:
            loop.remove_reader(terminal)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
