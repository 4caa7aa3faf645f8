"""The one model of a gang. The engine knows only this; each dialect is read into it (Words, G).

Plain facts read from objects. The state of a gang's tasks (bound, waiting) is the engine's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from enbloc.api.core import DISRUPTED
from enbloc.api.meta import Obj, Ref, annotations_of, condition_of, uid_of
from enbloc.api.volcano import DEFAULT_QUEUE as DEFAULT_QUEUE
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record
from enbloc.gangs.gang_tree import Branch, Vertex
from enbloc.gangs.hints import NONE, SchedulingHints
from enbloc.gangs.topology import PodTopology, TopologyConstraint

ONCE_SATISFIED, WAITING_AND_RUNNING, ONLY_WAITING = "once-satisfied", "waiting-and-running", "only-waiting"
"""What counts towards a minimum that was met once: nothing need; running and waiting pods; waiting pods only (K9)."""


class GangKey(NamedTuple):
    """Identifies one gang: two dialects may use one name for two gangs."""

    dialect: str
    namespace: str
    name: str


class Membership(NamedTuple):
    """The gang of a pod, and its role in it."""

    gang: GangKey
    role: str
    number: int | None
    """Its index within its role, if the pod has one (O2)."""


class Template(msgspec.Struct, frozen=True):
    """The pods of a role before they exist (D5, G8)."""

    count: int
    """The role's minimum."""
    pod_spec: Mapping[str, Any]
    labels: Mapping[str, str] = {}
    topology: tuple[PodTopology, ...] = ()
    """What its annotations ask for (T5)."""


class Complaint(NamedTuple):
    """A bad value that was replaced by a default: becomes a Warning event on its object."""

    ref: Ref
    uid: str
    message: str
    reason: str = "BadValue"
    """Of the Event."""


class GangStatus(msgspec.Struct, frozen=True):
    """What the API says has become of a gang; or, in the engine, what was decided and the API has not confirmed yet."""

    enqueued: bool = True
    """Whether it passed enqueue (M6): always so for gangs that need not."""
    enqueued_at_ns: int | None = None
    """When that was, in nanoseconds, if its object says so."""
    enqueued_by: str = ""
    """On what ground, if its object says so: a gang enqueued beyond the free room counts against no other (M6)."""
    tried: bool = False
    """Whether its object says that it was attempted since it was enqueued (M6)."""
    started: bool = False
    """Whether its object says that its minima have run since its pods were last all gone."""
    finished: bool = False
    """Whether it has run and ended."""
    claims: Mapping[ClaimKind, Record] = {}
    """The records of the room that is set aside for it."""
    claim_home: str = ""
    """The UID of the object that carries these records: a gang without an object of its own has only pods."""
    records_bytes: int = claim_records.RECORDS_BYTES
    """What all records may have on that object beside its other annotations."""
    evicted: str = ""
    """When and for which gang its pods were evicted, if its object says so: it does until it starts again (G10)."""


_UNKNOWN = GangStatus()


def with_records_of(home: Obj | None, status: GangStatus = _UNKNOWN) -> GangStatus:
    """The status with the records of claims that an object carries; `None`: the gang has none yet."""
    if home is None:
        return status
    annotations = annotations_of(home)
    return msgspec.structs.replace(
        status,
        claims=claim_records.read_all(annotations),
        claim_home=uid_of(home),
        records_bytes=claim_records.room_beside(annotations),
        evicted=_evicted(home),
    )


_LONGEST: Final = 300
"""Of a message that others may have written at most so many characters count."""


def _evicted(home: Obj) -> str:
    condition = condition_of(home, DISRUPTED) or {}
    said = " ".join(str(condition.get("message") or "").split())[:_LONGEST]
    return f"it was {said}" if condition.get("status") == "True" and said else ""


