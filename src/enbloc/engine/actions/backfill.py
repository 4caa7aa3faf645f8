"""backfill: gangs whose tasks request nothing (BestEffort) are placed where there is a place left."""

from __future__ import annotations

from enbloc.engine.actions.allocate import place_all
from enbloc.engine.cycle import Cycle


def run(cycle: Cycle) -> None:
    place_all(cycle, cycle.queues.best_effort)
