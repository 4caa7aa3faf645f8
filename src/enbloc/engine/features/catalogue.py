"""The features of a config, in the fixed order in which they are asked. The only module that knows all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from enbloc.config import Config
from enbloc.engine.core.allocate import allocate, backfill
from enbloc.engine.core.claims.all_kinds import ClaimsOfAllKinds
from enbloc.engine.core.cycle import Cycle, take_claimed_room
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.placement.attempt import Placer
from enbloc.engine.core.plugins.plugin import Plugins
from enbloc.engine.core.state.state import State
from enbloc.engine.decisions import Decision
from enbloc.engine.features.admission import enqueue
from enbloc.engine.features.admission.deadlines import Deadlines
from enbloc.engine.features.backfill.conservative_backfill import ConservativeBackfill
from enbloc.engine.features.backfill.easy_backfill import EasyBackfill
from enbloc.engine.features.backfill.expected_start import ExpectedStarts
from enbloc.engine.features.backfill.planned_starts import PlannedStarts
from enbloc.engine.features.evict import preempt, reclaim
from enbloc.engine.features.groups.deadlocks import Deadlocks
from enbloc.engine.features.partial_allocations import PartialAllocations
from enbloc.engine.features.reserve import reserve
from enbloc.engine.features.reserve.reserved_nodes import ReservedNodes
from enbloc.engine.features.usage import Usage
from enbloc.engine.features.waves.later_room import LaterRoom

ACTIONS: Final[Mapping[str, Callable[[Cycle], None]]] = {
    "enqueue": enqueue.run,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt.run,
    "reclaim": reclaim.run,
    "reserve": reserve.run,
}
"""The actions of a cycle, in the words of the config."""


def of(
    config: Config,
    plugins: Plugins,
    state: State,
    placer: Placer,
    claims: ClaimsOfAllKinds,
    decide: Callable[[Decision], None],
    timers: Iterable[Feature],
    reviewers: Iterable[Feature],
) -> list[Feature]:
    """`timers`, `reviewers`: parts of the core. The former touch gangs whose time is over when a cycle begins, the
    latter look at gangs that were touched."""
    runs = {action.name for action in config.actions}
    mode = config.backfill.mode if "backfill" in runs else ""
    plans = mode in ("easy", "conservative")
    planning = (state, placer, lambda transaction, gang: take_claimed_room(placer, claims, transaction, gang))
    expected = ExpectedStarts(state, claims.reservations, decide)
    found = [*timers]
    if plugins.deadlines is not None:
        found.append(Deadlines(state, plugins.deadlines))
    found.append(LaterRoom(state, claims.waves, decide))  # before claims: it looks at the claim of a gang that is gone
    found += reviewers
    if "reserve" in runs:
        found.append(ReservedNodes())
    if mode == "easy":
        found.append(EasyBackfill(*planning, expected))
    if mode == "conservative":
        found.append(PlannedStarts(ConservativeBackfill(*planning), expected))
    found += [Deadlocks(), expected]
    if "backfill" not in runs:
        found.append(PartialAllocations(state))
    if plugins.fair is not None:
        found.append(Usage(state, plugins.fair, decide, plans=plans))
    return found
