"""How many objects may say why they wait with other numbers, in a span of time: a bound on writes, however many gangs
wait (G10).

With each wave of jobs that ends, what is missing is another number for every gang that waits. To write all of them and
their pods each time costs the square of the backlog, and on a live cluster more requests than the Bindings do. Those
beyond the bound come later, the longest late first: what is written last is always what holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.gangs.model import GangKey
from enbloc.units import SECOND

SPAN_NS: Final = 30 * SECOND
OBJECTS_PER_SPAN: Final = 64


class Report(NamedTuple):
    """What a gang has to say."""

    gang: GangState
    why: Diagnosis
    of_gang: bool


class Rewrites:
    """A bounded number of objects per span of time, and the reports that have to wait. Objects of a report are written
    together: what is beyond the bound is owed by later spans, and no gang is too large for it."""

    def __init__(self) -> None:
        self._left = OBJECTS_PER_SPAN
        self._ends_ns = 0
        self._late: dict[GangKey, Report] = {}

    def admit(self, report: Report, objects: int, now_ns: int) -> bool:
        """Whether that many `objects` may be written now; else the report is late, with the latest of its gang."""
        key = report.gang.key
        if key not in self._late and not self._late and self._take(objects, now_ns):
            return True
        self._late[key] = report
        return False

    def renew(self, report: Report) -> None:
        """What a late report says by now."""
        if report.gang.key in self._late:
            self._late[report.gang.key] = report

    def drop(self, key: GangKey) -> None:
        self._late.pop(key, None)

    def admitted(self, now_ns: int, objects: Callable[[GangState], int]) -> Iterator[Report]:
        """Late reports whose time has come; `objects`: how many each writes."""
        for key, report in list(self._late.items()):
            if not self._take(objects(report.gang), now_ns):
                return
            del self._late[key]
            yield report

    def due_ns(self) -> int | None:
        """When the next late report may be written."""
        return self._ends_ns + max(0, -self._left) // OBJECTS_PER_SPAN * SPAN_NS if self._late else None

    def _take(self, objects: int, now_ns: int) -> bool:
        if now_ns >= self._ends_ns:
            spans = 1 + (now_ns - self._ends_ns) // SPAN_NS
            self._left = min(OBJECTS_PER_SPAN, self._left + spans * OBJECTS_PER_SPAN)
            self._ends_ns = now_ns + SPAN_NS
        if self._left <= 0:
            return False
        self._left -= objects
        return True
