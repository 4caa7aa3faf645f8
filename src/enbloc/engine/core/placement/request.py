"""What an attempt is asked to place for one gang: the tasks of its minima, room for later waves, part of its surplus.

A `PlacementRequest` is computed from the gang's counts at the moment it is asked for, and passed on as a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from enbloc.engine.core.tables.commit_marks import Minima
from enbloc.engine.core.tables.need import Need, need_of
from enbloc.engine.core.tables.tasks import WAITS, GangState, Task, TaskStatus, pending_tasks
from enbloc.gangs.gang_tree import Vertex, leaves

_STARTED = frozenset({TaskStatus.ASSUMED, TaskStatus.BOUND})


class PlacementRequest(NamedTuple):
    """Placed as a whole or not at all: `needed`, `later`, and any `short` tasks of `rest` (O1, D5)."""

    gang: GangState
    needed: Sequence[Task] = ()
    """Pending tasks that the role minima still need, in the order of O2."""
    rest: Sequence[Task] = ()
    """Other pending tasks of the present wave, in the order of O2."""
    short: int = 0
    """How many tasks of `rest` the total minimum still needs."""
    later: Sequence[Task] = ()
    """Placeholders for pods of later waves (D5)."""
    choice: Minima | None = None
    """Sub-groups that are tried in place of those that count now (T0)."""

    @property
    def need(self) -> Need:
        return self.gang.need if self.choice is None else need_of(self.gang, self.choice)

    @property
    def must(self) -> list[Task]:
        """The tasks that are placed whatever else is."""
        return [*self.needed, *self.later]

    @property
    def minimum(self) -> list[Task]:
        """The tasks of the minima, taking the first of `rest` for the total."""
        return [*self.needed, *self.rest[: self.short]]

    @property
    def everything(self) -> list[Task]:
        """The tasks of the minima and of later waves."""
        return [*self.minimum, *self.later]

    @property
    def is_constrained(self) -> bool:
        """Whether its tasks must or should be together."""
        gang = self.gang
        if gang.spec.topology is not None or gang.spec.is_split:
            return True
        return gang.has_topology_of_pods and any(task.topology for task in (*self.must, *self.rest))

    def remaining(self) -> PlacementRequest:
        """The request without the tasks that were placed since it was made."""
        if not self.rest and not self.later:  # most gangs
            return self._replace(needed=[task for task in self.needed if task.status in WAITS])
        placed = sum(task.status is TaskStatus.ASSUMED for task in self.rest)
        return self._replace(
            needed=[task for task in self.needed if task.status in WAITS],
            rest=[task for task in self.rest if task.status in WAITS],
            short=max(0, self.short - placed),
            later=[task for task in self.later if task.status in WAITS],
        )


def request_of(
    gang: GangState, pending: Sequence[Task] | None = None, *, choice: Minima | None = None
) -> PlacementRequest:
    """What the present wave of a gang still needs (O1): tasks for role minima, then what the total is short of."""
    waiting = pending_tasks(gang) if pending is None else pending
    need = gang.need if choice is None else need_of(gang, choice)
    if need.others:  # without replacements for an earlier wave, and tasks of a later one
        waiting = [task for task in waiting if task.role not in need.others]
    needed, rest = _divided(gang, waiting, need)
    short = max(0, need.short_of(need.found) - len(needed))
    if short and gang.spec.tree is not None and gang.satisfied:
        short = min(short, _of_started_sub_groups(gang.spec.tree, rest, need))
    return PlacementRequest(gang, needed, rest, short, choice=choice)


def _divided(gang: GangState, waiting: Sequence[Task], need: Need) -> tuple[Sequence[Task], Sequence[Task]]:
    """Tasks that the minima of roles need, and the others."""
    lacking = {role: minimum - need.found.get(role, 0) for role, minimum in need.minima.items()}
    if len(lacking) == 1 and gang.pending.keys() == lacking.keys():  # most gangs: one role
        (lacks,) = lacking.values()
        return waiting[: max(0, lacks)], waiting[max(0, lacks) :]
    needed: list[Task] = []
    rest: list[Task] = []
    for task in waiting:
        if lacking.get(task.role, 0) > 0:
            lacking[task.role] -= 1
            needed.append(task)
        else:
            rest.append(task)
    return needed, rest


def _of_started_sub_groups(tree: Vertex, tasks: Sequence[Task], need: Need) -> int:
    """T0: a sub-group that has not started makes up no total."""
    not_started = {leaf.name for leaf in leaves(tree) if need.found.get(leaf.name, 0) < leaf.minimum}
    return sum(task.role not in not_started for task in tasks)


def surplus(gang: GangState) -> frozenset[str]:
    """UIDs of pending tasks that a gang that has not started does not need (E1); none where nothing is needed."""
    if not gang.minima.total or gang.total_found + gang.total_pending <= gang.minima.total:
        return frozenset()
    request = request_of(gang)
    return frozenset(task.uid for task in request.rest[request.short :])


def is_surplus(gang: GangState, request: PlacementRequest | None = None) -> bool:
    """G3: whether all that waits of a gang is beyond its minima. Lost members may not exist again yet: then it is,
    though a minimum is not met. `request`: what the gang still needs, if that is known."""
    if gang.need.ready or not gang.satisfied:
        return gang.need.ready
    asked = request_of(gang) if request is None else request
    return not asked.needed and not asked.short


def replacements(gang: GangState) -> list[Task]:
    """Pending tasks that replace lost members of an earlier, satisfied wave: ordinary pods now (G7, D3)."""
    if not gang.ran:
        return []
    lacking = {role: gang.minima.by_role[role] - gang.occupied.get(role, 0) for role in gang.ran}
    found: list[Task] = []
    for task in pending_tasks(gang):
        if lacking.get(task.role, 0) > 0:
            lacking[task.role] -= 1
            found.append(task)
    return found


def needed_members(gang: GangState) -> list[Task]:
    """Members with a node without which the minima would not be met, once all that they lack is placed. The others are
    surplus: the last in the order of O2."""
    if gang.only_waiting:
        return []
    found = sorted((task for task in gang.tasks.values() if task.status in _STARTED), key=attrgetter("order"))
    minima, counts = gang.minima.by_role, Counter(gang.occupied)
    counts |= Counter(minima)
    spare = counts.total() - gang.minima.total
    needed: list[Task] = []
    for task in reversed(found):
        if spare > 0 and counts[task.role] > minima.get(task.role, 0):
            counts[task.role] -= 1
            spare -= 1
        else:
            needed.append(task)
    return needed[::-1]


def waits_for(gang: GangState) -> PlacementRequest:
    """What the minima of a gang still need, replacements for earlier waves first. A wave of which pods are missing
    needs none meanwhile if an earlier one does: each is a gang of its own (D3)."""
    lost = replacements(gang)
    if lost and gang.need.missing:
        return PlacementRequest(gang, lost)
    request = request_of(gang)
    return request._replace(needed=[*lost, *request.needed]) if lost else request


def reaches_minima(gang: GangState, more: Mapping[str, int]) -> bool:
    """Whether a gang's minima would be reached with `more` tasks by role, and what earlier waves lost be replaced. Each
    wave is a gang of its own (D3): it is enough to replace that where the present one lacks pods."""
    lost = Counter(task.role for task in replacements(gang))
    if lost and (gang.need.missing or any(more.get(role, 0) < count for role, count in lost.items())):
        return all(more.get(role, 0) >= count for role, count in lost.items())
    need, counts = gang.need, dict(gang.need.found)
    for role, count in more.items():
        counts[role] = counts.get(role, 0) + count
    return need.short_of(counts) <= 0 and all(counts.get(role, 0) >= least for role, least in need.minima.items())
