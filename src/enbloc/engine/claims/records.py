"""What is written down of a kind of claim, one record a gang: whoever keeps such claims writes through here (Words).

From the first look at a gang on we know better than its record: what the API says then is an echo, or older.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from enbloc.engine.decisions import Decision, SetAside
from enbloc.engine.tables.tasks import GangState
from enbloc.gangs.claim_records import Record
from enbloc.gangs.model import GangKey


class Records:
    """The records of one kind."""

    def __init__(self, kind: str, decide: Callable[[Decision], None]) -> None:
        self._kind = kind
        self._decide = decide
        self._homes: dict[GangKey, str] = {}
        """What the record of each gang that we know stands on."""

    def unread(self, gang: GangState) -> Record | None:
        """A record of a gang that nobody here knows yet: of an earlier life. Asked once, it is known."""
        record = gang.spec.claim
        if gang.key in self._homes or record is None or record.kind != self._kind:
            return None
        self._homes[gang.key] = gang.spec.claim_home
        return record

    def has_moved(self, gang: GangState) -> bool:
        """Whether the pod that carried a gang's record is gone, and another one has to."""
        return self._homes.get(gang.key) != gang.spec.claim_home

    def write(self, gang: GangState, record: Record | None, reason: str, message: str) -> None:
        self._homes[gang.key] = gang.spec.claim_home
        gang.spec = msgspec.structs.replace(gang.spec, claim=record)
        self._decide(SetAside(gang.key, self._kind, record, reason, message))

    def forget(self, key: GangKey) -> None:
        """A gang is gone, and one of that name that comes later is another; or the record was refused."""
        self._homes.pop(key, None)
