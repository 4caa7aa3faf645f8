"""Claims that lapsed, as they are written down: an annotation on each Queue, with a keyed digest before it (S2, S9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from enbloc.gangs.record_digests import SEAL_CHARS, parted

ANNOTATION: Final = "enbloc.dev/lapsed"
VERSION: Final = 1
MOST_NAMESPACES: Final = 400
"""A queue remembers at most so many owners; with names of at most 63 characters they fit beside its usage."""
RECORD_BYTES: Final = 40 * 1024
_MOST: Final = 2**62


class LapseRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """By namespace: until when it claims no room for pods that do not exist."""

    until_ns: Mapping[str, int]
    version: int = VERSION


def read(text: str | None) -> LapseRecord | None:
    """The record in an annotation's text; `None` for none, and for text that is no record of a known version."""
    if not text or len(text) > RECORD_BYTES + SEAL_CHARS:
        return None
    try:
        record = msgspec.json.decode(parted(text)[1], type=LapseRecord)
    except (msgspec.DecodeError, UnicodeEncodeError, ValueError):
        return None
    if record.version != VERSION or len(record.until_ns) > MOST_NAMESPACES:
        return None
    return record if all(0 <= number <= _MOST for number in record.until_ns.values()) else None


def write(record: LapseRecord) -> str:
    return msgspec.json.encode(record, order="deterministic").decode()
