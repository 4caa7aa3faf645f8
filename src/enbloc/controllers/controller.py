"""The protocol between a controller and the runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from enbloc.api.writes import Refused, WatchEvent, Write
from enbloc.faults import Faults


class Controller(Protocol):
    """Watches some kinds and returns the writes that bring the cluster to the desired state.

    All state of a controller is a cache of the API: a new one, filled by a list, decides the same.
    """

    faults: Faults[str]
    """What raised, by UID of the object that was reconciled (S8)."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds that it watches."""
        ...

    def observe(self, event: WatchEvent) -> None: ...

    def reconcile(self, now_ns: int) -> Iterable[Write]:
        """All writes that are due, in a fixed order; empty if there is nothing to do. It may be a generator: the
        runtime executes each write, and reports a refusal, before it asks for the next."""
        ...

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        """The API refused one of its writes. It is retried on an event or a timer, never in the same reconcile."""
        ...

    def due(self) -> int | None:
        """When to reconcile next if no event arrives, in nanoseconds; `None`: not before an event."""
        ...
