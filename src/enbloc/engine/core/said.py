"""What each of the gangs says that start together and were attempted in vain (G10, K7)."""

from __future__ import annotations

import msgspec

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.state.units import Unit
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.gangs.model import GangKey


def said_by_each(cycle: Cycle, gang: GangState, failure: Diagnosis) -> Diagnosis:
    """Once it is known what stays held: what each of the gangs says that start together."""
    unit = cycle.units.of(gang)
    if failure.attempted_with_others:
        return _of_each(cycle, unit, failure)
    return cycle.obstacles.why_incomplete(unit, gang) if failure.waits_for_gangs else failure


def _of_each(cycle: Cycle, unit: Unit, failure: Diagnosis) -> Diagnosis:
    """What a gang lacks itself, else which other one does; and how many of its pods are held. Those that were not
    attempted have a minimum of 0, or only surplus waits."""
    gangs = unit.to_start(cycle.order)
    found: dict[GangKey, Diagnosis] = {}
    lacking = failure.of_gangs or {gangs[0].key: failure}
    for_nodes = all(map(diagnosis.nodes_would_help, lacking.values()))
    for gang in unit.gangs:
        why = lacking.get(gang.key)
        if gang not in gangs and not gang.total_pending:
            why = diagnosis.timed_out(gang)
        elif why is None and (failure.of_gangs or gang not in gangs):
            why = diagnosis.waits_for_others(gang, (), cycle.state.gangs, lacking, cycle.titles)
        why = msgspec.structs.replace(
            why or failure, attempted_with_others=gang in gangs, needs_other_than_nodes=not for_nodes
        )
        found[gang.key] = diagnosis.with_held(gang, why)
    return msgspec.structs.replace(failure, of_gangs=found)
