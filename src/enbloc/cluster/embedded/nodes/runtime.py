"""What a runtime of nodes is: that which makes pods happen once they are bound.

Two keep to it: `nodes.NodePlayer` plays annotations on whatever clock the store has (virtual time, real time, real time
times a factor), `process.ProcessNodes` runs commands as processes of this machine. Whoever owns the clock drives either
in the same way: `observe` what happened, ask when something is `due`, `run` what is. All of it happens on the thread
that owns the store. A runtime to which things happen from outside takes a `wake` when it is made, and calls it from
whatever thread when `run` should be called soon.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class LogQuery(msgspec.Struct, frozen=True):
    """Which part of a container's output is wanted; everything, if nothing is said."""

    tail_lines: int | None = None
    limit_bytes: int | None = None
    since: int | None = None
    """Nanoseconds since the epoch."""
    timestamps: bool = False
    previous: bool = False
    """The run before the present one."""


class LogReader(Protocol):
    """The output of one run of a container, from where the query said on."""

    def read(self) -> bytes:
        """What there is since the last call, in bounded pieces; empty if there is nothing at present."""
        ...

    @property
    def ended(self) -> bool:
        """Whether nothing more will come once `read` gives nothing."""
        ...

    def close(self) -> None: ...


class NodeRuntime(Protocol):
    """Makes pods happen that were assigned to a node."""

    def observe(self) -> None:
        """Learns what has happened in the store."""
        ...

    def due(self) -> int | None:
        """The next instant, on the store's clock, at which something is to happen; `None` if nothing is."""
        ...

    def run(self, now: int) -> None:
        """Does everything that is due."""
        ...

    def logs(self, namespace: str, pod: str, container: str, query: LogQuery) -> LogReader:
        """What a container wrote. An empty name means the only container. Raises `Refused`."""
        ...

    def close(self) -> None:
        """Stops whatever it has started; nothing is left behind."""
        ...
