"""How writes reach an API server. The executor and the status writer run over a transport and do not know which.

`ImmediateTransport` is for an API in this process: every write is answered before the next, at one instant of time. The
other one, for an API server over a network, is in `live_transport`.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from enbloc.api.meta import Obj, name_of, uid_of
from enbloc.api.writes import Write
from enbloc.cluster.port import Cluster
from enbloc.units import SECOND

if TYPE_CHECKING:  # virtual time has no event loop, and importing one takes as long as a small simulation
    from asyncio import Task

Result = TypeVar("Result")


class WritePriority(IntEnum):
    COMPLETION = 0
    """The later writes of a decision whose first were sent: a gang is complete before the next one begins. Otherwise
    the last Binding of each gang of a backlog would wait behind the first ones of all."""
    DECISION = 1
    """Bindings, claims, evictions, phases."""
    CONTROLLER = 2
    """What controllers create, patch and delete."""
    STATUS = 3
    """Conditions and Events."""


MOST_STATUS: Final = 4
"""At most this many status writes under way: they are not urgent."""


class Transport(Protocol):
    """Sends writes, and runs the coroutines that wait for their answers."""

    hold_s: float
    """How long a status update is held before it is sent."""

    def time_s(self) -> float:
        """A clock that only goes forward."""
        ...

    def start(self, work: Coroutine[Any, Any, Result]) -> Task[Result] | None:
        """Runs a coroutine; `None`: it has finished already."""
        ...

    async def wait(self, tasks: Collection[Task[Any]]) -> None:
        """Until all of these have ended."""
        ...

    async def send(self, write: Write, priority: WritePriority) -> Obj | None:
        """Carries a write out. Raises `Refused`; code 504 means that its outcome is unknown."""
        ...

    async def send_all(self, works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
        """The results of coroutines that each send writes."""
        ...

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None: ...

    def newest(self, obj: Obj) -> Obj:
        """The object as an answer has it whose watch event was not read yet; else as it is."""
        ...

    async def pause(self, seconds: float) -> bool:
        """Waits. False: no time passes (any more), another attempt would get the same answer."""
        ...


class ImmediateTransport:
    """Over a cluster in this process that answers at once. Time passes only between calls of `set_time`."""

    hold_s = 0.0

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._now_s = 0.0
        self.sent = 0
        """Writes that were accepted."""
        self._answers: dict[str, Obj] = {}
        """By UID: objects as the last write left them, until their watch events are read."""

    def set_time(self, now_ns: int) -> None:
        self._now_s = now_ns / SECOND

    def time_s(self) -> float:
        return self._now_s

    def start(self, work: Coroutine[Any, Any, Result]) -> None:
        try:
            work.send(None)
        except StopIteration:
            return
        raise AssertionError("a write over an immediate transport was not answered at once")

    async def wait(self, tasks: Collection[Task[Any]]) -> None:
        assert not tasks, "work over an immediate transport ends when it is started"

    async def send(self, write: Write, priority: WritePriority) -> Obj | None:
        made = self._cluster.execute(write)
        self.sent += 1
        if made is not None:
            self._answers[made["metadata"]["uid"]] = made
        return made

    async def send_all(self, works: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
        return [await work for work in works]

    async def get(self, kind: str, namespace: str, name: str) -> Obj | None:
        objects, _ = self._cluster.list(kind, namespace)
        return next((obj for obj in objects if name_of(obj) == name), None)

    def newest(self, obj: Obj) -> Obj:
        return self._answers.get(uid_of(obj), obj)

    def events_read(self) -> None:
        """All watch events up to now were observed."""
        self._answers.clear()

    async def pause(self, seconds: float) -> bool:
        return False
