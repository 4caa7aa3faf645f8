"""The surplus of a gang with a tree (T0): sub-groups that have not started are placed as a whole, members of those that
have are placed one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.gangs.gang_tree import Members, Vertex, choices, complete, leaves


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
    started = {leaf.name for leaf in leaves(tree) if members.placed.get(leaf.name, 0) >= leaf.minimum}
    roles = {leaf.name for leaf in leaves(tree)}
    taken = {task.uid for unit in units for task in unit}
    singles = [task for task in tasks if task.uid not in taken and (task.role in started or task.role not in roles)]
    lacking = {
        leaf.name: leaf.minimum - members.exist.get(leaf.name, 0)
        for leaf in leaves(tree)
        if leaf.name in waiting and members.exist.get(leaf.name, 0) < leaf.minimum
    }
    waits = {task.role for task in tasks} - started - {task.role for unit in units for task in unit}
    others = {role: 0 for role in waits if role in roles}  # complete, within a vertex that is not
    return Surplus(units, singles, lacking or others)


def _units(tree: Vertex, members: Members, waiting: Mapping[str, Sequence[Task]]) -> Iterator[list[Task]]:
    started, exist = complete(tree, members.placed), complete(tree, members.exist)
    open_ones = [*reversed(tree.children)]
    while open_ones:
        child = open_ones.pop()
        if id(child) in started:
            open_ones.extend(reversed(child.children))
        elif id(child) in exist:
            minima = next(choices(child, members))
            lacking = {role: count - members.placed.get(role, 0) for role, count in minima.items()}
            yield [task for role, count in lacking.items() for task in waiting.get(role, ())[: max(count, 0)]]
