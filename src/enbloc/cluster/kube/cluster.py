"""A real cluster, as the runtime sees it.

Everything in here runs in one event loop. What a write means to the API is `writes`, how a kind is followed is
`informer`, what the wire does to a request is `http`.
"""

from __future__ import annotations

from builtins import list as List  # noqa: N812 - `list` is what the port calls its listing
from collections.abc import Callable, Collection
from types import TracebackType

from enbloc.api.meta import Obj
from enbloc.api.writes import WatchEvent, Write

IN_FLIGHT = 64
"""How many requests may be under way at once; watches are not counted."""


class KubeCluster:
    """A cluster behind an API server. An async context manager: leaving it closes it."""

    async def start(self, kinds: Collection[str], observe: Callable[[WatchEvent], None]) -> None:
        """Lists every served kind of `kinds` (Pods last) and calls `observe` with ADDED for each object; returns when
        all of that is in. From then on `observe` is called, in this event loop, for whatever happens.

        Kinds that the cluster does not serve are left out; they are followed from when they appear. The events of one
        object are always ADDED, any number of MODIFIED, DELETED: a namesake with another UID is DELETED and ADDED.
        Raises `Refused` if the cluster cannot be listed.
        """
        raise NotImplementedError

    async def execute(self, write: Write) -> Obj | None:
        """Carries one write out; returns the object as it is now, where the API tells (a BindPod gives `None`).

        Raises `Refused`. Retries by itself, within a bound of seconds, what may be tried again (429, 5xx, a lost
        connection). A refusal with code 504 means that nobody knows whether it was carried out: the watch will tell.
        """
        raise NotImplementedError

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        """One object as it is now; `None` if there is none, or its kind is not served. Raises `Refused`."""
        raise NotImplementedError

    async def list(self, kind: str, namespace: str | None = None) -> List[Obj]:
        """All objects of a kind as they are now, by namespace and name; empty if it is not served. Raises `Refused`."""
        raise NotImplementedError

    def healthy(self) -> bool:
        """Whether every watch is connected, or was a moment ago, and nobody who observes has failed."""
        raise NotImplementedError

    async def close(self) -> None:
        """Ends the watches and closes every connection. Writes under way are cut off."""
        raise NotImplementedError

    async def __aenter__(self) -> KubeCluster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def connect(kubeconfig: str | None, context: str | None, *, in_flight: int = IN_FLIGHT) -> KubeCluster:
    """A cluster by kubeconfig and context: the file given, else `$KUBECONFIG`, else `~/.kube/config`, else what a pod
    is given inside its cluster. Raises `NoCredentials` (see `credentials`) with one line for the user, or `Refused`.
    """
    raise NotImplementedError
