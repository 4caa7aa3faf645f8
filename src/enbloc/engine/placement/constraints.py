"""What limits where a gang's tasks may be placed besides filters, free resources and queues: room kept for other gangs.

Built by the caller for one attempt and passed down as an argument; nothing is remembered between attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple

from enbloc.engine.events import EventKind
from enbloc.engine.tables.resources import Bools
from enbloc.engine.tables.tasks import Task

CLOSED_WAKES_ON: Final = frozenset({EventKind.NODES_REOPENED, EventKind.FORECAST_CHANGED})
"""Events after which fewer rows may be closed to a gang."""

ClosedRows = Callable[[Task], Sequence[tuple[str, Bools]]]
"""Rows that a task may not use, each mask with the reason that is reported for them."""

Shadow = Callable[[Task], AbstractContextManager[None]]
"""While the context lasts, the room that the head of the queue needs at its shadow time is taken (EASY backfill)."""


def no_shadow(task: Task) -> AbstractContextManager[None]:
    return nullcontext()


class Constraints(NamedTuple):
    closed: ClosedRows | None = None
    """Rows reserved for other gangs (R5), or needed by partially bound ones (G11)."""
    shadow: Shadow = no_shadow

    def closing(self, reason: str, rows: Bools) -> Constraints:
        """These constraints, with more rows closed."""
        before = self.closed

        def closed(task: Task) -> list[tuple[str, Bools]]:
            return [*(before(task) if before is not None else ()), (reason, rows)]

        return self._replace(closed=closed)

    def closed_rows(self, task: Task) -> Bools | None:
        """All rows that are closed to a task; `None`: none is."""
        found: Bools | None = None
        for _, rows in self.closed(task) if self.closed is not None else ():
            found = rows if found is None else found | rows
        return found


UNCONSTRAINED = Constraints()
