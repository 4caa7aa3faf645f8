"""Records of claims: what is written down on objects, what the watch echoes of it, and what the API refuses. They know
no room.

Every change is a decision (`SetAside`), so that a claim is written down before anything relies on it. Records count in
the first cycle of a scheduler, which is the one after it started or took the lead. From then on memory counts (S2):
what the API says of a claim is an echo, or older; a record that this scheduler did not write is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from enbloc.engine.core.claims.claim import Claim
from enbloc.engine.core.tables.tasks import GangState
from enbloc.engine.decisions import RECORD_REMOVED, Complain, Decision, SetAside
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import GangKey
from enbloc.listing import plural

_MOST_KIB: Final = claim_records.OBJECT_BYTES // 1024

Key = tuple[GangKey, ClaimKind]


class _Written(NamedTuple):
    """The last record that was written for a gang and kind, the one before it, and the UID of the object that carries
    it."""

    home: str
    record: Record | None
    before: Record | None = None


class ClaimRecords:
    def __init__(self, decide: Callable[[Decision], None]) -> None:
        self._decide = decide
        self.is_first_cycle = True
        self._written: dict[Key, _Written] = {}
        """Gangs whose records were read or written. Any other record was not written by this scheduler."""
        self._before_refusal: dict[Key, Record] = {}
        """Records that count again, since the write that would have replaced them was refused."""
        self._not_removed: set[Key] = set()
        """Claims that have ended and whose records are left: the write that would have removed them was refused."""
        self._too_large: set[Key] = set()
        """Gangs whose objects say that a claim is too large to be recorded."""

    def fit(self, claims: Sequence[Claim], ending: Collection[ClaimKind] = frozenset()) -> bool:
        """Whether claims that are made together can be recorded all; if not, none of them is made (R1). `ending`: kinds
        whose claims end before."""
        return all(self._fits(one, claims, ending) for one in claims)

    def _fits(self, claim: Claim, claims: Sequence[Claim], ending: Collection[ClaimKind]) -> bool:
        """Whether the gang's object can hold the record of a claim beside its records of other kinds and its other
        annotations. If not, that is written on it once (R1)."""
        key, status = (claim.gang.key, claim.kind), claim.gang.status
        beside = [one for one in claims if one.gang is claim.gang and one is not claim]
        anew = {claim.kind, *(one.kind for one in beside), *ending}
        others = [record for kind, record in status.claims.items() if kind not in anew]
        others += [one.record() for one in beside]
        if claim_records.fits(claim.record(), others, status.records_bytes):
            self._too_large.discard(key)
            return True
        if key not in self._too_large:
            self._too_large.add(key)
            pods = plural(len(claim.slots), "pod")
            text = f"no room is set aside for its {pods} ({claim.kind}): the record is too large"
            limit = f"all annotations of an object may have {_MOST_KIB} KiB"
            self._decide(Complain(claim.gang.key, f"{text}, {limit}; use gangs of fewer pods or fewer annotations"))
        return False

    def write(self, gang: GangState, kind: ClaimKind, claim: Claim | None, reason: str, message: str) -> None:
        """Decides that the record of a gang's claim is written as the claim is now; `None`: it has ended."""
        key, record = (gang.key, kind), claim.record() if claim is not None else None
        known = self._written.get(key)
        self._written[key] = _Written(gang.status.claim_home, record, known.record if known else None)
        self._not_removed.discard(key)
        others = {other: known for other, known in gang.status.claims.items() if other is not kind}
        gang.assume(claims=others if record is None else {**others, kind: record})
        self._decide(SetAside(gang.key, kind, record, reason, message))

    def keep(self, claim: Claim) -> None:
        """Writes the record again if it changed, or if the pod that carried it is gone."""
        written = self._written.get((claim.gang.key, claim.kind))
        if written is None or written[:2] != (claim.gang.status.claim_home, claim.record()):
            text = f"room is set aside for {plural(len(claim.slots), 'pod')}"
            self.write(claim.gang, claim.kind, claim, "ClaimChanged", text)

    def found(self, gang: GangState) -> Iterator[tuple[ClaimKind, Record]]:
        """The records on a gang's object that count and are no echo; others are removed."""
        for kind, record in gang.status.claims.items():
            key = (gang.key, kind)
            if key in self._written:
                continue
            if key in self._not_removed:
                self.write(gang, kind, None, kind.ended, "the claim has ended; its record is removed")
            elif not self.is_first_cycle and self._before_refusal.pop(key, None) != record:
                self.write(gang, kind, None, RECORD_REMOVED, f"{kind.annotation} was not written by this scheduler")
            else:
                self._written[key] = _Written(gang.status.claim_home, record)
                yield kind, record

    def refused(self, decision: SetAside) -> bool:
        """A record could not be written: nothing relies on the claim. What was written before it counts again. A claim
        whose record could not be removed has ended all the same: the record is removed again. `False`: another write
        has been decided since, and what becomes of that one counts."""
        key, record = (decision.gang, decision.kind), decision.record
        written = self._written.get(key)
        if written is None or written.record != record:
            return False
        del self._written[key]
        if record is None:
            self._not_removed.add(key)
        elif written.before is not None:
            self._before_refusal[key] = written.before
        return True

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)
        self._before_refusal.pop(key, None)
        self._not_removed.discard(key)
        self._too_large.discard(key)
