"""Tasks and gangs: facts from the API, each task's status and each gang's counts. Changing them is left to `state`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from enbloc.engine.core.tables.classes import TaskClass
from enbloc.engine.core.tables.commit_marks import Minima
from enbloc.engine.core.tables.need import Need, declared, is_only_waiting, need_of
from enbloc.engine.core.tables.phase import ALLOWS, Phase, phase_of
from enbloc.gangs.hints import NONE, SchedulingHints
from enbloc.gangs.model import GangKey, GangSpec, GangStatus
from enbloc.gangs.topology import PodTopology

if TYPE_CHECKING:
    from enbloc.engine.core.state.units import Unit


class TaskOrder(NamedTuple):
    """The order of a gang's tasks (O2): they compare by these."""

    priority: int
    """Negated: the highest comes first."""
    number: int
    """A name without a number comes last."""
    created_ns: int
    name: str
    uid: str


STORY_LENGTH = 16
"""A gang keeps its last 16 events, for assertion messages."""


class TaskStatus(IntEnum):
    """The status of a task. `HOLDS_ROOM` lists those that use resources of a node, `OCCUPIED` those that count towards
    minima."""

    GATED = 0
    """Has `schedulingGates`: not a member yet."""
    PENDING = 1
    ASSUMED = 2
    """Its Binding was decided; the API has not confirmed it yet."""
    BOUND = 3
    SUCCEEDED = 4
    FAILED = 5
    """No longer a member."""
    RELEASING = 6
    """Terminating: occupies its node, counts towards no minimum."""
    HELD = 7
    """Occupies a node without being bound until its gang is complete (K6)."""
    TIMED_OUT = 8
    """Its gang timed out: not a member while it carries the timeout annotation (K8)."""
    NOMINATED = 9
    """Pending, and occupies a node from which victims are being evicted for it (P3)."""


OCCUPIED = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.SUCCEEDED})
WAITS = frozenset({TaskStatus.PENDING, TaskStatus.NOMINATED})
HOLDS_ROOM = frozenset(
    {TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.RELEASING, TaskStatus.HELD, TaskStatus.NOMINATED}
)


class PodFacts(msgspec.Struct, frozen=True):
    """The fields of a pod that the engine reads, decoded once per event."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    created_ns: int
    priority: int
    node: str
    status: TaskStatus
    ours: bool
    """Whether its `schedulerName` is one of ours (G1)."""
    mark: str = ""
    """The commit mark it carries (G11)."""
    decision: str = ""
    """The decision that bound it (G11)."""
    hints: SchedulingHints = NONE
    """Its annotations about run time and eviction."""
    never_preempts: bool = False
    """`preemptionPolicy: Never` (P2)."""
    since_ns: int | None = None
    """When it started running."""
    unsupported: str = ""
    """A constraint of it that is not honoured: its gang is held (N1)."""
    topology: tuple[PodTopology, ...] = ()
    """What it says of the place of its role, or of its gang (T1, T2)."""


class Task:
    """One pod. Its gang and role never change; its status and node do."""

    __slots__ = (
        "cls",
        "created_ns",
        "decision",
        "gang",
        "hints",
        "labels",
        "mark",
        "name",
        "namespace",
        "never_preempts",
        "node",
        "order",
        "ours",
        "priority",
        "role",
        "since_ns",
        "spec",
        "status",
        "topology",
        "uid",
    )

    def __init__(self, facts: PodFacts, cls: TaskClass, gang: GangState, role: str, number: int | None) -> None:
        self.uid = facts.uid
        self.namespace = facts.namespace
        self.name = facts.name
        self.labels = facts.labels
        self.spec = facts.spec
        """As decoded: while it is the same object, the class need not be looked up again."""
        self.cls = cls
        self.gang = gang
        self.role = role
        self.priority = facts.priority
        self.created_ns = facts.created_ns
        self.node = facts.node
        self.status = facts.status
        self.ours = facts.ours
        self.mark = facts.mark
        self.decision = facts.decision
        self.hints = facts.hints
        self.never_preempts = facts.never_preempts
        self.since_ns = facts.since_ns
        self.topology = facts.topology
        if facts.topology:
            gang.has_topology_of_pods = True
        self.order = TaskOrder(
            -facts.priority, number if number is not None else 2**31, facts.created_ns, facts.name, facts.uid
        )

    @property
    def run_time_ns(self) -> int | None:
        """Its expected run time, from its own annotation or its gang's; `None`: unknown (R8)."""
        own = self.hints.run_time_ns
        return own if own is not None else self.gang.spec.hints.run_time_ns

    def __repr__(self) -> str:
        return f"Task({self.namespace}/{self.name} {self.status.name} {self.node})"


