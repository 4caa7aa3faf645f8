"""A Job as its controller reads it: its roles, their minima, and which tasks belong to the minimum (M1, M3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from enbloc.api import volcano
from enbloc.api.job_plugins import with_needed
from enbloc.api.kinds import view
from enbloc.api.meta import Obj, annotations_of
from enbloc.api.requests import pod_requests
from enbloc.api.workloads import MOST_PODS
from enbloc.config import Tenancy
from enbloc.controllers.plan import Plan
from enbloc.gangs.gang_priority import is_granted
from enbloc.gangs.own_annotations import OWN_ANNOTATIONS
from enbloc.gangs.priority_classes import PriorityClasses


class Role(msgspec.Struct, frozen=True):
    """A named set of like tasks. `template` is shared with the object and never changed."""

    name: str
    replicas: int
    minimum: int
    awaited: int
    """How many must run before a role that depends on this one begins: without a minimum its replicas, with an explicit
    0 none (D2)."""
    template: dict[str, Any]
    requests: dict[str, int]
    priority_class: str
    depends_on: tuple[str, ...]
    any_suffices: bool
    max_retry: int
    policies: tuple[volcano.LifecyclePolicy, ...]


class JobPlan(Plan, frozen=True):
    roles: tuple[Role, ...]
    spec: volcano.JobSpec
    scheduler_name: str
    plugins: dict[str, list[str]]
    inherited_class: str
    """The priority class of its pods whose template names none: the job's, where that is granted (S3)."""

    @property
    def group_name(self) -> str:
        return f"{self.name}-{self.uid}"

    @property
    def queue(self) -> str:
        return self.spec.queue or volcano.DEFAULT_QUEUE

    @property
    def replicas(self) -> int:
        return sum(role.replicas for role in self.roles)

    @property
    def is_dependent(self) -> bool:
        return any(role.depends_on for role in self.roles)

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)


def plan_of(obj: Obj, scheduler_name: str, tenancy: Tenancy = Tenancy()) -> JobPlan:  # noqa: B008 - it is frozen
    """`scheduler_name`: the default for a job that names none."""
    job = view(obj, volcano.Job)
    raw_roles = obj["spec"].get("tasks") or []
    defaulted = frozenset(annotations_of(obj).get(volcano.DEFAULTED_MINIMA, "").split(","))
    own = job.spec.priority_class_name
    inherited = own if is_granted(own, job.metadata.namespace, tenancy) else ""
    roles = tuple(
        _role(task, raw, index, inherited, defaulted)
        for index, (task, raw) in enumerate(zip(job.spec.tasks or (), raw_roles, strict=True))
    )
    minimum = job.spec.min_available or sum(role.minimum for role in roles)
    asked = job.spec.plugins or {}
    plugins = {name: list(asked.get(name) or ()) for name in with_needed(asked)}
    return JobPlan(obj, minimum, roles, job.spec, job.spec.scheduler_name or scheduler_name, plugins, inherited)


def _role(
    task: volcano.TaskSpec, raw: dict[str, Any], index: int, inherited_class: str, defaulted: frozenset[str]
) -> Role:
    depends_on = task.depends_on
    name = task.name or f"default{index}"
    replicas = min(max(task.replicas, 0), MOST_PODS)
    minimum = max(task.replicas, 0) if task.min_available is None else task.min_available
    return Role(
        name=name,
        replicas=replicas,
        minimum=minimum,
        awaited=replicas if not minimum and name in defaulted else minimum,
        template=raw["template"],
        requests=pod_requests(task.template.spec),
        priority_class=task.template.spec.priority_class_name or inherited_class,
        depends_on=tuple((depends_on.name or ()) if depends_on else ()),
        any_suffices=depends_on is not None and depends_on.iteration == "any",
        max_retry=3 if task.max_retry is None else task.max_retry,
        policies=tuple(task.policies or ()),
    )


def role_priorities(plan: JobPlan, classes: PriorityClasses) -> dict[str, int]:
    return {role.name: classes.or_default(role.priority_class) for role in plan.roles}


def minimum_tasks(plan: JobPlan, begun: Collection[str], priorities: Mapping[str, int]) -> dict[str, int]:
    """How many tasks of each begun role belong to the minimum of the waves begun (D3).

    The role minima in full; where the job's own exceeds their sum (M1, relaxed) further tasks are taken in the order of
    O2: by priority, then index, then in the order of the roles.
    """
    roles = [role for role in plan.roles if role.name in begun]
    awaited = {name for role in plan.roles if role.name not in begun for name in role.depends_on}
    counts = {role.name: min(role.awaited if role.name in awaited else role.minimum, role.replicas) for role in roles}
    later = sum(role.minimum or role.replicas for role in plan.roles if role.name not in begun)
    missing = plan.minimum - later - sum(counts.values())
    if missing > 0:
        spare = [
            (-priorities.get(role.name, 0), index, position, role.name)
            for position, role in enumerate(roles)
            for index in range(counts[role.name], role.replicas)
        ]
        for *_, name in sorted(spare)[:missing]:
            counts[name] += 1
    return counts


def minimum_resources(plan: JobPlan, begun: Collection[str], priorities: Mapping[str, int]) -> dict[str, int]:
    """The requests of the minimum tasks alone (M3), in nano-units; of the waves that have begun (D3)."""
    total: dict[str, int] = {}
    counts = minimum_tasks(plan, begun, priorities)
    for role in plan.roles:
        for resource, nanos in role.requests.items():
            total[resource] = total.get(resource, 0) + nanos * counts.get(role.name, 0)
    return {resource: nanos for resource, nanos in total.items() if nanos}


def preserved_annotations(plan: JobPlan) -> dict[str, str]:
    """Annotations of the job that are copied to its PodGroup; not those that concern the Job object alone."""
    return {
        key: value
        for key, value in annotations_of(plan.obj).items()
        if key not in OWN_ANNOTATIONS
        and not key.startswith(("kubectl.kubernetes.io/", "sim.enbloc.dev/", "enbloc.dev/defaulted"))
    }
