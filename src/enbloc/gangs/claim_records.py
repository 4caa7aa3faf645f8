"""Claims as they are written down: room on named nodes set aside for pods that are not bound yet (Words).

One record a gang and kind, an annotation on the gang's object (or, where it has none, on its oldest pod), so that a
claim survives a restart of the scheduler. A record carries its version. Long records are compressed, since all
annotations of an object together may not exceed 256 KiB. Where even the names of its pods and nodes would be too long,
it has digests in their place (`brief`): its readers know the names of members, roles and nodes, and look for those
that match. A brief record is packed (`packed_slots`): 20,000 pods on 10,000 nodes take 190 KiB.
The scheduler writes a record with a keyed digest before it (`sealed`), and counts those whose digest verifies (S2);
`read` takes either, for commands that show records and have no key.

All records of a gang share one bound and stay on one object, so that the API server makes each write atomic. Split
over several objects, a crash between two parts would lose the claim. A claim whose record does not fit beside the
others is not made, and the gang's object says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, Literal

import msgspec

from enbloc.gangs import record_digests
from enbloc.gangs.packed_slots import DIGEST_CHARS, bytes_at_most, pack, unpack
from enbloc.gangs.record_digests import SEAL_CHARS, Keyring, parted


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
    EVICTED = "evicted"
    """No room, but which gangs were evicted for it: they evict none of its pods in turn (P3)."""

    @property
    def annotation(self) -> str:
        return f"enbloc.dev/claim-{self.value}"

    @property
    def names_pods(self) -> bool:
        return self is not ClaimKind.WAVE

    @property
    def ended(self) -> str:
        """The event reason of a claim that ends because it no longer helps."""
        return _ENDED[self.value]


_ENDED: Final = {
    "hold": "HoldReleased",
    "reserve": "ReservationEnded",
    "preempt": "PreemptionAbandoned",
    "wave": "ClaimEnded",
    "evicted": "EvictionsForgotten",
}

ANNOTATIONS: Final = frozenset(kind.annotation for kind in ClaimKind)

LEGACY_ANNOTATION: Final = "enbloc.dev/claims"
"""Where version 0.1 wrote the one claim of a gang, whatever its kind."""

VERSION: Final = 1
COMPRESS_FROM_BYTES: Final = 8 * 1024
OBJECT_BYTES: Final = 256 * 1024
"""What all annotations of an object may have, keys and values: the API server refuses more."""
OTHERS_BYTES: Final = 48 * 1024
"""This much of it is left to annotations that are no records of claims."""
RECORDS_BYTES: Final = OBJECT_BYTES - OTHERS_BYTES
"""All records on an object, unless its other annotations leave less; so one of them has no more."""
EVICTED_GANGS: Final = 1_024
"""A record names at most 1,024 evicted gangs: 11 KiB."""
SLOTS: Final = 50_000
"""A record with more slots was not written by this scheduler."""
TASKS: Final = 100_000
"""Nor was one for more tasks."""
NAMES_CHARS: Final = 96 * 1024
"""With longer names in all, a record has digests in their place."""
_SLOT_BYTES: Final = 24
"""What a slot takes in JSON at most, beside its names."""
_DIGEST_BYTES: Final = 6
_PLAIN_BYTES: Final = 16 * 1024 * 1024
_COMPRESSED: Final = "zlib:"
_PACKED: Final = "packed:"

_WIRE_NAMES: Final = {"until_ns": "until", "clock_ns": "clock"}


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_WIRE_NAMES):
    """Role, or pod → node → number of tasks."""

    kind: ClaimKind
    until_ns: int
    """When the claim expires, in nanoseconds since the epoch; 0: it has no deadline of its own.
    Beside a clock: since when that stands (K8)."""
    slots: Mapping[str, Mapping[str, int]]
    version: int = VERSION
    clock_ns: int = 0
    """When the clock of the gang's group started (K8): how long it may wait is what its gangs declare now. Of a
    reservation: when it was made (R4)."""
    held: bool = False
    """Whether a held pod started it, in a NonStrict group."""
    brief: Literal[True] | msgspec.UnsetType = msgspec.UNSET
    """Set if digests stand for the names of nodes, and of pods or roles."""
    evicted: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    """Digests of the gangs that were evicted for it, the last one last; at most `EVICTED_GANGS`."""

    @property
    def is_brief(self) -> bool:
        return self.brief is True

    def places(self, name: str) -> Mapping[str, int]:
        """Node → number of tasks, of a pod or a role."""
        return self.slots.get(digest_of(name) if self.is_brief else name, {})


@lru_cache(maxsize=65_536)
def digest_of(name: str) -> str:
    """What stands for a name in a brief record: 42 bits, as 7 characters."""
    digest = hashlib.blake2b(name.encode(), digest_size=_DIGEST_BYTES).digest()
    return base64.urlsafe_b64encode(digest)[:DIGEST_CHARS].decode()


def shortened(record: Record) -> Record:
    """The record as it is written: with digests in place of names, if the names are long."""
    if _names_chars(record) <= NAMES_CHARS:
        return record
    slots = {
        digest_of(name): {digest_of(node): count for node, count in nodes.items()}
        for name, nodes in record.slots.items()
    }
    return msgspec.structs.replace(record, slots=slots, brief=True)


def _names_chars(record: Record) -> int:
    return sum(len(name) + sum(map(len, nodes)) for name, nodes in record.slots.items())


def with_nodes(record: Record, nodes: Iterable[str]) -> Record:
    """The record with these nodes' names in place of their digests. A digest of none of them stays: there is no such
    node."""
    if not record.is_brief:
        return record
    names = {digest_of(node): node for node in nodes}
    slots = {
        name: {names.get(node, node): count for node, count in places.items()} for name, places in record.slots.items()
    }
    return msgspec.structs.replace(record, slots=slots)


def by_role(record: Record, roles: Iterable[str]) -> Mapping[str, Mapping[str, int]]:
    """Role → node → number of tasks of a record that names roles, with these roles' names in place of their digests."""
    if not record.is_brief:
        return record.slots
    names = {digest_of(role): role for role in roles}
    return {names.get(role[:DIGEST_CHARS], role): nodes for role, nodes in record.slots.items()}


