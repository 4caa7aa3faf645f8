"""The record of a claim: room on named nodes set aside for tasks that are not bound yet (Words).

One record a gang, an annotation on its object (or, where it has none, on its oldest pod), so that it survives a restart
of the scheduler. It is written before a decision relies on it, and only when it changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ANNOTATION = "enbloc.dev/claims"

WAVE = "wave"
"""Room for the later waves of a whole-job gang (D5)."""

HOLD = "hold"
"""Members of a NonStrict gang that are held, by pod name instead of role (K6). Without slots it records only the clock
(K8)."""

RESERVE = "reserve"
"""Members of a starving gang and the nodes reserved for them, by pod name (R)."""

PREEMPT = "preempt"
"""Members of a preemptor and the nodes on which room is freed for them, by pod name (P3)."""

NAMES_PODS = frozenset({HOLD, RESERVE, PREEMPT})

_BOUND = 256 * 1024
"""At most 256 KiB: a longer text was not written by us."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`slots`: role or pod name → node → number of tasks."""

    kind: str
    until: int
    """When it expires, in nanoseconds since the epoch; 0: no expiry."""
    slots: Mapping[str, Mapping[str, int]]


def read(text: str) -> Record | None:
    """The record in an annotation; `None` if there is none or it is not valid."""
    if not text or len(text) > _BOUND:
        return None
    try:
        record = msgspec.json.decode(text, type=Record)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    counts = [count for nodes in record.slots.values() for count in nodes.values()]
    return record if all(0 < count <= 10**6 for count in counts) else None


def write(record: Record) -> str:
    return msgspec.json.encode(record, order="deterministic").decode()
