"""Which gangs were evicted for a gang: they evict none of its pods in turn, as long as it exists (P3).

It is recorded like a claim, so that it counts after a restart too, and sets no room aside. By digests of the gangs: the
victims may be gone, and come back under their names.
"""

from __future__ import annotations

from collections.abc import Iterable

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.claims.claims import ClaimPolicy
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.events import EventKind
from enbloc.gangs.claim_records import EVICTED_GANGS, ClaimKind, Record, digest_of
from enbloc.gangs.model import GangKey


class EvictedGangs(ClaimPolicy):
    kind = ClaimKind.EVICTED
    used = "EvictionsForgotten"
    is_shared = True
    sets_room_aside = False

    def reviewed_on(self) -> frozenset[EventKind]:
        return frozenset()

    def has(self, gang: GangState, victim: GangKey) -> bool:
        """Whether pods of the victim were evicted for the gang."""
        claim = self._claims.of(gang, self.kind)
        return claim is not None and _digest(victim) in claim.evicted

    def claim(self, gang: GangState, victims: Iterable[GangKey]) -> Claim | None:
        """The record that pods of the victims, too, are evicted for the gang; `None`: it says so already."""
        known = self._claims.of(gang, self.kind)
        before = known.evicted if known is not None else ()
        new = [digest for digest in dict.fromkeys(map(_digest, victims)) if digest not in before]
        if not new:
            return None
        claim = Claim(gang, self.kind, ())
        claim.evicted = (*before, *new)[-EVICTED_GANGS:]
        return claim

    def add(self, gang: GangState, victims: Iterable[GangKey]) -> bool:
        """Pods of the victims are evicted for the gang. `False`: it cannot be recorded."""
        claim = self.claim(gang, victims)
        return claim is None or self._claims.make(claim, "", "")

    # ---- policy

    def adopt(self, gang: GangState, record: Record, now_ns: int) -> Claim | None:
        claim = Claim(gang, self.kind, ())
        claim.evicted = record.evicted or ()
        return claim if claim.evicted else None


def _digest(key: GangKey) -> str:
    return digest_of("/".join(key))
