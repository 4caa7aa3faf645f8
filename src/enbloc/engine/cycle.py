"""One pass of the engine: what changed is taken in, then the actions run as the config lists them."""

from __future__ import annotations

from enbloc.engine.actions import ACTIONS
from enbloc.engine.decisions import Decision
from enbloc.engine.engine import Engine


def cycle(engine: Engine, now: int) -> list[Decision]:
    """Decides all that can be decided now. On an unchanged cluster that is nothing, at no cost (G9)."""
    engine.begin(now)
    for action in engine.config.actions:
        run = ACTIONS.get(action.name)
        if run is not None:
            run(engine)
    return engine.end()
