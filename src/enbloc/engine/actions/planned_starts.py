"""How gangs are served under conservative backfill: none delays the plan of a gang before it in its queue."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from enbloc.engine.actions.queue_loop import serve_all
from enbloc.engine.cycle import Cycle
from enbloc.engine.diagnosis import diagnosis
from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.forecast.conservative_backfill import ConservativeBackfill, PlannedQueue, heads
from enbloc.engine.ordering import Band, Order
from enbloc.engine.placement.constraints import Constraints
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass
from enbloc.engine.tables.tasks import GangState

Serve = Callable[[Cycle, GangState, Constraints], Diagnosis | None]


def place_in_plan(cycle: Cycle, backfill: ConservativeBackfill, serve: Serve) -> None:
    """Serves all gangs that wait for placement, and publishes when the others are planned to start."""
    queues: dict[str, PlannedQueue] = {}

    def serve_one(gang: GangState) -> Diagnosis | None:
        name = gang.spec.queue
        planned = queues.get(name)
        if planned is None:
            planned = queues[name] = _begin(cycle, backfill, name)
        planned.plan_before(cycle.order(gang, _band(gang)), cycle.constraints)
        nodes = cycle.state.nodes
        before = nodes.free[:, : nodes.count].copy()
        failure = serve(cycle, gang, _within(cycle, planned, gang))
        if failure is None:
            for one in queues.values():  # the room is gone for the plans of every queue
                one.note_bound(gang, before)
        elif not failure.of_queue:
            equivalence = cycle.queues.equivalence_of(gang)
            planned.add(_gangs(equivalence) if equivalence is not None else [])
        return failure

    serve_all(cycle, cycle.queues.placement, serve_one)
    for name in {one.queue for one in cycle.queues.placement.equivalences() if one.unschedulable}:
        if name not in queues:
            queues[name] = _begin(cycle, backfill, name)
    for planned in queues.values():
        planned.plan_before(None, cycle.constraints)
    cycle.parts.expected_starts.set_heads(heads(queues), cycle.now_ns)


def _begin(cycle: Cycle, backfill: ConservativeBackfill, name: str) -> PlannedQueue:
    planned = PlannedQueue(backfill, cycle.now_ns)
    for equivalence in cycle.queues.placement.in_queue(name):
        why = equivalence.diagnosis
        if equivalence.unschedulable and why is not None and not why.of_queue:
            planned.add(_gangs(equivalence))
    return planned


def _gangs(equivalence: EquivalenceClass) -> list[tuple[Order, GangState]]:
    """Of a class that waits for minima."""
    return [
        (order, entry.gang) for order, _, entry in equivalence.items if not entry.is_stale and order.band is Band.MINIMA
    ]


def _within(cycle: Cycle, planned: PlannedQueue, gang: GangState) -> Constraints:
    constraints = cycle.constraints(gang)
    if planned.is_full and gang.key not in planned.starts:
        return constraints.closing(diagnosis.KEPT_IN_TIME, np.ones(cycle.state.nodes.count, np.bool_))
    return constraints._replace(shadow=planned.shadow) if planned.is_in_the_way else constraints


def _band(gang: GangState) -> Band:
    return Band.SURPLUS if gang.ready() else Band.MINIMA
