"""The priority of a gang: its own class's, as far as its pods grant it, else the highest of its pods' (G8, S3)."""

from __future__ import annotations

from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.gangs.model import GangSpec


def follows_pods(spec: GangSpec) -> bool:
    """Whether its pods bear on its priority."""
    return spec.priority is None or spec.at_most_pods or bool(spec.limited_class)


def granted_priority(gang: GangState) -> int:
    spec = gang.spec
    if not follows_pods(spec):
        return spec.priority or 0
    of_pods = max((task.priority for task in gang.tasks.values()), default=spec.pods_priority)
    if spec.priority is None:
        return of_pods
    if spec.limited_class and not _is_carried(gang):
        return of_pods
    return min(spec.priority, of_pods) if spec.at_most_pods else spec.priority


def _is_carried(gang: GangState) -> bool:
    """Whether all its pods carry its own class; before they exist, whether they will."""
    if not gang.tasks:
        return gang.spec.pods_priority == gang.spec.priority
    return all(_carries(task) for task in gang.tasks.values())


def _carries(task: Task) -> bool:
    return task.spec.get("priorityClassName") == task.gang.spec.limited_class


def may_change_priority(gang: GangState, task: Task) -> bool:
    """Whether a task that was added may change the priority of its gang."""
    spec = gang.spec
    if not follows_pods(spec):
        return False
    if gang.priority == spec.priority:  # all that its own class gives: only a limited class can be lost
        return bool(spec.limited_class) and not _carries(task)
    return task.priority > gang.priority
