"""Gangs whose decision was carried out only in part are completed, or start over (G11).

Such a gang (`gang_read`) keeps the nodes that it needs from gangs of equal or lower priority (`filter`) until it is
complete. After `partialGangTimeout` (`due`) its bound pods are evicted (`cycle_ends`), and it is scheduled again. That
the last Binding of a decision carries its mark is `core/commits`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from enbloc.engine.core.commits import update_satisfied
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import Units
from enbloc.engine.core.tables.resources import Bools
from enbloc.engine.core.tables.tasks import GangState, TaskStatus, pending_tasks
from enbloc.engine.core.why.diagnosis import KEPT_FOR_PARTIAL
from enbloc.engine.decisions import Decision, Evict
from enbloc.engine.events import EventKind
from enbloc.gangs.model import GangKey


class PartialGangs(Feature):
    """The partially bound gangs."""

    def __init__(self, state: State, units: Units, timeout_ns: int, decide: Callable[[Decision], None]) -> None:
        self._state = state
        self._units = units
        self._decide = decide
        self._timeout_ns = timeout_ns
        self._gangs: dict[GangKey, GangState] = {}
        self._now_ns = 0

    def constrains_by_order(self) -> bool:
        return bool(self._gangs)

    def due(self) -> int | None:
        """When the first of them times out."""
        since = [gang.partial_since_ns for gang in self._gangs.values() if gang.partial_since_ns is not None]
        return min(since) + self._timeout_ns if since else None

    def gang_read(self, gang: GangState) -> None:
        """Tracks the gang if a decision of ours bound some of its pods and was never completed. A bound pod without an
        id of ours shows that it may have been bound otherwise: then nothing is closed or evicted for it (S2)."""
        bound = [task for task in gang.tasks.values() if task.status is TaskStatus.BOUND]
        partial = (
            not gang.covered
            and bool(bound)
            and all(task.decision and not task.mark for task in bound)
            and not any(task.status is TaskStatus.ASSUMED for task in gang.tasks.values())
        )
        if not partial:
            self.release(gang)
        elif gang.partial_since_ns is None:
            gang.partial_since_ns = self._now_ns
            self._gangs[gang.key] = gang

    def cycle_begins(self, now_ns: int) -> None:
        """Reads gangs again that may be complete by now, or gone."""
        self._now_ns = now_ns
        for gang in list(self._gangs.values()):
            if self._state.gangs.get(gang.key) is not gang:
                self.release(gang)
            elif any(mate.key in self._state.dirty for mate in self._units.mates(gang)):
                update_satisfied(self._state, gang, self._units.of(gang))
                self.gang_read(gang)
                self._state.events.add(EventKind.NODES_REOPENED)  # it may need other nodes now

    def release(self, gang: GangState) -> None:
        """Other gangs may use the nodes that the gang needed."""
        gang.partial_since_ns = None
        if self._gangs.pop(gang.key, None) is not None:
            self._state.events.add(EventKind.NODES_REOPENED)

    def filter(self, gang: GangState) -> Sequence[tuple[str, Bools]]:
        """Rows that a partial gang of equal or higher priority needs and this gang must not use. Of two partial gangs
        the first in order goes first, so that they do not wait for each other."""
        closed: Bools | None = None
        for other in self._gangs.values():
            mates = self._units.mates(other)
            if any(mate is gang for mate in mates) or other.priority < gang.priority:
                continue
            if gang.partial_since_ns is not None and _order_of(gang) < _order_of(other):
                continue
            for task in [task for mate in mates for task in pending_tasks(mate)]:
                passing = self._state.candidates(task.cls).passing()
                closed = passing if closed is None else closed | passing
        return [(KEPT_FOR_PARTIAL, closed)] if closed is not None else []

    def cycle_ends(self, now_ns: int) -> None:
        """Evicts the bound pods of gangs that timed out."""
        for gang in list(self._gangs.values()):
            if gang.partial_since_ns is None or now_ns < gang.partial_since_ns + self._timeout_ns:
                continue
            if any(task.status is TaskStatus.ASSUMED for task in gang.tasks.values()):
                continue  # being completed in this cycle
            message = f"gang {gang.spec.title} was bound only partially and was not completed in time"
            for task in gang.tasks.values():
                if task.status is TaskStatus.BOUND:
                    self._decide(Evict(gang.key, task.namespace, task.name, task.uid, "PartialGang", message))
            self.release(gang)


def _order_of(gang: GangState) -> tuple[int, int, GangKey]:
    """Which of two partially bound gangs goes first; not the order of G8, which plugins bear on."""
    return (-gang.priority, gang.spec.created_ns, gang.key)
