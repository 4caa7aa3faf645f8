"""Decisions of the engine, as values. The runtime writes them to the API; their effect comes back as events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.lapse_records import LapseRecord
from enbloc.gangs.model import GangKey
from enbloc.gangs.usage_records import UsageRecord


class Placement(msgspec.Struct, frozen=True, gc=False):
    """One pod on one node."""

    namespace: str
    name: str
    uid: str
    node: str


class Bind(msgspec.Struct, frozen=True):
    """Pods of one gang that are bound by one decision (G2, G11).

    If `commits` is set, the last of them completes the minima: it is sent after all others were acknowledged, and
    carries the mark. Otherwise the gang is complete already and every Binding carries the mark.
    """

    gang: GangKey
    decision: str
    placements: tuple[Placement, ...]
    mark: str
    commits: bool
    others: tuple[GangKey, ...] = ()
    """The other gangs of its group, whose pods it binds too: the mark covers all of them (K7)."""
    volume_claims: tuple[tuple[str, str, str], ...] = ()
    """PersistentVolumeClaims that get their node first: (namespace, claim, node)."""
    volumes: tuple[tuple[str, str, str], ...] = ()
    """PersistentVolumes that get their claimRef first: (volume, namespace, claim)."""


class Evict(msgspec.Struct, frozen=True):
    gang: GangKey
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    preemptor: GangKey | None = None
    """The gang for which the pod is evicted (P)."""


class Enqueue(msgspec.Struct, frozen=True):
    """A gang is enqueued (M6); `reason` is the ground."""

    gang: GangKey
    reason: str = "Enqueued"


class Waits(msgspec.Struct, frozen=True):
    """What a gang says of why it waits, each time that it says something else (G10); empty `message`: what it said no
    longer holds."""

    gang: GangKey
    reason: str
    message: str
    pods: tuple[tuple[str, str, str], ...]
    """The pods that wait: UID, reason (E1), and what it says of its own role."""
    of_gang: bool
    """Whether the gang's object, if it has one, says so too: not if only its surplus waits."""
    missing: Mapping[str, int] = {}
    anew: bool = False
    """Whether nothing was said before of this gang and this object, or of its surplus alone."""


class Marked(msgspec.Struct, frozen=True):
    """The pod that carried the gang's commit mark is gone: another member carries it from now on (G11)."""

    gang: GangKey
    namespace: str
    name: str
    uid: str
    mark: str


class SetAside(msgspec.Struct, frozen=True):
    """The record of a gang's claim (`None`: it ends), written before any decision relies on it."""

    gang: GangKey
    kind: ClaimKind
    record: Record | None
    reason: str
    message: str


class TimeOut(msgspec.Struct, frozen=True):
    """A gang timed out: its pods get the timeout annotation, and are not scheduled while they carry it (K8)."""

    gang: GangKey
    pods: tuple[tuple[str, str, str], ...]
    """(namespace, name, uid)"""


class Complain(msgspec.Struct, frozen=True):
    """A gang is inconsistent (K7), or too large for what it asks (R1): a Warning on its object or oldest pod."""

    gang: GangKey
    message: str


class Expect(msgspec.Struct, frozen=True):
    """When a gang that waits is expected to start; `None`: no longer known (R8)."""

    gang: GangKey
    at_ns: int | None


class _OnQueue(msgspec.Struct, frozen=True):
    queue: str

    @property
    def gang(self) -> GangKey:
        """None: records of one queue are written one after the other, as those of a gang are."""
        return GangKey("", "", self.queue)


class RecordUsage(_OnQueue, frozen=True):
    """What the accounts of a queue have used, to be written on its Queue (G12)."""

    record: UsageRecord


class RecordLapses(_OnQueue, frozen=True):
    """Which namespaces let a claim lapse in a queue, to be written on its Queue (S9)."""

    record: LapseRecord


RECORD_REMOVED: Final = "RecordRemoved"
"""The reason of Events about records that this scheduler did not write (S2)."""


class InDomains(msgspec.Struct, frozen=True):
    """Where the pods of a gang that must or should be together are placed (T2)."""

    gang: GangKey
    parts: tuple[PlannedDomains, ...]


class PlannedDomains(msgspec.Struct, frozen=True):
    """Where a part of a gang was placed, and whether no better place existed."""

    part: str
    """The role or slice; empty: the whole gang."""
    within: str
    """The level of the domain that contains all; empty: the whole cluster."""
    level: str
    """The preferred level, or else the required one."""
    domains: tuple[str, ...]
    """The domains of that level that may be used."""
    score: float
    """1.0: provably the best of T2."""


OnQueue = RecordUsage | RecordLapses
Decision = Bind | Evict | Enqueue | Waits | Marked | SetAside | TimeOut | Complain | Expect | InDomains | OnQueue


class Reason(msgspec.Struct, frozen=True):
    """Why tasks of a role do not fit, and on how many nodes."""

    role: str
    reason: str
    nodes: int


class Pending(msgspec.Struct, frozen=True):
    """A gang that waits, for reports."""

    gang: str
    dialect: str
    reason: str
    missing: Mapping[str, int]
    message: str
    reasons: tuple[Reason, ...]
    queue: str = ""
    priority: int = 0
    expected_start_ns: int | None = None
    """In nanoseconds since the epoch; `None`: unknown (R8)."""
