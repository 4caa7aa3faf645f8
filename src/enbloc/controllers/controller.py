"""What every controller offers the runtime."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from enbloc.api.writes import Refused, WatchEvent, Write


class Controller(Protocol):
    """Watches some kinds and says what should be written.

    Whatever a controller remembers is a cache of the API: thrown away and filled by a new list, it decides the same.
    """

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds whose events it wants to see."""
        ...

    def observe(self, event: WatchEvent) -> None: ...

    def reconcile(self, now: int) -> Iterable[Write]:
        """All that should be written now, in a fixed order; empty when there is nothing to do. It is read while it is
        carried out: a controller that makes it up as it goes hears of a refusal before its next write is asked for."""
        ...

    def refused(self, write: Write, error: Refused, now: int) -> None:
        """The API would not carry out one of its writes. It is tried again on an event or a timer, never at once."""
        ...

    def due(self) -> int | None:
        """When it wants to be called even if nothing happens."""
        ...
