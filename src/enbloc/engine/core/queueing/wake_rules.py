"""Which cluster events can help a gang that waits (G9): the declarations of all that may keep it waiting, put together.

Filters, free room, volumes, queues and closed nodes each declare the kinds of events after which they may reject less,
beside what they check. A gang that failed wakes on the union of what concerns it, and on nothing else. Two kinds are
looked at more closely: freed room must be on a node that the gang could use, and a changed PersistentVolumeClaim one
that it names. The queues ask here; waking itself is left to `scheduling_queues`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from enbloc.engine.core.placement.attempt import WAKES_ON_PLACEMENTS
from enbloc.engine.core.placement.constraints import CLOSED_WAKES_ON
from enbloc.engine.core.placement.in_domains import TOPOLOGY_WAKES_ON
from enbloc.engine.core.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.headroom import FIT_WAKES_ON
from enbloc.engine.core.tables.queues import GUARANTEE_WAKES_ON, LIMIT_WAKES_ON, QUEUE_WAKES_ON
from enbloc.engine.core.tables.tasks import Task
from enbloc.engine.core.why.diagnosis import OUTDATED_BY
from enbloc.engine.events import VOLUME_EVENTS, EventKind

_ANY_GANG: Final = FIT_WAKES_ON | QUEUE_WAKES_ON | CLOSED_WAKES_ON | OUTDATED_BY

_EVICTIONS: Final = frozenset(
    {EventKind.POD_PLACED, EventKind.ROOM_FREED, EventKind.VICTIMS_CHANGED, EventKind.BUDGET_CHANGED}
)
"""What can change which pods may be evicted for a gang at admission (M6)."""

_LOOKED_AT_CLOSELY: Final = VOLUME_EVENTS | {EventKind.ROOM_FREED}


def at_admission(state: State, evicts: bool) -> frozenset[EventKind]:
    """For a gang that is not enqueued. `evicts`: preempt or reclaim run."""
    found = _ANY_GANG | LIMIT_WAKES_ON
    if state.queues.guarantees:
        found |= GUARANTEE_WAKES_ON
    return found | _EVICTIONS if evicts else found


def at_placement(
    state: State, equivalence: EquivalenceClass, tasks: Sequence[Task], *, together: bool
) -> frozenset[EventKind]:
    """For an equivalence class whose attempt failed. `tasks`: its pending tasks, unless it is monotone; `together`:
    whether they must or should be in one domain (T8). Of placements, one task that must be beside other pods, or is
    spread among them, is helped by those of such pods alone: the queues look at its `helpers`."""
    found = _ANY_GANG
    for ident in equivalence.classes:
        cls = state.classes.by_id[ident]
        found = found.union(state.candidates(cls).wakes_on(), state.volumes.wakes_on(cls))
    if together:
        found |= TOPOLOGY_WAKES_ON
    if not equivalence.monotone:
        placements = WAKES_ON_PLACEMENTS | state.stateful.wakes_on(tasks)
        has_helpers = equivalence.helpers is not None and len(tasks) == 1 and not together
        found |= placements - {EventKind.POD_PLACED} if has_helpers else placements
    if equivalence.diagnosis is not None and equivalence.diagnosis.of_queue:
        found |= LIMIT_WAKES_ON
        if state.queues.guarantees:
            found |= GUARANTEE_WAKES_ON
    return found


class Wakers:
    """The events since the last cycle, asked for every equivalence class that is unschedulable."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._kinds = frozenset(state.events.kinds)
        rows = state.nodes.rows
        freed = sorted(event.node for event in state.events.of(EventKind.ROOM_FREED))
        self._freed_rows = [rows[node] for node in freed if node in rows]
        self._frees_candidate: dict[int, bool] = {}
        """Task class → whether room was freed on one of its candidates."""
        self._volume_events = [event for kind in VOLUME_EVENTS for event in state.events.of(kind)]

    def could_help(self, equivalence: EquivalenceClass) -> bool:
        if equivalence.wakes_on.isdisjoint(self._kinds):
            return False
        happened = equivalence.wakes_on & self._kinds
        if not happened <= _LOOKED_AT_CLOSELY:
            return True
        if EventKind.ROOM_FREED in happened and not equivalence.monotone:
            return True
        return any(map(self._helps_class, equivalence.classes))

    def _helps_class(self, ident: int) -> bool:
        cls = self._state.classes.by_id[ident]
        if any(self._state.volumes.may_help(cls, event) for event in self._volume_events):
            return True
        if not self._freed_rows:
            return False
        if ident not in self._frees_candidate:
            keys = self._state.candidates(cls).keys()
            self._frees_candidate[ident] = any(keys[row] >= 0 for row in self._freed_rows)
        return self._frees_candidate[ident]
