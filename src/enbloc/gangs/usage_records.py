"""Usage over time as it is written down: an annotation on each Queue, with a keyed digest before it (S2).

The record is what the scheduler knows of its accounts, no more and no less: one that starts later goes on from it as if
it had never stopped (G12, I5). Numbers are integers, so that reading a record gives exactly what was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from enbloc.gangs.record_digests import SEAL_CHARS, parted

ANNOTATION: Final = "enbloc.dev/usage"
VERSION: Final = 2
MOST_ACCOUNTS: Final = 1_000
"""A queue remembers at most 1,000 accounts; with names of at most 63 characters they fit in an annotation."""
RECORD_BYTES: Final = 192 * 1024
_MOST: Final = 2**62


class AccountRecord(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What an account had used at an instant, and what it has used since."""

    usage_ns: int
    """Nanoseconds of the whole cluster, decayed to that instant."""
    as_of_ns: int
    rate: int
    """The part of the cluster that it has used since then: 10¹⁵ is all of it (in version 1: 10⁹)."""


class UsageRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The accounts of a queue, by name: empty for the queue itself, a namespace, or NAMESPACE/USER."""

    accounts: Mapping[str, AccountRecord]
    version: int = VERSION


def read(text: str | None) -> UsageRecord | None:
    """The record in an annotation's text; `None` for none, and for text that is no record of a known version."""
    if not text or len(text) > RECORD_BYTES + SEAL_CHARS:
        return None
    try:
        record = msgspec.json.decode(parted(text)[1], type=UsageRecord)
    except (msgspec.DecodeError, UnicodeEncodeError, ValueError, RecursionError):
        return None
    if record.version not in (1, VERSION) or len(record.accounts) > MOST_ACCOUNTS:
        return None
    for one in record.accounts.values():
        if not all(0 <= number <= _MOST for number in (one.usage_ns, one.as_of_ns, one.rate)):
            return None
    if record.version == VERSION:
        return record
    accounts = {
        name: AccountRecord(one.usage_ns, one.as_of_ns, one.rate * 10**6) for name, one in record.accounts.items()
    }
    return UsageRecord(accounts)


def write(record: UsageRecord) -> str:
    return msgspec.json.encode(record, order="deterministic").decode()
