"""Whole simulations in this process: documents in, what `enbloc sim -o json` or `enbloc lint` would print out."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from enbloc.admission.settings import settings_of
from enbloc.config import Config, parse
from enbloc.scenario.documents import Document
from enbloc.scenario.scenario import read_scenario
from enbloc.sim import linting
from enbloc.sim.simulation import Records, Simulation, control_plane
from enbloc.units import parse_duration
from support.answers import Answer

Obj = dict[str, Any]
Documents = Obj | Iterable[Obj]
MakePlane = Callable[[Any, Config], Any]

NO_EVICTIONS = {"actions": "enqueue, allocate, backfill"}
"""No gang preempts, reclaims or reserves."""
NO_ENQUEUE = {"actions": "allocate, backfill"}
"""PodGroups are allocated whatever their phase, and no gang preempts, reclaims or reserves."""
NO_BACKFILL = {"actions": "enqueue, allocate"}


def flat(*values: Documents) -> list[Obj]:
    """Copies of the documents, which may be given in lists."""
    found: list[Obj] = []
    for value in values:
        found.extend([value] if isinstance(value, dict) else value)
    return copy.deepcopy(found)


def documents(*values: Documents) -> list[Document]:
    """The documents as if they were read from one file."""
    return [Document("scenario.yaml", number, value) for number, value in enumerate(flat(*values), 1)]


def simulate(
    *values: Documents,
    config: Mapping[str, Any] | None = None,
    until: str | None = None,
    plane: MakePlane = control_plane,
    records: Records = Records.STRIPPED,
) -> Answer:
    """Runs the documents; `plane` may put something between the control plane and its cluster. `records`: what becomes
    of our own annotations in them."""
    simulation = Simulation(read_scenario(documents(*values)), parse(config), plane, records)
    result = simulation.run(parse_duration(until) if until else None)
    assert result.ended != "cut-off", result.reason
    out = io.BytesIO()
    result.write_json(out)
    return Answer(json.loads(out.getvalue()))


def lint(*values: Documents, config: Mapping[str, Any] | None = None) -> linting.Linted:
    return linting.lint(documents(*values), settings_of(parse(config), alone=True))
