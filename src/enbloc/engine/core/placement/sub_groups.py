"""The surplus of a gang with a tree (T0): sub-groups that have not started are placed as a whole, members of those that
have are placed one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
    of_units = [task for unit in units for task in unit]
    minima = {leaf.name: leaf.minimum for leaf in leaves(tree)}
    started = {role for role, minimum in minima.items() if members.placed.get(role, 0) >= minimum}
    taken = {task.uid for task in of_units}
    singles = [task for task in tasks if task.uid not in taken and (task.role in started or task.role not in minima)]
    placed = started | {task.role for task in of_units}
    return Surplus(units, singles, _lacking(minima, waiting, members, placed))


def _lacking(
    minima: Mapping[str, int], waiting: Mapping[str, Sequence[Task]], members: Members, placed: Collection[str]
) -> Mapping[str, int]:
    """What sub-groups lack that wait; nothing for those that are complete, within a vertex that is not."""
    lacking = {role: minimum - members.exist.get(role, 0) for role, minimum in minima.items() if role in waiting}
    return {role: count for role, count in lacking.items() if count > 0} or {
        role: 0 for role in lacking if role not in placed
    }


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
