"""The port through which everything else sees a cluster.

Two adapters: `embedded`, in this process, and `kube`, a real Kubernetes over HTTP. What is asked of a cluster is what
the Kubernetes API promises and nothing more: lists with a version, watches from a version, writes that may be refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent, Write


class Watch(Protocol):
    """A stream of what happened to the kinds that were asked for, in order, nothing twice, nothing left out."""

    def drain(self) -> list[WatchEvent]:
        """All that has happened since the last call. Raises `Refused` (410) if the past was forgotten: list anew."""
        ...

    def close(self) -> None: ...


class Cluster(Protocol):
    """What the control plane needs of a cluster."""

    def list(self, kind: str, namespace: str | None = None) -> tuple[list[Obj], int]:
        """The objects of a kind by namespace and name, and the version at which that was so."""
        ...

    def watch(self, kinds: Collection[str] | None, since: int) -> Watch:
        """What happens after version `since`, to these kinds (`None`: to all, unknown ones too)."""
        ...

    def execute(self, write: Write) -> Obj | None:
        """Carries one write out and returns the object as it is now. Raises `Refused`."""
        ...


class LiveCluster(Protocol):
    """A cluster that answers late: the same promises, in an event loop. `kube` is one."""

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Lists (Pods last), then goes on watching; returns when all that exists was observed."""
        ...

    async def execute(self, write: Write) -> Obj | None:
        """Raises `Refused`; code 504 means that nobody knows whether it was carried out."""
        ...

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None: ...

    def serves(self, kind: str) -> bool:
        """Whether there can be objects of a kind."""
        ...

    def healthy(self) -> bool: ...

    async def close(self) -> None: ...
