"""The features of a config, in the fixed order in which they are asked. The only module that knows all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from enbloc.engine.core.cycle import Cycle, Parts
from enbloc.engine.core.feature import Feature
from enbloc.engine.core.spine import allocate, backfill
from enbloc.engine.decisions import Decision
from enbloc.engine.features.admission import enqueue
from enbloc.engine.features.admission.deadlines import Deadlines
from enbloc.engine.features.admission.enqueue import Admission
from enbloc.engine.features.awaited.awaited_pods import AwaitedPods
from enbloc.engine.features.awaited.demand import QueueDemand
from enbloc.engine.features.backfill.conservative_backfill import ConservativeBackfill
from enbloc.engine.features.backfill.easy_backfill import EasyBackfill
from enbloc.engine.features.backfill.expected_start import ExpectedStarts
from enbloc.engine.features.evict.evict import preempt, reclaim
from enbloc.engine.features.evict.evictable import Immunity
from enbloc.engine.features.evict.history import EvictionHistory
from enbloc.engine.features.evict.nominations import EvictedGangs, Nominations
from enbloc.engine.features.evict.preempt_by_order import PreemptByOrder
from enbloc.engine.features.groups.deadlocks import Deadlocks
from enbloc.engine.features.groups.holds import Holds
from enbloc.engine.features.groups.min_resources import MinResources
from enbloc.engine.features.partial_allocations import PartialAllocations
from enbloc.engine.features.partial_gangs import PartialGangs
from enbloc.engine.features.reserve import reserve
from enbloc.engine.features.reserve.reservations import Reservations
from enbloc.engine.features.reserve.reserved_nodes import ReservedNodes
from enbloc.engine.features.reserve.starvation import Starvation
from enbloc.engine.features.sub_groups import SubGroups
from enbloc.engine.features.usage import Usage
from enbloc.engine.features.waves.later_room import LaterRoom
from enbloc.engine.features.waves.later_waves import LaterWaves
from enbloc.engine.features.waves.waves import Waves

ACTIONS: Final[Mapping[str, Callable[[Cycle], None]]] = {
    "enqueue": enqueue.run,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
    "reserve": reserve.run,
}
"""The actions of a cycle, in the words of the config."""


def of(parts: Parts, decide: Callable[[Decision], None]) -> list[Feature]:
    """The parts of the core that keep facts between cycles, and the rules that the config asks for."""
    config, plugins, state, units, claims = parts.config, parts.plugins, parts.state, parts.units, parts.claims
    runs = {action.name for action in config.actions}
    mode = config.backfill.mode if "backfill" in runs else ""
    waves = Waves(state, claims, config.depends_on.gang_deadline_ns)
    holds = Holds(state, claims, units, parts.order, parts.obstacles, parts.reporter, decide)
    later_room = LaterRoom(state, waves, decide)
    found: list[Feature] = [
        parts.intake,
        parts.queues,
        parts.commits,
        PartialGangs(state, units, config.partial_gang_timeout_ns, decide),
        QueueDemand(state, waves, config.enqueue.expect_pods_within_ns),
        AwaitedPods(parts.order, state.demand),
    ]
    if "enqueue" in runs:
        found.append(Admission())
    if plugins.deadlines is not None:
        found.append(Deadlines(state, plugins.deadlines))
    if "reserve" in runs:
        found += [Starvation(state, config.reserve.starving_after_ns), ReservedNodes()]
        found.append(Reservations(state, claims, units))
    if runs & {"preempt", "reclaim"}:
        evicted = EvictedGangs(state, claims)
        found += [Nominations(state, claims, units, evicted), evicted]
    if config.preempt.by == "order":
        found.append(PreemptByOrder())
    immunity = Immunity(state, config.tenancy.longest_cooldown_ns)
    found += [
        later_room,  # before claims: it looks at the claim of a gang that is gone
        MinResources(state, admit_oversized=config.enqueue.admit_oversized),
        claims,
        waves,
        LaterWaves(waves, later_room),
        SubGroups(),
        holds,
        immunity,
        EvictionHistory(state, decide, immunity),
    ]
    if mode == "easy":
        found.append(EasyBackfill(state))
    if mode == "conservative":
        found.append(ConservativeBackfill())
    found += [Deadlocks(), ExpectedStarts(state, claims.closing, decide)]
    if "backfill" not in runs:
        found.append(PartialAllocations(state))
    if plugins.fair is not None:
        found.append(Usage(state, plugins.fair, decide, plans=mode in ("easy", "conservative")))
    return [*found, parts.reporter]
