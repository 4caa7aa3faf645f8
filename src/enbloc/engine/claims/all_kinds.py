"""The claims of the engine: the registry with the policies of all kinds."""

from __future__ import annotations

from collections.abc import Mapping

from enbloc.engine.claims.evicted_gangs import EvictedGangs
from enbloc.engine.claims.holds import Holds
from enbloc.engine.claims.nominations import Nominations
from enbloc.engine.claims.registry import ClaimRegistry, Decide
from enbloc.engine.claims.reservations import Reservations
from enbloc.engine.claims.waves import Waves
from enbloc.engine.state.groups import Groups
from enbloc.engine.state.state import State
from enbloc.engine.tables.tasks import GangState, Task


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

    def reserved(self, gang: GangState) -> Mapping[str, str]:
        """Task UID → node."""
        return self.reservations.of(gang)

    def nominated(self, gang: GangState) -> list[Task]:
        return self.nominations.of(gang)
