"""Tasks and gangs as the engine sees them: facts from the API, and where each task stands."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import msgspec

from enbloc.engine.tables.classes import TaskClass
from enbloc.gangs.hints import NONE, SchedulingHints
from enbloc.gangs.model import ONLY_WAITING, GangKey, GangSpec, GangStatus

Order = tuple[int, int, int, str, str]


STORY_LENGTH = 16
"""How many events a gang remembers of itself."""


class TaskStatus(IntEnum):
    """Where a task stands. Only what has a node holds room; see `occupied` for what counts towards minima."""

    GATED = 0
    """Exists, is not a member yet (`schedulingGates`)."""
    PENDING = 1
    ASSUMED = 2
    """Given a node by us; the API has not said so yet."""
    BOUND = 3
    SUCCEEDED = 4
    FAILED = 5
    """Ended badly: no member any more."""
    RELEASING = 6
    """Terminating: keeps its room, counts towards nothing."""
    HELD = 7
    """Keeps the room that was found for it until its gang is complete; not bound (K6)."""
    TIMED_OUT = 8
    """Its gang waited too long: no member until the mark is taken off (K8)."""
    NOMINATED = 9
    """Waits like any other, and has its room already: others are leaving the node for it (P3)."""


OCCUPIED = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.SUCCEEDED})
WAITS = frozenset({TaskStatus.PENDING, TaskStatus.NOMINATED})
HOLDS_ROOM = frozenset(
    {TaskStatus.ASSUMED, TaskStatus.BOUND, TaskStatus.RELEASING, TaskStatus.HELD, TaskStatus.NOMINATED}
)


class PodFacts(msgspec.Struct, frozen=True):
    """All the engine wants to know of one pod, read once per event."""

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    created: int
    priority: int
    node: str
    status: TaskStatus
    ours: bool
    """Whether it asks for one of our schedulers (G1)."""
    mark: str = ""
    """The commit mark it carries (G11)."""
    decision: str = ""
    """The decision that bound it (G11)."""
    hints: SchedulingHints = NONE
    """What it says of itself about running and being evicted."""
    never_preempts: bool = False
    """Whether nobody is evicted for it (P2)."""
    since: int | None = None
    """Since when it has been running."""


class Task:
    """One pod. Its gang, role and class never change; where it stands does."""

    __slots__ = (
        "cls",
        "created",
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
        "since",
        "spec",
        "status",
        "uid",
    )

    def __init__(self, facts: PodFacts, cls: TaskClass, gang: GangState, role: str, number: int | None) -> None:
        self.uid = facts.uid
        self.namespace = facts.namespace
        self.name = facts.name
        self.labels = facts.labels
        self.spec = facts.spec
        """As it came: while it is the same object, the class need not be looked up again."""
        self.cls = cls
        self.gang = gang
        self.role = role
        self.priority = facts.priority
        self.created = facts.created
        self.node = facts.node
        self.status = facts.status
        self.ours = facts.ours
        self.mark = facts.mark
        self.decision = facts.decision
        self.hints = facts.hints
        self.never_preempts = facts.never_preempts
        self.since = facts.since
        # O2 as one key: priority, index, age, name. A name without a number comes last.
        self.order: Order = (
            -facts.priority,
            number if number is not None else 2**31,
            facts.created,
            facts.name,
            facts.uid,
        )

    @property
    def run_time(self) -> int | None:
        """How long it is expected to run, by its own word or its gang's; `None`: nobody knows (R8)."""
        own = self.hints.run_time_ns
        return own if own is not None else self.gang.spec.hints.run_time_ns

    def __repr__(self) -> str:
        return f"Task({self.namespace}/{self.name} {self.status.name} {self.node})"


