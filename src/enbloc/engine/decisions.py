"""What the engine decides, as values. The runtime carries them out; they come back as events."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.model import GangKey


class Placement(msgspec.Struct, frozen=True, gc=False):
    """One pod goes to one node."""

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
    """The other gangs of its group, whose pods it binds as well: the mark is for all of them (K7)."""
    claims: tuple[tuple[str, str, str], ...] = ()
    """Volume claims that get their node first: (namespace, claim, node)."""
    volumes: tuple[tuple[str, str, str], ...] = ()
    """Volumes that are promised to a claim first: (volume, namespace, claim)."""


class Evict(msgspec.Struct, frozen=True):
    gang: GangKey
    namespace: str
    name: str
    uid: str
    reason: str
    message: str
    preemptor: GangKey | None = None
    """For whom room is made (P)."""


class Enqueue(msgspec.Struct, frozen=True):
    """Enqueue lets a gang in (M6), and on what ground."""

    gang: GangKey
    reason: str = "Enqueued"


class Waits(msgspec.Struct, frozen=True):
    """Why a gang, or some of its pods, cannot go on (G10); `message` empty: what was said no longer holds."""

    gang: GangKey
    reason: str
    message: str
    pods: tuple[tuple[str, str, str], ...]
    """(namespace, name, uid) of the pods that are told so."""
    of_gang: bool
    """Whether the gang's own object says so too: not if only its surplus waits."""


class Marked(msgspec.Struct, frozen=True):
    """The pod that carried the gang's commit mark is gone: another member carries it from now on (G11)."""

    gang: GangKey
    namespace: str
    name: str
    uid: str
    mark: str


class SetAside(msgspec.Struct, frozen=True):
    """The room that is set aside for a gang from now on (`None`: none), written down before anybody relies on it."""

    gang: GangKey
    kind: ClaimKind
    record: Record | None
    reason: str
    message: str


class TimeOut(msgspec.Struct, frozen=True):
    """A gang waited too long: its pods are marked, and not scheduled while they are (K8)."""

    gang: GangKey
    pods: tuple[tuple[str, str, str], ...]
    """(namespace, name, uid)"""


class Complain(msgspec.Struct, frozen=True):
    """Something about a gang does not add up: a Warning on its object, or on its oldest pod (K7)."""

    gang: GangKey
    message: str


class Expect(msgspec.Struct, frozen=True):
    """When a gang that waits is expected to start; `None`: nobody knows any more (R8)."""

    gang: GangKey
    at: int | None


Decision = Bind | Evict | Enqueue | Waits | Marked | SetAside | TimeOut | Complain | Expect


class Reason(msgspec.Struct, frozen=True):
    """Why a role's tasks do not fit, on how many nodes."""

    role: str
    reason: str
    nodes: int


class Pending(msgspec.Struct, frozen=True):
    """A gang that waits, as it is shown to people."""

    gang: str
    dialect: str
    missing: Mapping[str, int]
    message: str
    reasons: tuple[Reason, ...]
    expected_start: int | None = None
    """In nanoseconds since the epoch, where it can be told (R8)."""
