"""What limits where a gang's tasks may be placed besides filters, free resources and queues: room kept for other gangs.

Built by the caller for one attempt and passed down as an argument; nothing is remembered between attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, NamedTuple

from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import Task
from enbloc.engine.events import EventKind

CLOSED_WAKES_ON: Final = frozenset({EventKind.NODES_REOPENED, EventKind.FORECAST_CHANGED})
"""Events after which fewer rows may be closed to a gang."""

ClosedRows = Callable[[Task], Sequence[tuple[str, Bools]]]
"""Rows that a task may not use, each mask with the reason that is reported for them."""

Shadow = Callable[[int | None], AbstractContextManager[None]]
"""For a task of this run time: while the context lasts, the room that gangs before it need at their forecast start is
taken (backfill in mode `easy` or `conservative`)."""


def no_shadow(run_time_ns: int | None) -> AbstractContextManager[None]:
    return nullcontext()


class Constraints(NamedTuple):
    closed: ClosedRows | None = None
    """Rows reserved for other gangs (R5), or needed by partially bound ones (G11)."""
    shadow: Shadow = no_shadow
    starts: bool = True
    """Whether tasks that are placed start now. Held ones do not (K6): when they end is not known (R8)."""

    def closing(self, reason: str, rows: Bools) -> Constraints:
        """These constraints, with more rows closed."""
        before = self.closed

        def closed(task: Task) -> list[tuple[str, Bools]]:
            return [*(before(task) if before is not None else ()), (reason, rows)]

        return self._replace(closed=closed)

    def kept_from(self, task: Task) -> AbstractContextManager[None]:
        """While the context lasts, room that the task may not use before gangs that come first is taken."""
        return self.shadow(task.run_time_ns if self.starts else None)

    def closed_rows(self, task: Task) -> Bools | None:
        """All rows that are closed to a task; `None`: none is."""
        found: Bools | None = None
        for _, rows in self.closed(task) if self.closed is not None else ():
            found = rows if found is None else found | rows
        return found

    def open_rows(self, task: Task, passing: Bools) -> Bools:
        """Those of the rows that pass the task's filters that are not closed to it, whether there is room or not."""
        closed = self.closed_rows(task)
        return passing if closed is None else passing & ~closed[: len(passing)]


UNCONSTRAINED = Constraints()