def read(text: str | None) -> Record | None:
    """The record in an annotation's text; `None` for none, and for text that is no record of a known version."""
    if not text or len(text) > RECORDS_BYTES + SEAL_CHARS:
        return None
    try:
        record = _decoded(parted(text)[1])
    except (msgspec.DecodeError, UnicodeEncodeError, binascii.Error, zlib.error, ValueError, RecursionError):
        return None
    counts = [count for nodes in record.slots.values() for count in nodes.values()]
    known = record.version == VERSION and len(counts) <= SLOTS and len(record.evicted or ()) <= EVICTED_GANGS
    return record if known and all(count > 0 for count in counts) and sum(counts) <= TASKS else None


_ANNOTATIONS = frozenset({LEGACY_ANNOTATION, *(kind.annotation for kind in ClaimKind)})


def read_all(annotations: Mapping[str, str]) -> dict[ClaimKind, Record]:
    """The records that an object carries, by kind."""
    found: dict[ClaimKind, Record] = {}
    if _ANNOTATIONS.isdisjoint(annotations):  # most objects
        return found
    legacy = read(annotations.get(LEGACY_ANNOTATION))
    if legacy is not None:
        found[legacy.kind] = legacy
    for kind in ClaimKind:
        record = read(annotations.get(kind.annotation))
        if record is not None and record.kind is kind:
            found[kind] = record
    return found


def has_records(annotations: Mapping[str, str]) -> bool:
    """Whether an object carries a record, one that can be read or not."""
    return bool(annotations) and not ANNOTATIONS.isdisjoint(annotations)


def texts(annotations: Mapping[str, str]) -> tuple[str | None, ...]:
    """What `read_all` reads: while it is the same, so are the records."""
    return () if _ANNOTATIONS.isdisjoint(annotations) else tuple(annotations.get(key) for key in sorted(_ANNOTATIONS))