class GangState:
    """A gang and what has become of it."""

    __slots__ = (
        "_story",
        "assumed",
        "attempted",
        "behind",
        "counted",
        "covered",
        "equivalence",
        "held",
        "key",
        "occupied",
        "partial_since",
        "pending",
        "priority",
        "ran",
        "satisfied",
        "spec",
        "tasks",
        "ticket",
        "version",
        "why",
    )

    def __init__(self, spec: GangSpec) -> None:
        self.key: GangKey = spec.key
        self.spec = spec
        self._story: deque[str] = deque(maxlen=STORY_LENGTH)
        self.assumed: GangStatus | None = None
        """What was decided of its status and is not confirmed by the API yet; `None`: nothing."""
        self.tasks: dict[str, Task] = {}
        self.pending: dict[str, int] = {}
        """By role: how many wait for a node."""
        self.occupied: dict[str, int] = {}
        """By role: how many count towards its minimum."""
        self.held: dict[str, int] = {}
        """By role: how many are held until the others fit too (K6)."""
        self.priority = 0
        self.covered = ""
        """The mark of the minima that were bound once (see `marks`)."""
        self.satisfied = False
        """Whether its present minima were bound once (G7)."""
        self.ran: frozenset[str] = frozenset()
        """Roles of earlier waves, satisfied for themselves: the present wave is a gang without them (D3, G7)."""
        self.behind: frozenset[str] = frozenset()
        """Roles that have begun and whose turn comes after the present wave: an earlier one has to start over."""
        self.partial_since: int | None = None
        """Since when it has been seen partly started (G11)."""
        self.attempted: frozenset[str] = frozenset()
        """The tasks with which it was tried last: until one of those that are there was, it counts against others at
        enqueue (M6)."""
        self.version = 0
        """Goes up whenever one of its tasks comes, goes or stands elsewhere."""
        self.counted: Any = None
        """What it adds to its queue's demand and to what was let in; kept so that it can be taken off again."""
        self.ticket = 0
        """Changes whenever it is queued anew: entries with an older one are stale."""
        self.equivalence: Any = None
        """Where it waits (see `waiting`), if it is queued."""
        self.why: Any = None
        """Its story, if it waits and is not queued (see `story`)."""

    def note(self, what: str) -> None:
        """Adds to the story of the gang: the last things that happened to it."""
        self._story.append(what)

    @property
    def story(self) -> str:
        """The last things that happened to the gang, for errors about it."""
        return f"story of {self.spec.title}: {'; '.join(self._story) or 'nothing happened yet'}"

    @property
    def status(self) -> GangStatus:
        """What the API says of it, with what was decided since."""
        return self.assumed if self.assumed is not None else self.spec.observed

    def assume(self, **changes: Any) -> None:
        """Decided, and not confirmed by the API yet: the next change of its object replaces it."""
        self.assumed = msgspec.structs.replace(self.status, **changes)

    @property
    def run_time(self) -> int | None:
        """How long it runs at most, if all that is known of it says so; `None`: nobody knows (R8)."""
        said = self.spec.hints.run_time_ns
        if said is None and self.tasks:
            times = [task.run_time for task in self.tasks.values()]
            known = [time for time in times if time is not None]
            return max(known) if len(known) == len(times) else None
        return said if said is not None else self.spec.longest_run

    @property
    def total_occupied(self) -> int:
        return sum(self.occupied.values())

    @property
    def total_pending(self) -> int:
        return sum(self.pending.values())

    def in_wave(self, role: str) -> bool:
        """Whether a role is of the present wave; of a gang without waves every role is."""
        return role not in self.ran and role not in self.behind

    def minima(self) -> dict[str, int]:
        """The minima of the present wave, by role."""
        return {role: minimum for role, minimum in self.spec.minima.items() if self.in_wave(role)}

    def short_of(self, counts: dict[str, int]) -> int:
        """How far these counts by role are from the total that the present wave needs."""
        others = sum(minimum for role, minimum in self.spec.minima.items() if not self.in_wave(role))
        return self.spec.minimum - others - sum(count for role, count in counts.items() if self.in_wave(role))

    @property
    def total_held(self) -> int:
        return sum(self.held.values())

    @property
    def only_waiting(self) -> bool:
        """Whether, since its minimum was met once, only those who wait count towards it (K9)."""
        return self.spec.match_policy == ONLY_WAITING and bool(self.covered)

    def found(self, role: str) -> int:
        """How many of a role count towards its minimum, those that are held included."""
        return (0 if self.only_waiting else self.occupied.get(role, 0)) + self.held.get(role, 0)

    def found_by_role(self) -> dict[str, int]:
        return {role: self.found(role) for role in {*self.occupied, *self.held}}

    @property
    def total_found(self) -> int:
        return (0 if self.only_waiting else self.total_occupied) + self.total_held

    def complete(self) -> bool:
        """Whether its minima could be bound: occupied or held."""
        return (
            all(self.found(role) >= minimum for role, minimum in self.spec.minima.items())
            and self.total_found >= self.spec.minimum
        )

    def missing(self) -> dict[str, int]:
        """Members that would have to exist and do not, by role; `""` stands for the total (G4)."""
        found = {}
        for role, minimum in self.minima().items():
            lacking = minimum - self.found(role) - self.pending.get(role, 0)
            if lacking > 0:
                found[role] = lacking
        waiting = sum(count for role, count in self.pending.items() if self.in_wave(role))
        lacking = self.short_of(self.found_by_role()) - waiting - sum(found.values())
        if lacking > 0:
            found[""] = lacking
        return found

    def ready(self) -> bool:
        """Each role first, then the total (M4)."""
        if self.only_waiting:
            return not self.total_pending
        return (
            all(self.occupied.get(role, 0) >= minimum for role, minimum in self.spec.minima.items())
            and self.total_occupied >= self.spec.minimum
        )

    def __repr__(self) -> str:
        return f"GangState({self.spec.title} min={self.spec.minimum} occupied={self.occupied} pending={self.pending})"
