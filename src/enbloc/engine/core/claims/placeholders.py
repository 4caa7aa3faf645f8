"""Placeholders: tasks that hold room for pods that do not exist yet (D5).

A placeholder is a task of the role's template on the node that was found for it. It takes room, queue use and its place
among other pods like any task; when the real pod comes, it takes the placeholder's place.
"""

from __future__ import annotations

from enbloc.engine.core.claims.room import PLACEHOLDER
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.tasks import GangState, PodFacts, Task, TaskStatus
from enbloc.gangs.model import Template


def is_claim(task: Task) -> bool:
    """Whether a task that has room is not bound there: it is held, nominated, or a placeholder."""
    return task.status in (TaskStatus.HELD, TaskStatus.NOMINATED) or is_placeholder(task)


def is_placeholder(task: Task) -> bool:
    return task.uid.startswith(PLACEHOLDER)


def make_placeholders(
    state: State, gang: GangState, role: str, template: Template, first: int, count: int
) -> list[Task]:
    """Pending tasks of a template, numbered from `first` and named as their pods will be. They belong to a copy of the
    gang that counts nothing."""
    copy = GangState(gang.spec)
    copy.priority = gang.priority
    copy.pending[role] = count
    gang.has_topology_of_pods = gang.has_topology_of_pods or bool(template.topology)
    job = gang.spec.title.rpartition("/")[2]
    found = []
    for index in range(first, first + count):
        facts = PodFacts(
            uid=f"{PLACEHOLDER}{'/'.join(gang.key)}/{role}/{index}",
            namespace=gang.key.namespace,
            name=f"{job}-{role}-{index}",
            labels=template.labels,
            spec=template.pod_spec,
            created_ns=gang.spec.created_ns,
            priority=gang.priority,
            node="",
            status=TaskStatus.PENDING,
            ours=True,
            topology=template.topology,
        )
        found.append(Task(facts, state.class_of(gang, facts), copy, role, index))
    return found
