"""R5: a gang that fits only on nodes reserved for gangs of lower priority starts there; those are reserved others."""

from __future__ import annotations

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.queueing.scheduling_queue import SchedulingQueue
from enbloc.engine.core.spine import attempt_unit
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.reserve.reserve import mend


class ReservedNodes(Feature):
    def post_filter(
        self, cycle: Cycle, queue: SchedulingQueue, gang: GangState, constraints: Constraints, failure: Diagnosis
    ) -> bool:
        """Its minima, or replacements of lost members, not surplus. Nodes of the lowest priority are tried first."""
        closing = cycle.claims.closing
        if not closing or failure.waits_for_gangs or gang.need.ready or gang.need.missing:
            return False
        unit = cycle.starting(gang)
        below = min((one.priority for one in unit), default=0)
        for level in sorted({one.priority for one in closing.gangs() if one.priority < below}) if unit else ():
            lower = closing.lower_than(level + 1)
            there = cycle.constraints(gang, lower)._replace(shadow=constraints.shadow)
            if attempt_unit(cycle, gang, there) is None:
                mend(cycle, lower, unit)
                return True
        return False
