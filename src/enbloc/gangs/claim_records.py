"""Claims as they are written down: room on named nodes set aside for tasks that are not bound yet (Words).

One record a gang, an annotation on its object (or, where it has none, on its oldest pod), so that it survives a restart
of the scheduler: written before anybody relies on it, and only when it changes.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

ANNOTATION = "enbloc.dev/claims"

WAVE = "wave"
"""Room for the later waves of a whole-job gang (D5)."""

HOLD = "hold"
"""Members of a NonStrict gang that are held, each under its own name instead of a role (K6). Without any, it is the
clock alone that runs (K8)."""

RESERVE = "reserve"
"""Members of a starving gang and the nodes that are kept for them, each under its own name (R)."""

PREEMPT = "preempt"
"""Members of a gang for which others were evicted, and where, each under its own name (P3)."""

NAMES_PODS = frozenset({HOLD, RESERVE, PREEMPT})

_BOUND = 256 * 1024
"""No record is longer, and what is longer was not written by us."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Role, or pod → node → number of tasks."""

    kind: str
    until: int
    """When it ends by itself, in nanoseconds since the epoch; 0: when its gang is bound, or it no longer helps."""
    slots: Mapping[str, Mapping[str, int]]


def read(text: str) -> Record | None:
    """The record an annotation holds; `None` for none, and for one that somebody else wrote over."""
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