def write(record: Record) -> str:
    """The text of a record; compressed where that is worth it."""
    if record.is_brief:
        head = msgspec.json.encode(msgspec.structs.replace(record, slots={}), order="deterministic")
        return _PACKED + base64.b85encode(zlib.compress(head + b"\n" + pack(record.slots), 9)).decode()
    plain = msgspec.json.encode(record, order="deterministic")
    if len(plain) < COMPRESS_FROM_BYTES:
        return plain.decode()
    return _COMPRESSED + base64.b64encode(zlib.compress(plain, 6)).decode()


def sealed(keyring: Keyring, home_uid: str, kind: ClaimKind, body: str) -> str:
    """The text of a record with its digest: it counts on the object with this UID only."""
    return record_digests.sealed(keyring, _signed_parts(home_uid, kind), body)


def is_ours(keyring: Keyring, home_uid: str, kind: ClaimKind, text: str) -> bool:
    """Whether this scheduler, or one with the same keys, wrote the text on the object with this UID."""
    if len(text) > RECORDS_BYTES + SEAL_CHARS:
        return False
    return record_digests.is_sealed(keyring, _signed_parts(home_uid, kind), text)


def _signed_parts(home_uid: str, kind: ClaimKind) -> tuple[str, ...]:
    return ("claim", home_uid, kind.value)


def room_beside(annotations: Mapping[str, str]) -> int:
    """The bytes that all records may have on an object with these annotations."""
    if sum(map(len, annotations.values())) * 4 <= OTHERS_BYTES // 2:  # most objects: no need to encode
        return RECORDS_BYTES
    others = [f"{key}{text}" for key, text in annotations.items() if key not in _ANNOTATIONS]
    taken = sum(len(text.encode(errors="replace")) for text in others)
    return max(OBJECT_BYTES - max(taken, OTHERS_BYTES), 0)


def fits(record: Record, others: Iterable[Record] = (), most_bytes: int = RECORDS_BYTES) -> bool:
    """Whether the record's text may be written on an object with the `others`, if all may have `most_bytes`."""
    slots = sum(len(nodes) for nodes in record.slots.values())
    tasks = sum(count for nodes in record.slots.values() for count in nodes.values())
    if slots > SLOTS or tasks > TASKS:
        return False
    every = [record, *others]
    return sum(map(_bytes_at_most, every)) <= most_bytes or sum(map(_annotation_bytes, every)) <= most_bytes


def _bytes_at_most(record: Record) -> int:
    """A bound that needs no compression: names are ASCII, and what cannot be compressed grows by a third in base 64."""
    if record.is_brief:
        return bytes_at_most(record.slots) * 4 // 3 + 512 + SEAL_CHARS
    slots = sum(1 + len(nodes) for nodes in record.slots.values())
    evicted = len(record.evicted or ()) * (DIGEST_CHARS + 3)
    return (_names_chars(record) + slots * _SLOT_BYTES + evicted) * 4 // 3 + 512 + SEAL_CHARS


def _annotation_bytes(record: Record) -> int:
    return len(record.kind.annotation) + SEAL_CHARS + len(write(record))


def _decoded(text: str) -> Record:
    if text.startswith(_PACKED):
        head, _, slots = _inflated(base64.b85decode(text.removeprefix(_PACKED))).partition(b"\n")
        return msgspec.structs.replace(msgspec.json.decode(head, type=Record), slots=unpack(slots))
    is_compressed = text.startswith(_COMPRESSED)
    plain = _inflated(base64.b64decode(text.removeprefix(_COMPRESSED), validate=True)) if is_compressed else text
    record = msgspec.json.decode(plain, type=Record)
    return _with_short_digests(record) if record.is_brief else record


def _with_short_digests(record: Record) -> Record:
    """A brief record of a version before this one: its digests had a character more, and roles were written in full."""
    kept = DIGEST_CHARS if record.kind.names_pods else None
    slots = {
        name[:kept]: {node[:DIGEST_CHARS]: count for node, count in nodes.items()}
        for name, nodes in record.slots.items()
    }
    return msgspec.structs.replace(record, slots=slots)


def _inflated(data: bytes) -> bytes:
    inflate = zlib.decompressobj()
    plain = inflate.decompress(data, _PLAIN_BYTES)
    if not inflate.eof or inflate.unused_data:
        raise ValueError("this is no whole record, or longer than any that is written")
    return plain
