"""Room for the later waves of a whole-job gang, claimed as its first wave starts, by itself or in a group (D5, K1)."""

from __future__ import annotations

from collections.abc import Sequence

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.engine.features.waves.later_room import LaterRoom
from enbloc.engine.features.waves.waves import Waves
from enbloc.listing import plural


def why_unrecordable(cycle: Cycle, gang: GangState, later: Sequence[Task]) -> Diagnosis | None:
    """Why the room that was found for its later pods cannot be claimed."""
    if cycle.features.get(Waves).check_record(gang, later):
        return None
    return diagnosis.problem(gang, f"the room of its {plural(len(later), 'later pod')} is too large to be recorded")


def claim(cycle: Cycle, gang: GangState, taken: Sequence[Task], later: Sequence[Task]) -> None:
    """The claim is written before any Binding relies on it. Others of its namespace may claim less then (S9)."""
    if later:
        cycle.features.get(Waves).keep(gang, taken, later, cycle.now_ns)
        later_room = cycle.features.find(LaterRoom)
        for other in later_room.outdated() if later_room is not None else ():
            cycle.intake.read(other)
