"""Room for the later waves of a whole-job gang: found with the first wave, used by the later ones, let go (D5)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from enbloc.engine.claims.placeholders import Claims
from enbloc.engine.decisions import SetAside
from enbloc.engine.placement.attempt import Placer, take_places
from enbloc.engine.placement.request import PlacementRequest
from enbloc.engine.state.state import State
from enbloc.engine.state.transaction import Transaction
from enbloc.engine.tables.tasks import GangState, Task
from enbloc.gangs.claim_records import WAVE, Record


class Waves:
    """What is set aside for whom. Every change of it is a decision, so that it is written down."""

    def __init__(self, state: State, deadline: int, decide: Callable[[SetAside], None]) -> None:
        self._state = state
        self._deadline = deadline
        self._decide = decide
        self.claims = Claims(state)

    def due(self) -> int | None:
        return self.claims.due()

    def later_tasks(self, gang: GangState) -> list[Task]:
        """Of a whole-job gang that starts: tasks of its later waves for which no room is set aside yet."""
        if not gang.spec.later or gang.covered:
            return []
        known = self.claims.roles(gang)
        found = []
        for role, template in gang.spec.later.items():
            found += self.claims.ghosts(gang, role, template, max(0, template.count - known.get(role, 0)))
        return found

    def take(self, placer: Placer, request: PlacementRequest) -> tuple[Transaction, list[Task]]:
        """Tasks for which room was set aside take it; where it no longer suits them all of it is let go. Returns the
        ghosts whose places were taken."""
        transaction = Transaction(self._state)
        gang = request.gang
        ghosts = self.claims.of(gang)
        if not ghosts:
            return transaction, []
        taken = take_places(placer, transaction, request.needed, ghosts)
        if taken is None:
            transaction.rollback()
            self.let_go(gang, "ClaimDropped", "a pod differs from its template and does not fit where room was kept")
            return transaction, []
        return transaction, taken

    def keep(self, gang: GangState, taken: Sequence[Task], later: Sequence[Task], now: int) -> None:
        """A wave is placed: tasks took the places of ghosts, ghosts of later waves got theirs."""
        if not taken and not later:
            return
        self.claims.forget(gang, taken, holds_room=False)
        self.claims.adopt(gang, later, now + self._deadline)
        record = self.claims.record(gang)
        if later:
            nodes = len({ghost.node for ghost in later})
            self._write(
                gang, record, "ClaimMade", f"room for {len(later)} pods of later waves is kept on {nodes} nodes"
            )
        else:
            self._write(gang, record, "ClaimUsed", f"{len(taken)} pods took the room that was kept for them")

    def let_go(self, gang: GangState, reason: str, message: str) -> None:
        """What is set aside for a gang is for anybody again."""
        self.claims.forget(gang, list(self.claims.of(gang)), holds_room=True)
        self._write(gang, None, reason, message)
        self._state.touch(gang)

    def end(self, now: int) -> None:
        """Deadlines pass, and nodes go: what was set aside until then, or there, is let go."""
        for key in self.claims.overdue(now):
            gang = self._state.gangs[key]
            self.let_go(gang, "ClaimExpired", "room for later waves was kept until now, and is let go")
        for key, ghosts in self.claims.all():
            gang = self._state.gangs[key]
            if self._state.events.any and self.claims.broken(gang):
                where = ", ".join(sorted({ghost.node for ghost in ghosts})[:5])
                self.let_go(gang, "ClaimDropped", f"the room that was kept on {where} is no longer there")

    def follow(self, gang: GangState) -> None:
        """What the API says of a gang's claim, and whether it is still wanted."""
        claim = gang.spec.claim
        if (claim is None or claim.kind != WAVE) and not self.claims.of(gang):
            return
        if not self.claims.follow(gang):
            self.let_go(gang, "ClaimDropped", "the room that was kept is no longer there")
            return
        spec = gang.spec
        ran = {role for role in self.claims.roles(gang) if gang.occupied.get(role, 0) >= spec.minima.get(role, 0)}
        done = [ghost for ghost in self.claims.of(gang) if spec.finished or ghost.role in ran - set(spec.later)]
        if done:
            self.claims.forget(gang, done, holds_room=True)
            self._write(
                gang, self.claims.record(gang), "ClaimEnded", f"room that was kept for {len(done)} pods is free"
            )

    def _write(self, gang: GangState, record: Record | None, reason: str, message: str) -> None:
        if gang.spec.object is None:
            return
        self.claims.wrote(gang, record)
        gang.spec = msgspec.structs.replace(gang.spec, claim=record)
        self._decide(SetAside(gang.key, WAVE, record, reason, message))
