"""Simulations with advice, and remedies that are followed: the change is made when the run ended."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from enbloc.advice.advise import advise
from enbloc.config import parse
from enbloc.scenario.scenario import read_scenario
from enbloc.sim.simulation import Simulation
from enbloc.units import parse_duration
from support.answers import Answer
from support.simulation import Documents, documents, flat, simulate


def advised(*values: Documents, config: Mapping[str, Any] | None = None, until: str | None = None) -> Answer:
    """What `enbloc sim -o json` prints."""
    simulation = Simulation(read_scenario(documents(*values)), parse(config))
    result = simulation.run(parse_duration(until) if until else None)
    assert result.ended != "cut-off", result.reason
    advise(simulation, result)
    out = io.BytesIO()
    result.write_json(out)
    return Answer(json.loads(out.getvalue()))


def followed(
    *values: Documents, remedy: Mapping[str, Any], at_s: float, config: Mapping[str, Any] | None = None
) -> Answer:
    """The same scenario in which a remedy is followed just after a time, until the gang is said to start."""
    steps = [{**step, "at": _just_after(at_s)} for step in remedy["steps"]]
    return simulate(flat(*values), steps, config=config, until=_just_after(remedy["starts_at"]))


def _just_after(at_s: float) -> str:
    """A millisecond later: events of a scenario come before what timers do at the same instant."""
    return f"{round(at_s * 1000) + 1}ms"
