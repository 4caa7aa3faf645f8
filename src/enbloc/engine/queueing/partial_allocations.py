"""What a gang got that could not get enough: it goes to nobody else within that cycle (A2).

Only gangs that ask for it keep what they got, and only where `backfill` does not run. The room is taken by a
transaction that stays open while others are placed; whoever makes room or reserves nodes after that sees the cluster as
it is. Such a gang is tried whenever anybody else is, or its room would go to whoever comes next; when it keeps nothing
any more, those it stood in the way of are woken.
"""

from __future__ import annotations

from enbloc.engine.diagnosis.diagnosis import Diagnosis
from enbloc.engine.queueing.scheduling_queue import EquivalenceClass, SchedulingQueue
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.model import GangKey


class PartialAllocations:
    """Who keeps what, in the cycle that is under way and since the last one."""

    def __init__(self, state: State, backfills: bool) -> None:
        self._state = state
        self._backfills = backfills
        self._open: list[tuple[GangState, Transaction, Diagnosis]] = []
        self._keepers: dict[GangKey, GangState] = {}

    def applies_to(self, gang: GangState) -> bool:
        return gang.spec.keep_partial_allocation and not self._backfills

    def see_again(self) -> None:
        """Before anyone is woken: a keeper that changed or went may have let go."""
        for key, gang in list(self._keepers.items()):
            if self._state.gangs.get(key) is not gang or key in self._state.dirty:
                self.let_go(gang)

    def rouse(self, lane: SchedulingQueue) -> None:
        """If anybody is tried, so is everybody who kept something."""
        if self._keepers and lane.active():
            lane.wake(self._is_a_keepers)

    def _is_a_keepers(self, equivalence: EquivalenceClass) -> bool:
        head = equivalence.head()
        return head is not None and head[1].key in self._keepers

    def keep(self, gang: GangState, transaction: Transaction, told: Diagnosis) -> None:
        self._open.append((gang, transaction, told))
        self._keepers[gang.key] = gang

    def let_go(self, gang: GangState) -> None:
        """It has enough, or waits for something else."""
        if self._keepers.pop(gang.key, None) is not None:
            self._state.events.any = self._state.events.everything = True

    def give_back(self) -> list[tuple[GangState, Diagnosis]]:
        """Everybody was tried. Returns the gangs whose tasks wait again, and why."""
        given, self._open = self._open, []
        for _, transaction, _ in reversed(given):
            transaction.rollback()
        return [(gang, told) for gang, _, told in given]