class GangSpec(msgspec.Struct, frozen=True):
    """A gang as its objects declare it; `observed` is what the API says has become of it."""

    key: GangKey
    title: str
    """`namespace/name` of the Job, PodGroup or pod that declares it, for users."""
    created_ns: int
    minimum: int
    """The number of tasks that must be occupied before any is bound."""
    minima: Mapping[str, int] = {}
    """The same by role; a role that is not listed has no minimum."""
    queue: str = DEFAULT_QUEUE
    priority: int | None = None
    """Its own class's. `None`: the highest of its members'."""
    limited_class: str = ""
    """Its own class, if a ResourceQuota limits that: it counts only if all its pods carry it (S3)."""
    at_most_pods: bool = False
    """Whether the lower of its own priority and its pods' counts (S3)."""
    pods_priority: int = 0
    """The priority that its pods will have, as far as that is known before they exist."""
    min_resources: Mapping[str, int] | None = None
    """Nano-units by resource, for enqueue (M6). `None`: enqueued at once."""
    node_selector: Mapping[str, str] = {}
    """Labels that every node of the gang must have, besides each pod's own selector (A2)."""
    keep_partial_allocation: bool = False
    """Whether room found by a failed attempt is closed to other gangs in that cycle, unless `backfill` is on (A2)."""
    waves: bool = False
    """Whether its roles begin one after the other (D): each wave is then a gang of its own."""
    wave_of: Mapping[str, int] = {}
    """The wave of each role, counted by what it depends on."""
    more_waves: bool = False
    """Whether roles have not begun yet (D3): until then surplus is not placed (D4)."""
    later: Mapping[str, Template] = {}
    """Roles that have not begun and must fit together with the first wave (D5)."""
    templates: Mapping[str, Template] = {}
    """All roles of such a gang, as placeholders for later waves."""
    first_wave: Mapping[str, Template] = {}
    """The roles whose pods a controller of ours creates once the gang is enqueued, until it has started."""
    object: Ref | None = None
    """The object that carries its phase and conditions; `None`: it has only pods."""
    object_uid: str = ""
    dialect: str = ""
    """The name of its dialect for users, where it differs from the key's."""
    expected: int = 0
    """The number of members to expect, if declared: shown, without effect (K1)."""
    group: tuple[GangKey, ...] = ()
    """The gangs that it names to start together with; empty: alone (K7)."""
    holds: bool = False
    """NonStrict: members that fit are held until the others do too (K6)."""
    waiting_ns: int = 0
    """How long it may be held, or wait for the gangs of its group, in nanoseconds; 0: without end (K8)."""
    match_policy: str = ONCE_SATISFIED
    """What counts towards its minimum once it was met (K9)."""
    leftovers_in_turn: bool = False
    """Whether members that wait once it is satisfied keep its place among others, as ordinary pods (G7, G8). If not,
    they come after the minima of gangs of its priority (G3)."""
    min_free_resources: Mapping[str, int] = {}
    """Nano-units by resource: not attempted while less than this is free in total (K7)."""
    topology: TopologyConstraint | None = None
    """Where all of its members must or should be together (T1, T2)."""
    topology_of_role: Mapping[str, TopologyConstraint] = {}
    """The same for the members of a role."""
    slices_of_role: Mapping[str, tuple[PodTopology, ...]] = {}
    """The same for slices of a role by index (T3)."""
    tree: Vertex | None = None
    """Its groups of members where these are grouped again, or leave a choice (T0): `minima` are those of one choice."""
    total: int = 0
    """The minimum of all its members together, whatever is chosen."""
    branches: Mapping[str, Branch] = {}
    """What is between the root of the tree and a leaf, by role."""
    evict_as_unit: bool = False
    """Whether it is evicted as a whole or not at all."""
    hints: SchedulingHints = NONE
    """The hints on its object."""
    longest_run_ns: int | None = None
    """The longest run time of its templates, in nanoseconds, if all of them declare one."""
    never_preempts: bool = False
    """Whether it, or its PriorityClass, has `preemptionPolicy: Never` (P2, U2)."""
    complaints: tuple[Complaint, ...] = ()
    observed: GangStatus = GangStatus()
    recreated_by_us: bool = False
    """Whether a Job or QueueJob controller of ours recreates its pods under their names (R7)."""
    failed_create: str = ""
    """Why the API server refused to create one of its pods, if its controller says so (N4)."""
    unsupported: str = ""
    """A constraint of its objects that is not honoured: it is held (N1)."""
    fault: str = ""
    """What raised while its objects were looked at: it is held (S8)."""
    problem: str = ""
    """Why it cannot be scheduled (its object does not exist yet, its values are bad); empty: it can."""

    @property
    def is_split(self) -> bool:
        """Whether its object has constraints for some of its tasks."""
        return bool(
            self.topology_of_role or self.slices_of_role or any(one.constraints for one in self.branches.values())
        )


def without_group(key: GangKey, created_ns: int, queue: str) -> GangSpec:
    """Pods whose PodGroup does not exist yet, or was deleted: they wait for it (K4, V5)."""
    title = f"{key.namespace}/{key.name}"
    problem = f"PodGroup {title} does not exist"
    return GangSpec(key=key, title=title, created_ns=created_ns, minimum=1, queue=queue, problem=problem)
