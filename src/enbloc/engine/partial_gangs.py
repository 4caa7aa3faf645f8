"""Gangs that were satisfied, and gangs that were cut off half-way: told apart, and dealt with (G7, G11).

A gang whose decision was carried out only in part keeps the nodes it needs from others of equal or lower priority until
it is complete; if that takes too long its bound members are evicted and it starts over.
"""

from __future__ import annotations

from enbloc.engine.decisions import Evict, Marked
from enbloc.engine.follower import Follower
from enbloc.engine.placement.request import pending_tasks
from enbloc.engine.state.groups import Group, Groups
from enbloc.engine.state.state import State
from enbloc.engine.tables.commit_marks import covered_roles, covers, covers_mark, mark_of
from enbloc.engine.tables.resources import Bools
from enbloc.engine.tables.tasks import GangState, TaskStatus
from enbloc.gangs.model import ONCE_SATISFIED, GangKey


def see_satisfied(state: State, gang: GangState, group: Group | None) -> None:
    """G7: whether a mark covers its minima, or they are bound now; with no pod left it starts anew."""
    spec = gang.spec
    nowhere = gang.total_pending + gang.total_held == len(gang.tasks)  # nobody has got anywhere yet
    gang.covered = "" if nowhere else _earned(gang, group)
    covered = covers(gang.covered, spec)
    gang.satisfied = covered and spec.match_policy == ONCE_SATISFIED
    gang.ran = gang.behind = frozenset()
    if spec.waves and not covered:
        gang.ran = covered_roles(gang.covered, spec)
        left = [spec.wave_of.get(role, 0) for role in spec.minima if role not in gang.ran]
        gang.behind = frozenset(
            role for role in spec.minima if role not in gang.ran and spec.wave_of.get(role, 0) > min(left)
        )
    if gang.covered and (spec.object is not None or spec.minimum > 1 or spec.group or _has_lost_its_object(gang)):
        state.unmarked[gang.key] = gang  # unless somebody carries it


def _has_lost_its_object(gang: GangState) -> bool:
    return bool(gang.spec.problem) and any(task.mark for task in gang.tasks.values())


def _earned(gang: GangState, group: Group | None) -> str:
    """The mark of what was bound of a gang once; empty if nothing is left of it. The mark of a group is one for all its
    gangs, and minima that are bound count only if the others' are too (K7)."""
    spec = gang.spec
    bound: dict[str, int] = {}
    evidence = False
    best = gang.covered
    for task in gang.tasks.values():
        if task.status in (TaskStatus.BOUND, TaskStatus.SUCCEEDED):
            bound[task.role] = bound.get(task.role, 0) + 1
            evidence = True
        elif task.status in (TaskStatus.ASSUMED, TaskStatus.FAILED):
            evidence = True
        if task.mark and task.status is not TaskStatus.RELEASING and (not best or covers_mark(task.mark, best)):
            best = task.mark
        elif not best and group is not None and task.decision in group.committed:
            best = mark_of(gang.spec)
    if not evidence:
        return ""
    met = sum(bound.values()) >= spec.minimum and all(bound.get(role, 0) >= n for role, n in spec.minima.items())
    met = met and (group is None or len(group.keys) == 1 or group.met)
    if met or (not best and gang.status.started):  # started, and no mark: the pod with it went while nobody looked
        return mark_of(spec)
    return best


def mark_others(gang: GangState) -> list[Marked]:
    """Members that are to carry what the gang has earned: those with a mark of less, from before a minimum was raised,
    and one that lives on, or ended, if nobody carries it. So no pod that goes takes it along (G11)."""
    staying = [task for task in gang.tasks.values() if task.status is not TaskStatus.RELEASING]
    if not gang.covered:
        return []
    heirs = [task for task in staying if task.mark and not covers_mark(task.mark, gang.covered)]
    if not heirs and not any(task.mark for task in staying):
        for status in (TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED):
            found = [task for task in staying if task.status is status]
            if found:
                heirs = [min(found, key=lambda task: task.order)]
                break
    return [Marked(gang.key, heir.namespace, heir.name, heir.uid, gang.covered) for heir in heirs]


class PartialGangs(Follower):
    """The gangs that were cut off half-way."""

    def __init__(self, state: State, groups: Groups, timeout: int) -> None:
        self._state = state
        self._groups = groups
        self._timeout = timeout
        self._gangs: dict[GangKey, GangState] = {}
        self._now_ns = 0

    def __bool__(self) -> bool:
        return bool(self._gangs)

    def due(self) -> int | None:
        """When the first of them is given up."""
        since = [gang.partial_since for gang in self._gangs.values() if gang.partial_since is not None]
        return min(since) + self._timeout if since else None

    def gang_read(self, gang: GangState) -> None:
        see_satisfied(self._state, gang, self._groups.of(gang))
        self._note(gang)

    def _note(self, gang: GangState) -> None:
        """Whether it was bound by a decision of ours that was never completed."""
        partial = (
            not gang.covered
            and gang.total_occupied > 0
            and any(task.status is TaskStatus.BOUND and task.decision for task in gang.tasks.values())
            and not any(task.status is TaskStatus.ASSUMED for task in gang.tasks.values())
        )
        if not partial:
            self.release(gang)
        elif gang.partial_since is None:
            gang.partial_since = self._now_ns
            self._gangs[gang.key] = gang

    def cycle_begins(self, now_ns: int) -> None:
        """Some may be complete by now, or gone."""
        self._now_ns = now_ns
        for gang in list(self._gangs.values()):
            if self._state.gangs.get(gang.key) is not gang:
                self.release(gang)
            elif any(mate.key in self._state.dirty for mate in self._groups.mates(gang)):
                see_satisfied(self._state, gang, self._groups.of(gang))
                self._note(gang)
                self._state.events.any = self._state.events.everything = True  # it may need other nodes now

    def release(self, gang: GangState) -> None:
        """What was kept for it is anybody's again."""
        gang.partial_since = None
        if self._gangs.pop(gang.key, None) is not None:
            self._state.events.any = self._state.events.everything = True

    def closed_to(self, gang: GangState) -> Bools | None:
        """Rows that one of them needs, of equal or higher priority: not for this gang. Of two that were cut off the one
        that is first in order goes first: they do not wait for each other."""
        closed: Bools | None = None
        for other in self._gangs.values():
            mates = self._groups.mates(other)
            if any(mate is gang for mate in mates) or other.priority < gang.priority:
                continue
            if gang.partial_since is not None and _turn(gang) < _turn(other):
                continue
            for task in [task for mate in mates for task in pending_tasks(mate)]:
                standing = self._state.candidates(task.cls).passing()
                closed = standing if closed is None else closed | standing
        return closed

    def give_up(self, now: int) -> list[Evict]:
        """Their time is up: what was bound of them is evicted."""
        found = []
        for gang in list(self._gangs.values()):
            if gang.partial_since is None or now < gang.partial_since + self._timeout:
                continue
            if any(task.status is TaskStatus.ASSUMED for task in gang.tasks.values()):
                continue  # being completed in this very cycle
            message = f"gang {gang.spec.title} was bound only partially and was not completed in time"
            for task in gang.tasks.values():
                if task.status is TaskStatus.BOUND:
                    found.append(Evict(gang.key, task.namespace, task.name, task.uid, "PartialGang", message))
            self.release(gang)
        return found


def _turn(gang: GangState) -> tuple[int, int, GangKey]:
    return (-gang.priority, gang.spec.created, gang.key)
