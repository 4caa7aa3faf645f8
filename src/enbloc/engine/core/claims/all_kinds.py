"""The claims of the engine: the registry with the policies of all kinds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from enbloc.engine.core.claims.registry import ClaimRegistry, Decide
from enbloc.engine.core.feature import UNSIGNABLE
from enbloc.engine.core.state.groups import Groups
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.core.why.diagnosis import RESERVED, Diagnosis
from enbloc.engine.features.evict.evicted_gangs import EvictedGangs
from enbloc.engine.features.evict.nominations import Nominations
from enbloc.engine.features.groups.holds import Holds
from enbloc.engine.features.reserve.reservations import Reservations
from enbloc.engine.features.waves.waves import Waves
from enbloc.gangs.claim_records import ClaimKind
from enbloc.listing import listed


class ClaimsOfAllKinds(ClaimRegistry):
    def __init__(self, state: State, groups: Groups, wave_deadline_ns: int, decide: Decide) -> None:
        super().__init__(state, decide)
        self.mates, self.group = groups.partners, groups.mates
        self.waves = Waves(state, self, wave_deadline_ns)
        self.holds = Holds(state, groups, self)
        self.reservations = Reservations(state, self)
        self.evicted = EvictedGangs(self)
        self.nominations = Nominations(state, self, self.evicted)
        for policy in (self.waves, self.holds, self.reservations, self.nominations, self.evicted):
            self.add_policy(policy)

    def sign(self, gang: GangState) -> Hashable:
        """A gang with room of its own is equal to no other. Its priority decides which reserved nodes it uses (R5)."""
        if any(self.of(gang, kind) for kind in (ClaimKind.WAVE, ClaimKind.RESERVE, ClaimKind.PREEMPT)):
            return UNSIGNABLE
        return gang.priority if self.reservations else 0

    def separates_run_times(self) -> bool:
        return bool(self.reservations)

    def constrains_by_order(self) -> bool:
        return bool(self.reservations)

    def in_the_way(self, gang: GangState, why: Diagnosis) -> Iterator[tuple[GangState, str]]:
        if any(one.reason == RESERVED for one in why.reasons):
            for other in self.reservations.gangs():
                if other is not gang:
                    yield other, "has nodes reserved that it could use"

    def about_room(self, gang: GangState) -> Iterator[str]:
        yield from self.notes_of(gang)
        reserved = self.reservations.of(gang)
        nodes = sorted({*reserved.values(), *(task.node for task in self.nominations.of(gang))})
        if nodes:
            yield f"room {'is reserved' if reserved else 'is being freed'} for it on {listed(nodes, 5)}"
