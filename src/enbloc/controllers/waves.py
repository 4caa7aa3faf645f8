"""The waves of a job with dependsOn: which roles have begun (D2, D3), and what the others wait for."""

from __future__ import annotations

from collections.abc import Collection

from enbloc.api.meta import Obj
from enbloc.controllers.job_group import begun_roles
from enbloc.controllers.job_pod_counts import PodCounts
from enbloc.controllers.job_roles import JobPlan, Role


def begun(plan: JobPlan, pod_counts: PodCounts, group: Obj | None) -> frozenset[str]:
    """The roles whose wave has begun: their dependencies run (D2), or it had begun before (D3)."""
    earlier = begun_roles(group)
    return frozenset(
        role.name
        for role in plan.roles
        if role.name in earlier or pod_counts.size(role.name) or _dependencies_run(plan, role, pod_counts)
    )


def _dependencies_run(plan: JobPlan, role: Role, pod_counts: PodCounts) -> bool:
    if not role.depends_on:
        return True
    run = []
    for name in role.depends_on:
        other = plan.role(name)
        needed = other.awaited if other else 0
        run.append(pod_counts.ready[name] + pod_counts.of(name, "Succeeded") >= needed)
    return any(run) if role.any_suffices else all(run)


def waits_for(plan: JobPlan, names: Collection[str]) -> str:
    """What the roles wait for that have not begun; `names`: those that have. Empty if all have."""
    found = []
    for role in plan.roles:
        if role.name not in names:
            others = [other for name in role.depends_on if (other := plan.role(name)) and other.awaited]
            awaited = [f"{other.awaited} of role {other.name}" for other in others]
            listed = (" or " if role.any_suffices else " and ").join(awaited)
            found.append(f"pods of role {role.name} are created once {listed} run and are ready, or have succeeded")
    return "; ".join(found)
