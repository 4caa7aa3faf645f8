"""The port through which the rest of the program uses a cluster.

Two adapters: `embedded`, in this process, and `kube`, a real Kubernetes over HTTP. The port asks for what the
Kubernetes API guarantees and for nothing more: lists with a version, watches from a version, writes that may be
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent, Write


class Watch(Protocol):
    """The events of the requested kinds, in order, without repeats and without gaps."""

    def drain(self) -> list[WatchEvent]:
        """The events since the last call. Raises `Refused` (410) if they are no longer kept: list again."""
        ...

    def close(self) -> None: ...


class Cluster(Protocol):
    """What the control plane needs of a cluster."""

    def list(self, kind: str, namespace: str | None = None) -> tuple[list[Obj], int]:
        """The objects of a kind by namespace and name, and the resource version of that list."""
        ...

    def watch(self, kinds: Collection[str] | None, since: int) -> Watch:
        """The events after version `since` of these kinds (`None`: of every kind, unknown ones too)."""
        ...

    def execute(self, write: Write) -> Obj | None:
        """Executes one write and returns the object as it is now. Raises `Refused`."""
        ...


class LiveCluster(Protocol):
    """A cluster behind a network: the same guarantees, asynchronously. `kube` is one."""

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Lists (Pods last), then watches; returns when every existing object was observed."""
        ...

    async def execute(self, write: Write) -> Obj | None:
        """Raises `Refused`; code 504 means that the write may or may not have been executed."""
        ...

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None: ...

    def known(self, kind: str) -> list[Obj]:
        """The objects of a kind as they were last observed."""
        ...

    def serves(self, kind: str) -> bool:
        """Whether the API server serves this kind."""
        ...

    def healthy(self) -> bool: ...

    async def close(self) -> None: ...
