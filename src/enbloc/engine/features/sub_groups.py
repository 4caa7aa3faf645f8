"""Gangs with sub-groups (T0): other choices of those that start together; surplus sub-groups start as a whole too,
members of those that have started one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from enbloc.engine.core.cycle import Cycle
from enbloc.engine.core.feature import Feature, Tried
from enbloc.engine.core.placement.attempt import attempt
from enbloc.engine.core.placement.constraints import Constraints
from enbloc.engine.core.placement.request import PlacementRequest, request_of
from enbloc.engine.core.spine import asked_singly, try_singly
from enbloc.engine.core.state.transaction import Transaction
from enbloc.engine.core.tables.need import choices as choices_of
from enbloc.engine.core.tables.need import members_of, need_of
from enbloc.engine.core.tables.tasks import GangState, Task
from enbloc.engine.core.why import diagnosis
from enbloc.engine.core.why.diagnosis import Diagnosis
from enbloc.gangs.gang_tree import Members, Vertex, choices, complete, leaves


class SubGroups(Feature):
    def alternatives(
        self, cycle: Cycle, gangs: Sequence[GangState], transaction: Transaction
    ) -> Iterator[list[PlacementRequest]]:
        """The next choices of sub-groups. Once members hold room the choice is made."""
        gang = gangs[0]
        if gang.spec.tree is None or gang.total_found or not cycle.units.of(gang).is_alone:
            return
        for minima in islice(choices_of(gang, gang.spec), 1, None):
            if not need_of(gang, minima).missing:
                yield [cycle.asked(gang, minima)]

    def attempt(self, cycle: Cycle, gang: GangState, constraints: Constraints, *, dry: bool) -> Tried | None:
        """Surplus. Which sub-groups start is decided when they are placed: dry, nothing is known."""
        if gang.spec.tree is None or gang.starts:
            return None
        return Tried(None if dry else _place_surplus(cycle, gang, constraints))


def _place_surplus(cycle: Cycle, gang: GangState, constraints: Constraints) -> Diagnosis | None:
    first, rest, short = asked_singly(gang)
    whole: list[Task] = []
    why: Diagnosis | None = None
    if short:
        rest = sub_groups(gang, rest).singles
    elif not (first and not gang.need.ready and request_of(gang).needed):
        whole, first, why = _place_sub_groups(cycle, gang, first, constraints)
    transaction = Transaction(cycle.state)
    failure = try_singly(cycle, gang, (first, rest, short), transaction, constraints)
    if not transaction.placed and not whole:
        return failure or why
    cycle.bind([gang], [*whole, *transaction.placed], commits=False)
    cycle.intake.queue(gang)
    return None


def _place_sub_groups(
    cycle: Cycle, gang: GangState, tasks: Sequence[Task], constraints: Constraints
) -> tuple[list[Task], list[Task], Diagnosis | None]:
    """Sub-groups beyond the chosen ones start as a whole or not at all (T0): the tasks that were placed, those that are
    placed one by one since their sub-group has started, and why the first sub-group did not fit."""
    split = sub_groups(gang, tasks)
    placed: list[Task] = []
    why: Diagnosis | None = None
    for unit in split.units:
        transaction = Transaction(cycle.state)
        failure = attempt(cycle.placer, [PlacementRequest(gang, unit)], transaction, constraints)
        placed += transaction.placed if failure is None else []
        why = why or failure
    if split.lacking and not split.units and not split.singles:
        why = diagnosis.sub_groups_lack_members(split.lacking)
    return placed, split.singles, why


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
    members = members_of(gang)
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
