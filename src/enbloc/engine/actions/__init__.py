"""The steps of a cycle: one action a file, each a function of the engine, run in the order of the config."""

from __future__ import annotations

from collections.abc import Callable

from enbloc.engine.actions import allocate, backfill, enqueue, preempt, reclaim, reserve
from enbloc.engine.engine import Engine

ACTIONS: dict[str, Callable[[Engine], None]] = {
    "enqueue": enqueue.run,
    "allocate": allocate.run,
    "backfill": backfill.run,
    "preempt": preempt.run,
    "reclaim": reclaim.run,
    "reserve": reserve.run,
}
