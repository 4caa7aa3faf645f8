"""The one model of a gang. The engine knows only this; each dialect is read into it (Words, G).

Everything here is a plain fact about what a user wrote. What became of it (who is bound, who waits) is the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from enbloc.api.meta import Ref
from enbloc.api.volcano import DEFAULT_QUEUE as DEFAULT_QUEUE
from enbloc.gangs.claim_records import Record
from enbloc.gangs.hints import NONE, SchedulingHints

ONCE_SATISFIED, WAITING_AND_RUNNING, ONLY_WAITING = "once-satisfied", "waiting-and-running", "only-waiting"
"""What counts towards a minimum that was met once: nothing has to; those who run or wait; only those who wait (K9)."""


class GangKey(NamedTuple):
    """One gang, for ever: two dialects may use one name and mean two gangs."""

    dialect: str
    namespace: str
    name: str


class Membership(NamedTuple):
    """Which gang a pod belongs to, and as what."""

    gang: GangKey
    role: str
    number: int | None
    """Its place among its role, where the pod says so (O2)."""


class Template(msgspec.Struct, frozen=True):
    """What the pods of a role will be, before they exist (D5)."""

    count: int
    """How many its minimum asks for."""
    pod_spec: Mapping[str, Any]
    labels: Mapping[str, str] = {}


class Complaint(NamedTuple):
    """Something that a user wrote and that does not count as it stands: a Warning on the object that carries it."""

    ref: Ref
    uid: str
    message: str


class GangSpec(msgspec.Struct, frozen=True):
    """A gang as its author wrote it."""

    key: GangKey
    title: str
    """What the user calls it: `namespace/name` of the Job, PodGroup or pod that was written."""
    created: int
    minimum: int
    """How many tasks in all must be occupied before any is bound."""
    minima: Mapping[str, int] = {}
    """The same by role; a role that is not named has none of its own."""
    queue: str = DEFAULT_QUEUE
    priority: int | None = None
    """Its own class's. `None`: the highest of its members'."""
    min_resources: Mapping[str, int] | None = None
    """Nano-units by resource, for enqueue (M6). `None`: let in at once."""
    enqueued: bool = True
    """Whether enqueue has let it in: always so for gangs that pass no enqueue."""
    enqueued_at: int | None = None
    """When that was, if its object says so."""
    tried: bool = False
    """Whether its object says that it was tried in vain."""
    enqueued_by: str = ""
    """How, if its object says so: what was let in beyond the free room counts against nobody (M6)."""
    started: bool = False
    """Whether its object says that its minima have run since its pods were last all gone."""
    node_selector: Mapping[str, str] = {}
    """What every node of the gang must carry, besides what each pod asks for (A2)."""
    keep_partial_allocation: bool = False
    """Whether what a failed attempt got goes to nobody else in that cycle, unless `backfill` is on (A2)."""
    finished: bool = False
    """Whether it has run and ended: nobody waits for it any more."""
    waves: bool = False
    """Whether its roles begin one after the other (D): each wave is then a gang of its own."""
    wave_of: Mapping[str, int] = {}
    """The wave of each role, counted by what it depends on."""
    more_waves: bool = False
    """Whether roles are still to begin (D3): until then nobody gets more than its minimum (D4)."""
    later: Mapping[str, Template] = {}
    """Roles that have not begun and whose room has to be found with the first wave's (D5)."""
    templates: Mapping[str, Template] = {}
    """All roles of such a gang: what the room that was set aside for them is."""
    claim: Record | None = None
    """The room that is set aside for it."""
    claim_home: str = ""
    """The UID of what that is written on, where it may change: a gang without an object has only pods."""
    object: Ref | None = None
    """Where its phase and conditions are written; `None`: it has no object but its pods."""
    object_uid: str = ""
    dialect: str = ""
    """What people call its dialect, where one name stands for several."""
    expected: int = 0
    """How many members to expect in all, where somebody says so: it is shown, it starts nothing (K1)."""
    group: tuple[GangKey, ...] = ()
    """The gangs it is to start together with, as it names them; empty: alone (K7)."""
    holds: bool = False
    """NonStrict: members that fit are held until the others do too (K6)."""
    waiting: int = 0
    """How long it may be held, or wait for the gangs it starts with, in nanoseconds; 0: for ever (K8)."""
    match_policy: str = ONCE_SATISFIED
    """What counts towards its minimum once it was met (K9)."""
    min_free_resources: Mapping[str, int] = {}
    """Nano-units by resource: not attempted while less than this is free in total (K7)."""
    evict_as_unit: bool = False
    """Whether, as a victim, it goes whole or not at all."""
    hints: SchedulingHints = NONE
    """What its object says about waiting, running and being evicted."""
    longest_run: int | None = None
    """How long its pods will run at most, if all their templates say so."""
    never_preempts: bool = False
    """Whether its class says that nobody is evicted for it (P2)."""
    complaints: tuple[Complaint, ...] = ()
    problem: str = ""
    """Why it cannot be scheduled as it stands (its object does not exist yet, its values are bad); empty: it can."""


def without_group(key: GangKey, created: int, queue: str) -> GangSpec:
    """Pods came before their PodGroup, or it went: they collect, and wait for it (K4, V5)."""
    title = f"{key.namespace}/{key.name}"
    problem = f"PodGroup {title} does not exist"
    return GangSpec(key=key, title=title, created=created, minimum=1, queue=queue, problem=problem)
