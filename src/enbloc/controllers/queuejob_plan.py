"""A QueueJob as its controller reads it: roles, minimum, priority, and the creation order of its pods (A3, A4)."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from enbloc.api import arbitrator
from enbloc.api.kinds import view
from enbloc.api.meta import Obj
from enbloc.api.workloads import MOST_PODS
from enbloc.controllers.plan import Plan
from enbloc.gangs.gang_priority import GangPriorities, OwnPriority
from enbloc.gangs.priority_classes import PriorityClasses
from enbloc.units import instant_of


class Role(msgspec.Struct, frozen=True):
    """A named set of like pods. `template` is shared with the object and never changed."""

    name: str
    replicas: int
    template: dict[str, Any]
    template_hash: str
    """Pods that carry another hash were created from an older template (A6)."""
    priority_class: str


class Slot(msgspec.Struct, frozen=True):
    """One pod that the job should have."""

    role: Role
    index: int
    name: str


class QueueJobPlan(Plan, frozen=True):
    roles: tuple[Role, ...]
    scheduling: arbitrator.SchedulingTemplate
    scheduler_name: str

    @property
    def replicas(self) -> int:
        return sum(role.replicas for role in self.roles)

    @property
    def generation(self) -> int:
        return self.obj["metadata"].get("generation") or 0

    def slots(self, priorities: PriorityClasses) -> list[Slot]:
        """Every pod it should have, in order of creation: roles by the priority of their pods (A4)."""
        ranked = sorted(self.roles, key=lambda role: -priorities.or_default(role.priority_class))  # a stable sort
        return [
            Slot(role, index, f"{self.name}-{role.name}-{index}") for role in ranked for index in range(role.replicas)
        ]

    def order_key(self, priorities: GangPriorities) -> tuple[int, int, str]:
        """Sorts the QueueJobs of a namespace: by priority, then age, then name (A4, G8)."""
        return (-self._priority(priorities), instant_of(self.obj["metadata"].get("creationTimestamp")), self.name)

    def _priority(self, priorities: GangPriorities) -> int:
        """Its own class's, as far as that counts (S3), else the highest of its pods'."""
        asked, name = self.scheduling, self.scheduling.priority_class_name
        of_pods = max((priorities.classes.or_default(role.priority_class) for role in self.roles), default=0)
        own = priorities.own(self.namespace, name) if name else OwnPriority(asked.priority)
        is_carried = not own.limited_class or all(role.priority_class == own.limited_class for role in self.roles)
        if own.value is None or not is_carried:
            return of_pods
        return min(own.value, of_pods) if own.at_most_pods else own.value


def plan_of(obj: Obj, default_scheduler_name: str) -> QueueJobPlan:
    spec = view(obj, arbitrator.QueueJob).spec
    scheduling = spec.sched_spec or spec.scheduling_spec or arbitrator.SchedulingTemplate()
    scheduler_name = spec.scheduler_name or default_scheduler_name
    raw_roles = obj["spec"].get("taskSpecs") or []
    roles = tuple(
        Role(
            name=task.name or arbitrator.default_task_name(index),
            replicas=min(max(task.replicas, 0), MOST_PODS),
            template=raw["template"],
            template_hash=_hash(raw["template"], scheduler_name),
            priority_class=task.template.spec.priority_class_name,
        )
        for index, (task, raw) in enumerate(zip(spec.task_specs or (), raw_roles, strict=True))
    )
    minimum = scheduling.min_available
    return QueueJobPlan(
        obj=obj,
        minimum=sum(role.replicas for role in roles) if minimum is None else max(minimum, 0),
        roles=roles,
        scheduling=scheduling,
        scheduler_name=scheduler_name,
    )


def _hash(template: dict[str, Any], scheduler_name: str) -> str:
    text = msgspec.json.encode([template, scheduler_name], order="sorted")
    return hashlib.sha256(text).hexdigest()[:12]
