"""backfill: gangs whose tasks ask for nothing (BestEffort) go where there is a place left."""

from __future__ import annotations

from enbloc.engine.actions.allocate import place_all
from enbloc.engine.engine import Engine


def run(engine: Engine) -> None:
    place_all(engine, engine.backfilling)
