"""The interface of a node runtime: the part of the embedded cluster that runs pods once they are bound.

Two implementations: `nodes.NodePlayer` simulates pods by their annotations on the store's clock (virtual time, real
time, scaled real time), `process.ProcessNodes` runs commands as processes of this machine. The owner of the clock
drives both in the same way, on the store's thread: `observe` events, ask when the next step is `due`, `run` it. A
runtime with events of its own (a process exits) takes a `wake` callback and calls it, from any thread, when `run`
should be called soon.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class LogQuery(msgspec.Struct, frozen=True):
    """Which part of a container's output is requested; by default all of it."""

    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_ns: int | None = None
    """Since the epoch."""
    timestamps: bool = False
    previous: bool = False
    """The run before the present one."""


class LogReader(Protocol):
    """The output of one run of a container, from where the query starts."""

    def read(self) -> bytes:
        """The output since the last call, in bounded pieces; empty if there is none at present."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the output is complete once `read` returns nothing."""
        ...

    def close(self) -> None: ...


class ExecSession(Protocol):
    """A command that was started in a container."""

    async def output(self) -> bytes:
        """The next piece of its output; empty at the end."""
        ...

    async def errors(self) -> bytes:
        """The same of its error output; empty if it has a terminal."""
        ...

    async def write(self, data: bytes) -> None: ...

    async def end_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def wait(self) -> int:
        """The exit code, once it has ended or its container has."""
        ...

    async def close(self) -> None:
        """Kills it, if it still runs."""
        ...


class RunningContainer(Protocol):
    """A container that runs, for `kubectl exec` and `port-forward`."""

    address: str
    """Of its pod."""

    async def start(self, argv: Sequence[str], *, tty: bool) -> ExecSession: ...


class Use(msgspec.Struct, frozen=True):
    """What a container uses at present."""

    cpu_nanocores: int
    memory_bytes: int
    window_ns: int
    """The time over which the CPU was measured."""


class NodeRuntime(Protocol):
    """Runs pods that are bound to its nodes."""

    def observe(self) -> None:
        """Reads the store's events."""
        ...

    def due(self) -> int | None:
        """When, on the store's clock, the next step is due; `None` if none is."""
        ...

    def run(self, now_ns: int) -> None:
        """Does every step that is due."""
        ...

    def logs(self, namespace: str, pod: str, container: str, query: LogQuery) -> LogReader:
        """The output of a container. An empty name means the pod's only container. Raises `Refused`."""
        ...

    def enter(self, namespace: str, pod: str, container: str) -> RunningContainer:
        """A container that runs. An empty name means the pod's only container. Raises `Refused`."""
        ...

    def measure(self) -> Mapping[tuple[str, str], Mapping[str, Use]] | None:
        """What containers that run use, by namespace and name of their pod, then by their own name; `None` if nothing
        is measured."""
        ...

    def close(self) -> None:
        """Stops everything it has started and removes its files."""
        ...
