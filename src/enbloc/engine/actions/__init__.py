"""The actions of a cycle, in the words of the config: each a function of the `Cycle`, one a file."""

from __future__ import annotations

from collections.abc import Callable

from enbloc.engine.actions import allocate, backfill, enqueue, preempt, reclaim, reserve
from enbloc.engine.cycle import Cycle

ACTIONS: dict[str, Callable[[Cycle], None]] = {
    "enqueue": enqueue.run,
    "allocate": allocate.run,
    "backfill": backfill.run,
    "preempt": preempt.run,
    "reclaim": reclaim.run,
    "reserve": reserve.run,
}
