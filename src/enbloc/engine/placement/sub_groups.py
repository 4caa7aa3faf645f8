"""The surplus of a gang with a tree (T0): sub-groups that have not started are placed as a whole, members of those that
have are placed one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from enbloc.engine.tables.tasks import GangState, Task
from enbloc.gangs.gang_tree import Members, Vertex, choices, is_complete, leaves


class Surplus(NamedTuple):
    units: list[list[Task]]
    """Each is placed as a whole or not at all."""
    singles: list[Task]
    lacking: Mapping[str, int]
    """By role: how many members a sub-group lacks that has some, and cannot start."""


def sub_groups(gang: GangState, tasks: Sequence[Task]) -> Surplus:
    """Of pending tasks in order, which are placed together. Tasks of a sub-group that lacks members are left out."""
    tree = gang.spec.tree
    assert tree is not None, f"{gang} has no tree"
    waiting: dict[str, list[Task]] = {}
    for task in tasks:
        waiting.setdefault(task.role, []).append(task)
    members = gang.members()
    units = list(_units(tree, members, waiting))
    started = {leaf.name for leaf in leaves(tree) if is_complete(leaf, members.placed)}
    roles = {leaf.name for leaf in leaves(tree)}
    taken = {task.uid for unit in units for task in unit}
    singles = [task for task in tasks if task.uid not in taken and (task.role in started or task.role not in roles)]
    lacking = {
        leaf.name: leaf.minimum - members.exist.get(leaf.name, 0)
        for leaf in leaves(tree)
        if leaf.name in waiting and not is_complete(leaf, members.exist)
    }
    waits = {task.role for task in tasks} - started - {task.role for unit in units for task in unit}
    others = {role: 0 for role in waits if role in roles}  # complete, within a vertex that is not
    return Surplus(units, singles, lacking or others)


def _units(vertex: Vertex, members: Members, waiting: Mapping[str, Sequence[Task]]) -> Iterator[list[Task]]:
    for child in vertex.children:
        if is_complete(child, members.placed):
            yield from _units(child, members, waiting)
        elif is_complete(child, members.exist):
            minima = next(choices(child, members))
            lacking = {role: count - members.placed.get(role, 0) for role, count in minima.items()}
            yield [task for role, count in lacking.items() for task in waiting.get(role, ())[: max(count, 0)]]
