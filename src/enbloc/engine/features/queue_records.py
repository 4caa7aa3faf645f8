"""Records that a feature keeps on Queues, so that a restart changes nothing (I5).

Records are adopted in the first cycle; from then on memory counts (S2). One is written again when the one before it has
come back as an event: so one write a queue is under way, whatever the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.decisions import Decision, RecordLapses, RecordUsage

R = TypeVar("R")


class QueueRecords(Feature, Generic[R]):
    def __init__(
        self, state: State, decide: Callable[[Decision], None], record: type[RecordUsage] | type[RecordLapses]
    ) -> None:
        """`record`: the decision that writes one."""
        self._state = state
        self._decide = decide
        self._decision = record
        self._begun = False
        self._adopted: dict[str, R] = {}
        """By queue: records that were observed before the first cycle."""
        self._unwritten: set[str] = set()
        """Queues whose record is out of date."""
        self._under_way: dict[str, R] = {}
        """By queue: a record that was written and not seen yet."""

    def observe(self, queue: str, record: R | None) -> None:
        """A Queue carries this record, which counts. From the first cycle on it only shows what was written."""
        if not self._begun:
            self._adopted.pop(queue, None)
            if record is not None:
                self._adopted[queue] = record
        elif queue in self._under_way and self._under_way[queue] == record:
            del self._under_way[queue]

    def forget(self, queue: str) -> None:
        """A Queue is gone, and its record with it."""
        self._adopted.pop(queue, None)
        self._under_way.pop(queue, None)

    def refused(self, decision: Decision, uid: str) -> None:
        if isinstance(decision, self._decision):
            self._under_way.pop(decision.queue, None)
            self._unwritten.add(decision.queue)

    def busy(self) -> bool:
        return not self._unwritten <= self._under_way.keys()

    def _to_write(self) -> Iterator[str]:
        """The queues whose records are to be written now."""
        for queue in sorted(self._unwritten - self._under_way.keys()):
            self._unwritten.discard(queue)
            if self._state.queues.get(queue).exists:
                yield queue