class GangState:
    """A gang: its spec, its tasks and their counts."""

    __slots__ = (
        "_need",
        "_need_version",
        "_story",
        "alone",
        "assumed",
        "behind",
        "covered",
        "evicted",
        "has_topology_of_pods",
        "held",
        "key",
        "minima",
        "occupied",
        "partial_since_ns",
        "pending",
        "priority",
        "ran",
        "satisfied",
        "spec",
        "tasks",
        "version",
    )

    def __init__(self, spec: GangSpec) -> None:
        self.key: GangKey = spec.key
        self.spec = spec
        self.minima = declared(spec)
        """Of several choices of sub-groups those of the one that counts now (T0)."""
        self._need: Need | None = None
        self._need_version = -1
        self.alone: Unit | None = None
        """What it is in if it starts with no other gang, once that was asked for."""
        self._story: deque[tuple[object, ...]] = deque(maxlen=STORY_LENGTH)
        self.assumed: GangStatus | None = None
        """Its status as decided and not confirmed by the API yet; `None`: nothing is unconfirmed."""
        self.tasks: dict[str, Task] = {}
        self.pending: dict[str, int] = {}
        """Role → tasks that are pending or nominated."""
        self.occupied: dict[str, int] = {}
        """Role → tasks that count towards its minimum."""
        self.held: dict[str, int] = {}
        """Role → tasks that are held until the gang is complete (K6)."""
        self.priority = 0
        self.covered = ""
        """The commit mark of the minima that were bound once (see `commit_marks`)."""
        self.evicted = False
        """Whether a pod of it was evicted since room was last claimed for its later waves (S9)."""
        self.satisfied = False
        """Whether its present minima were bound once (G7)."""
        self.ran: frozenset[str] = frozenset()
        """Roles of earlier waves, which are satisfied: the present wave is scheduled without them (D3, G7)."""
        self.behind: frozenset[str] = frozenset()
        """Roles of waves after the present one; some may have started before an earlier wave had to restart."""
        self.has_topology_of_pods = False
        """Whether a pod of it said, at any time, where its role or its gang has to be: if not, none need be asked."""
        self.partial_since_ns: int | None = None
        """When it was first found partially bound (G11)."""
        self.version = 0
        """Incremented whenever one of its tasks is added, removed or changes its status or node, and when other
        members count or are needed."""

    def note(self, *what: object) -> None:
        """Adds to the story of the gang: the last things that happened to it. The words are put together when asked."""
        self._story.append(what)

    @property
    def story(self) -> str:
        """The last things that happened to the gang, for errors about it."""
        happened = "; ".join(" ".join(str(word) for word in what if word != "") for what in self._story)
        return f"story of {self.spec.title}: {happened or 'nothing happened yet'}"

    @property
    def status(self) -> GangStatus:
        """Its status in the API, with what was decided since."""
        return self.assumed if self.assumed is not None else self.spec.observed

    @property
    def is_constrained(self) -> bool:
        """Whether its tasks must or should be together."""
        return self.spec.topology is not None or self.has_parts

    @property
    def has_parts(self) -> bool:
        """Whether constraints are for some of its tasks: by its object, or by its pods."""
        return self.spec.is_split or (self.has_topology_of_pods and any(task.topology for task in self.tasks.values()))

    def assume(self, **changes: Any) -> None:
        """Sets the assumed status; the next change of its object replaces it."""
        self.assumed = msgspec.structs.replace(self.status, **changes)

    @property
    def run_time_ns(self) -> int | None:
        """Its longest expected run time; `None`: unknown for the gang or one of its tasks (R8)."""
        declared = self.spec.hints.run_time_ns
        if declared is None and self.tasks:
            times = [task.run_time_ns for task in self.tasks.values()]
            known = [time for time in times if time is not None]
            return max(known) if len(known) == len(times) else None
        return declared if declared is not None else self.spec.longest_run_ns

    @property
    def sla_waiting_ns(self) -> int | None:
        """How long it may wait by its own annotation; a gang without an object by the shortest of its pods'."""
        own = self.spec.hints.sla_waiting_ns
        if own is not None or self.spec.object is not None:
            return own
        times = (task.hints.sla_waiting_ns for task in self.tasks.values())
        return min((time for time in times if time is not None), default=None)

    @property
    def total_occupied(self) -> int:
        return sum(self.occupied.values())

    @property
    def total_pending(self) -> int:
        return sum(self.pending.values())

    def in_wave(self, role: str) -> bool:
        """Whether a role belongs to the present wave; without waves every role does."""
        return role not in self.ran and role not in self.behind

    @property
    def total_held(self) -> int:
        return sum(self.held.values())

    @property
    def only_waiting(self) -> bool:
        return is_only_waiting(self.spec, self.covered)

    @property
    def total_found(self) -> int:
        return (0 if self.only_waiting else self.total_occupied) + self.total_held

    @property
    def need(self) -> Need:
        """What its minima ask for, and what of it is there."""
        if self._need_version != self.version:
            self._need, self._need_version = need_of(self, self.minima), self.version
        assert self._need is not None
        return self._need

    @property
    def phase(self) -> Phase:
        return phase_of(self)

    @property
    def starts(self) -> bool:
        """Whether its minima are to be placed yet, with those of all that start with it. If not, its tasks are placed
        one by one: surplus, and replacements of lost members. As `ALLOWS` says of its phase, without computing that."""
        return not self.satisfied and (self.total_held > 0 or not self.need.ready)

    @property
    def may_claim(self) -> bool:
        """Whether nodes may be reserved, and pods evicted, for it (R, P)."""
        return ALLOWS[phase_of(self)].may_claim

    def choose(self, minima: Minima) -> None:
        """From now on these are its minima, of several choices of sub-groups (T0)."""
        if minima != self.minima:
            self.minima = minima
            self.version += 1

    def __repr__(self) -> str:
        return f"GangState({self.spec.title} min={self.minima.total} occupied={self.occupied} pending={self.pending})"


_ORDER = attrgetter("order")


def pending_tasks(gang: GangState) -> list[Task]:
    """The pending tasks of a gang that are ours to schedule, in the order of O2."""
    pending = [task for task in gang.tasks.values() if task.status in WAITS and task.ours]
    pending.sort(key=_ORDER)
    return pending


def held_tasks(gang: GangState) -> list[Task]:
    """The tasks of a gang that are held (K6)."""
    return [task for task in gang.tasks.values() if task.status is TaskStatus.HELD] if gang.total_held else []
