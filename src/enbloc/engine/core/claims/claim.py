"""A claim: room on named nodes for tasks of one gang that are not bound yet (Words).

A claim of the kind `evicted` has no slots: it records which gangs were evicted for its gang (`EvictedGangs`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import NamedTuple

import msgspec

from enbloc.engine.core.tables.tasks import WAITS, GangState, Task, TaskStatus, pending_tasks
from enbloc.gangs import claim_records
from enbloc.gangs.claim_records import ClaimKind, Record

RECREATION_NS = 5_000_000_000
"""How long a slot stays for a pod that a Job or QueueJob of ours is recreating (R7)."""


class Slot(msgspec.Struct, eq=False):
    """The place of one task. Slots go by the pod's name: a pod that is recreated takes its slot again."""

    name: str
    node: str
    task: Task | None
    """`None` while the pod is being recreated."""
    absent_since_ns: int | None = None

    def is_for_member_of(self, gang: GangState) -> bool:
        """Whether its pod exists and is a member of the gang."""
        return self.task is not None and gang.tasks.get(self.task.uid) is self.task

    def is_later(self, gang: GangState) -> bool:
        """Whether it is for a pod of a later wave, which will be created (D5)."""
        return self.task is not None and self.task.uid not in gang.tasks and self.task.role in gang.spec.later

    @property
    def waits(self) -> bool:
        """Whether its pod exists and is not bound."""
        return self.task is not None and (self.task.status in WAITS or self.task.status is TaskStatus.HELD)


class Claim:
    """What one gang claims of one kind."""

    __slots__ = ("clock_ns", "evicted", "gang", "held", "kind", "priority", "queue", "slots", "stands_ns", "until_ns")

    def __init__(self, gang: GangState, kind: ClaimKind, slots: Iterable[Slot], until_ns: int = 0) -> None:
        self.gang = gang
        self.kind = kind
        self.slots = {slot.name: slot for slot in slots}
        self.until_ns = until_ns
        """When it expires; 0: it has no deadline."""
        self.clock_ns = 0
        """When the clock of its group started (K8), or when its nodes were reserved (R4); 0 if its kind has none."""
        self.stands_ns = 0
        """Since when that clock stands (K8); 0: it runs."""
        self.held = False
        """Whether a held pod started it."""
        self.evicted: tuple[str, ...] = ()
        """Digests of the gangs that were evicted for its gang; only of the kind `evicted` (P3)."""
        self.queue = gang.spec.queue
        """Of its gang, as it was made (S9)."""
        self.priority = gang.priority
        """Of its gang, as it was last reviewed: gangs of higher priority are not bound by it (R5)."""

    @property
    def tasks(self) -> list[Task]:
        """The tasks that it is for, as far as they exist."""
        return [slot.task for slot in self.slots.values() if slot.task is not None]

    @property
    def members(self) -> list[Task]:
        """The tasks that it is for and that are still members of the gang."""
        return [task for task in self.tasks if self.gang.tasks.get(task.uid) is task]

    @property
    def nodes(self) -> list[str]:
        return sorted({slot.node for slot in self.slots.values()})

    @property
    def places(self) -> dict[str, str]:
        """Task UID → node."""
        return {slot.task.uid: slot.node for slot in self.slots.values() if slot.task is not None}

    def beyond_templates(self) -> list[Slot]:
        """Slots for pods of later waves beyond those that will be needed: the role was scaled down, or its minimum.
        Pods that exist already and wait take theirs."""
        left = {role: template.count for role, template in self.gang.spec.later.items()}
        for task in pending_tasks(self.gang) if left else ():
            if task.role in left:
                left[task.role] += 1
        found = []
        for slot in self.slots.values():
            if slot.task is not None and slot.is_later(self.gang):
                left[slot.task.role] -= 1
                if left[slot.task.role] < 0:
                    found.append(slot)
        return found

    def record(self) -> Record:
        """What is written down of it."""
        slots: dict[str, dict[str, int]] = {}
        for slot in self.slots.values():
            name = slot.name if self.kind.names_pods or slot.task is None else slot.task.role
            nodes = slots.setdefault(name, {})
            nodes[slot.node] = nodes.get(slot.node, 0) + 1
        until_ns = self.stands_ns if self.clock_ns else self.until_ns
        evicted = self.evicted or msgspec.UNSET
        record = Record(self.kind, until_ns, slots, clock_ns=self.clock_ns, held=self.held, evicted=evicted)
        return claim_records.shortened(record)

    def __repr__(self) -> str:
        return f"Claim({self.gang.spec.title} {self.kind} of {len(self.slots)} slots)"


class Ending(NamedTuple):
    """Why a claim ends: a word for machines, and a sentence."""

    reason: str
    message: str


def pod_slots(gang: GangState, record: Record) -> dict[str, str]:
    """Pod name → node of a record that names pods; bounded by the members that exist."""
    return {task.name: next(iter(nodes)) for task in gang.tasks.values() if (nodes := record.places(task.name))}


def pending_slots(gang: GangState, record: Record, nodes: Container[str]) -> list[Slot]:
    """The slots of a record whose pods wait and whose nodes exist, in the order of O2."""
    places = pod_slots(gang, record)
    return [
        Slot(task.name, places[task.name], task)
        for task in pending_tasks(gang)
        if task.status is TaskStatus.PENDING and places.get(task.name) in nodes
    ]
