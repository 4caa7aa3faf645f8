"""Claims as they are written down: room on named nodes set aside for pods that are not bound yet (Words).

One record a gang and kind, an annotation on the gang's object (or, where it has none, on its oldest pod), so that a
claim survives a restart of the scheduler. A record carries its version. Long records are compressed, since all
annotations of an object together may not exceed 256 KiB; a record that is too long even then is refused by `write`.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec


class ClaimKind(StrEnum):
    HOLD = "hold"
    """Members of a NonStrict gang that keep their room until the others fit, by pod name (K6). Without any slot only
    the group's clock is recorded (K8)."""
    RESERVE = "reserve"
    """Members of a starving gang and the nodes reserved for them, by pod name (R)."""
    PREEMPT = "preempt"
    """Members of a gang for which pods were evicted, and the nodes where, by pod name (P3)."""
    WAVE = "wave"
    """Room for the later waves of a whole-job gang, by role (D5)."""

    @property
    def annotation(self) -> str:
        return f"enbloc.dev/claim-{self.value}"

    @property
    def names_pods(self) -> bool:
        return self is not ClaimKind.WAVE


ANNOTATIONS: Final = frozenset(kind.annotation for kind in ClaimKind)

LEGACY_ANNOTATION: Final = "enbloc.dev/claims"
"""Where version 0.1 wrote the one claim of a gang, whatever its kind."""

VERSION: Final = 1
COMPRESS_FROM_BYTES: Final = 8 * 1024
RECORD_BYTES: Final = 192 * 1024
"""At most this much of an object's 256 KiB of annotations is one record."""
SLOTS: Final = 50_000
"""A record with more slots was not written by this scheduler."""
_PLAIN_BYTES: Final = 16 * 1024 * 1024
_COMPRESSED: Final = "zlib:"


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Role, or pod → node → number of tasks."""

    kind: ClaimKind
    until: int
    """When the claim expires, in nanoseconds since the epoch; 0: it has no deadline of its own."""
    slots: Mapping[str, Mapping[str, int]]
    version: int = VERSION
    clock: int = 0
    """When the clock of the gang's group started (K8): how long it may wait is what its gangs declare now."""
    held: bool = False
    """Whether a held pod started it, in a NonStrict group."""


def read(text: str | None) -> Record | None:
    """The record in an annotation's text; `None` for none, and for text that is no record of a known version."""
    if not text or len(text) > RECORD_BYTES:
        return None
    try:
        record = msgspec.json.decode(_plain(text), type=Record)
    except (msgspec.DecodeError, UnicodeEncodeError, binascii.Error, zlib.error, ValueError):
        return None
    counts = [count for nodes in record.slots.values() for count in nodes.values()]
    known = record.version == VERSION and len(counts) <= SLOTS
    return record if known and all(0 < count <= 10**6 for count in counts) else None


def read_all(annotations: Mapping[str, str]) -> dict[ClaimKind, Record]:
    """The records that an object carries, by kind."""
    found: dict[ClaimKind, Record] = {}
    legacy = read(annotations.get(LEGACY_ANNOTATION))
    if legacy is not None:
        found[legacy.kind] = legacy
    for kind in ClaimKind:
        record = read(annotations.get(kind.annotation))
        if record is not None and record.kind is kind:
            found[kind] = record
    return found


def texts(annotations: Mapping[str, str]) -> tuple[str | None, ...]:
    """What `read_all` reads: while it is the same, so are the records."""
    return tuple(annotations.get(key) for key in (LEGACY_ANNOTATION, *(kind.annotation for kind in ClaimKind)))


def write(record: Record) -> str:
    """The text of a record; compressed where that is worth it."""
    plain = msgspec.json.encode(record, order="deterministic")
    if len(plain) < COMPRESS_FROM_BYTES:
        return plain.decode()
    return _COMPRESSED + base64.b64encode(zlib.compress(plain, 6)).decode()


def fits(record: Record) -> bool:
    """Whether the record's text may be written on an object."""
    slots = sum(len(nodes) for nodes in record.slots.values())
    return slots <= SLOTS and (slots < 256 or len(write(record)) <= RECORD_BYTES)


def _plain(text: str) -> bytes:
    if not text.startswith(_COMPRESSED):
        return text.encode()
    inflate = zlib.decompressobj()
    plain = inflate.decompress(base64.b64decode(text.removeprefix(_COMPRESSED), validate=True), _PLAIN_BYTES)
    if inflate.unconsumed_tail:
        raise ValueError("the record is longer than any that is written")
    return plain
