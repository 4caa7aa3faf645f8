"""Fills in what `sim` says of gangs that wait: remedies that were tried, the expected start and what it assumes."""

from __future__ import annotations

from typing import Final

from enbloc.advice.case import Case
from enbloc.advice.remedies import remedies, shown
from enbloc.advice.start_assumption import assumption
from enbloc.advice.trials import Trials
from enbloc.engine.core.tables.tasks import GangState
from enbloc.sim.result import CUT_OFF, UNTIL, Result
from enbloc.sim.simulation import Simulation
from enbloc.units import SECOND

ADVISED: Final = 20
"""Remedies are tried for the first gangs of the list."""


def advise(simulation: Simulation, result: Result) -> None:
    """Adds `remedies`, `expected_start` and `assumption` to the gangs that wait after a run. Changes are made at its
    end; times are seconds since its start."""
    pending = result.pending
    if not pending or result.ended == CUT_OFF:
        return
    now_s = simulation.elapsed_ns / SECOND if result.ended == UNTIL else result.end
    trials = Trials(result.objects, simulation.begin_ns + round(now_s * SECOND), simulation.config)
    starts = trials.forecast([entry["gang"] for entry in pending])
    gangs = {
        (gang.spec.title, gang.spec.dialect or gang.key.dialect): gang for gang in trials.engine.state.gangs.values()
    }
    for entry in pending:
        entry.update(remedies=None, expected_start=None, assumption="")
        start_ns = starts.get(entry["gang"])
        if start_ns is not None:
            entry["expected_start"] = now_s + start_ns / SECOND
    advised = [(gang, entry) for entry in pending[:ADVISED] if (gang := gangs.get((entry["gang"], entry["dialect"])))]
    for gang, entry in sorted(advised, key=lambda one: _served(one[0])):
        case = Case(trials.simulation.store, trials.engine, simulation.config, gang)
        start_ns = starts.get(entry["gang"])
        found = remedies(case, trials, start_ns)
        entry["remedies"] = shown(found, lambda after_ns: now_s + after_ns / SECOND)
        entry["assumption"] = assumption(case, start_ns is not None)


def _served(gang: GangState) -> tuple[int, int, str]:
    """The first is tried first: what does not help it does not help those of its shape behind it."""
    return (-gang.priority, gang.spec.created_ns, gang.spec.title)
