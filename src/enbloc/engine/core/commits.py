"""Whether the minima of a gang were bound once, wave by wave, and which pods carry the mark that says so (G7, G11)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from enbloc.engine.core.feature import Feature
from enbloc.engine.core.placement.request import waits_for
from enbloc.engine.core.state.state import State
from enbloc.engine.core.state.units import STARTED, Unit, Units, bound_by_role, mark_left, minima_are_bound
from enbloc.engine.core.tables.commit_marks import covered_roles, covers, covers_mark, is_cut_off, mark_of, merged
from enbloc.engine.core.tables.need import choices
from enbloc.engine.core.tables.tasks import OCCUPIED, GangState, Task, TaskStatus, pending_tasks
from enbloc.engine.decisions import Marked
from enbloc.gangs.model import ONCE_SATISFIED

MARKED_OF_WAVES: Final = 3
"""How many pods of a gang with waves carry its whole commit mark, if as many have one at all."""


def update_satisfied(state: State, gang: GangState, unit: Unit) -> None:
    """G7: a gang is satisfied if a commit mark covers its minima, or they are bound now; without pods it is not."""
    before = (gang.covered, gang.ran, gang.behind)
    none_started = gang.total_pending + gang.total_held == len(gang.tasks)
    _choose(gang)
    gang.covered = "" if none_started else _earned_mark(gang, unit)
    _choose(gang)
    covered = covers(gang.covered, gang.minima)
    gang.satisfied = covered and gang.spec.match_policy == ONCE_SATISFIED
    gang.ran, gang.behind = (frozenset(), frozenset()) if covered or not gang.spec.waves else _other_waves(gang)
    if before != (gang.covered, gang.ran, gang.behind):
        gang.version += 1
    if gang.covered and _is_to_be_marked(gang):
        state.unmarked[gang.key] = gang  # unless a pod carries the mark


def _other_waves(gang: GangState) -> tuple[frozenset[str], frozenset[str]]:
    """The roles of waves that are satisfied, and of those after the present one (D3)."""
    waves = {role: gang.spec.wave_of.get(role, 0) for role in gang.minima.by_role}
    ran = covered_roles(gang.covered, gang.minima)
    present = min(wave for role, wave in waves.items() if role not in ran) if len(ran) < len(waves) else 0
    return ran, frozenset(role for role, wave in waves.items() if role not in ran and wave > present)


def _is_to_be_marked(gang: GangState) -> bool:
    spec = gang.spec
    lost_its_object = bool(spec.problem) and any(task.mark for task in gang.tasks.values())
    return bool(spec.object is not None or gang.minima.total > 1 or spec.group or lost_its_object)


def _choose(gang: GangState) -> None:
    """T0: of several sub-groups those that were bound once, or have started, are the ones that count."""
    if gang.spec.tree is not None:
        gang.choose(next(choices(gang, gang.spec)))


def _earned_mark(gang: GangState, unit: Unit) -> str:
    """The commit mark of what was bound of a gang once; empty if no such pod is left. A unit has one mark for all its
    gangs, and bound minima count only if those of the other gangs are bound too (K7)."""
    best = mark_left(gang)
    if not best and not any(task.status in STARTED for task in gang.tasks.values()):
        return ""
    if not best and any(task.decision in unit.committed for task in gang.tasks.values()):
        best = _mark_of_started(gang)  # the mark of the decision is on a pod of another gang
    counts = len(unit.keys) == 1 or unit.met
    if counts and minima_are_bound(gang):
        return mark_of(gang.minima)
    if not best and gang.status.started:  # its marked pod went while no scheduler ran
        return _with_bound_waves(gang, _mark_of_started(gang), counts)
    if unit.is_alone and _shows_one_was_bound(gang, best):
        return mark_of(gang.minima)  # its mark was written for another gang that the pod belonged to meanwhile
    return _with_bound_waves(gang, best, counts)


def _with_bound_waves(gang: GangState, best: str, counts: bool) -> str:
    return merged(best, _mark_of_bound_waves(gang)) if gang.spec.waves and counts else best


def _mark_of_bound_waves(gang: GangState) -> str:
    """The mark of the waves whose minima are bound now: those need no other (D3, G11)."""
    spec, minima, bound = gang.spec, gang.minima, bound_by_role(gang)
    waves: dict[int, list[str]] = {}
    for role in minima.by_role:
        waves.setdefault(spec.wave_of.get(role, 0), []).append(role)
    beside = sum(count for role, count in bound.items() if role not in minima.by_role)
    more = minima.total - sum(minima.by_role.values())  # what the total needs beyond the minima of roles
    met: set[str] = set()
    for roles in waves.values():
        if all(bound.get(role, 0) >= minima.by_role[role] for role in roles):
            met.update(roles if sum(bound.get(r, 0) - minima.by_role[r] for r in roles) + beside >= more else ())
    return mark_of(minima, minima.by_role.keys() - met) if met else ""


def _shows_one_was_bound(gang: GangState, best: str) -> bool:
    """Whether a pod that the minimum counts has started, which shows that a minimum of 1 was bound once."""
    minima = gang.minima
    if minima.total > 1 or covers(best, minima):
        return False
    counted = [task for task in gang.tasks.values() if not minima.by_role or task.role in minima.by_role]
    return any(task.status in STARTED for task in counted)


def _never_bound(gang: GangState) -> frozenset[str]:
    """Roles of waves after the last one of which a pod has started: what they need was not bound yet (D3)."""
    spec = gang.spec
    if not spec.waves:
        return frozenset()
    last = max((spec.wave_of.get(task.role, 0) for task in gang.tasks.values() if task.status in STARTED), default=0)
    return frozenset(role for role, wave in spec.wave_of.items() if wave > last)


def _wave(task: Task) -> int:
    return task.gang.spec.wave_of.get(task.role, 0)


def _mark_of_started(gang: GangState) -> str:
    """The mark that a gang had whose marked pod is gone: of the waves of which a pod has started. In the total, roles
    without a minimum of their own count no more than the pods that they have."""
    later = _never_bound(gang)
    if not later:
        return mark_of(gang.minima)
    return mark_of(gang.minima, later, sum(task.role not in later for task in gang.tasks.values()))


def _first_start(gang: GangState) -> int | None:
    """When the first of the pods that we bound began to run."""
    bound = [task for task in gang.tasks.values() if task.status in STARTED and task.decision]
    return min((task.since_ns for task in bound if task.since_ns is not None), default=None)


def has_lost_members(gang: GangState) -> bool:
    """Whether the members that existed when bound ones started are too few for the minima: others are gone since then.
    To a scheduler that starts it shows that the gang was committed: the pod with its mark went while no scheduler ran.
    A gang whose decision was cut off still has the pods that were to be bound."""
    first_ns = _first_start(gang)
    if first_ns is None:
        return False
    there = Counter(task.role for task in gang.tasks.values() if task.status in OCCUPIED or task.created_ns <= first_ns)
    later, by_role = _never_bound(gang), gang.minima.by_role
    total = gang.minima.total - sum(by_role.get(role, 0) for role in later)
    needed = {role: minimum for role, minimum in by_role.items() if role not in later}
    counted = sum(count for role, count in there.items() if role not in later)
    return counted < total or any(there[role] < minimum for role, minimum in needed.items())


def mark_others(gang: GangState) -> list[Marked]:
    """Members that get the gang's commit mark: those whose mark covers less, from before a minimum was raised, and one
    bound or finished member if none carries it. So the mark survives the deletion of a pod (G11)."""
    if not gang.covered:
        return []
    staying = [task for task in gang.tasks.values() if task.status is not TaskStatus.RELEASING]
    heirs = _with_lower_marks(gang, staying) or ([] if any(task.mark for task in staying) else _first_heir(staying))
    return [Marked(gang.key, heir.namespace, heir.name, heir.uid, gang.covered) for heir in heirs]


def _with_lower_marks(gang: GangState, staying: Sequence[Task]) -> list[Task]:
    """Of a gang with waves each wave leaves a pod with a mark, and a few of them suffice: n waves would rewrite n²/2
    pods."""
    carriers = [task for task in staying if task.mark and covers_mark(task.mark, gang.covered)]
    lower = [task for task in staying if task.mark and not covers_mark(task.mark, gang.covered)]
    if not gang.spec.waves:
        return lower
    nodes = {task.node for task in carriers}
    lower.sort(key=lambda task: (task.node in nodes, task.order))
    return lower[: max(0, MARKED_OF_WAVES - len(carriers))]


def _first_heir(staying: Sequence[Task]) -> list[Task]:
    for status in (TaskStatus.BOUND, TaskStatus.SUCCEEDED, TaskStatus.FAILED):
        found = [task for task in staying if task.status is status]
        if found:
            return [min(found, key=attrgetter("order"))]
    return []


class Commits(Feature):
    """Keeps up to date whether gangs are satisfied."""

    def __init__(self, state: State, units: Units) -> None:
        self._state = state
        self._units = units
        self._cycles = 0

    def time_passes(self, now_ns: int) -> None:
        self._cycles += 1

    def update(self, gang: GangState) -> None:
        """Before features read a gang: whether it is satisfied."""
        update_satisfied(self._state, gang, self._units.of(gang))
        if self._cycles == 1 and self._was_committed(gang):
            gang.covered = merged(gang.covered, _mark_of_started(gang))
            gang.version += 1
            update_satisfied(self._state, gang, self._units.of(gang))

    def _was_committed(self, gang: GangState) -> bool:
        """To a scheduler that starts: whether pods of its last decision are gone, among them the one with the mark. Of
        a decision that was cut off all pods exist."""
        if covers(gang.covered, gang.minima):
            return False
        if not gang.covered and has_lost_members(gang):
            return True
        started = [task for task in gang.tasks.values() if task.status in STARTED]
        last = max(map(_wave, started), default=0)
        decisions = {task.decision for task in started if _wave(task) == last}
        mates = [task for mate in self._units.mates(gang) for task in mate.tasks.values()]
        if "" in decisions or any(task.mark for task in mates if task.decision in decisions):
            return False
        return any(self._lacks_pods(gang, decision, mates) for decision in decisions)

    def _lacks_pods(self, gang: GangState, decision: str, mates: Sequence[Task]) -> bool:
        """Whether pods of a decision are gone."""
        bound = [task.uid for task in mates if task.decision == decision]
        waiting = [task.uid for task in [*waits_for(gang).minimum, *pending_tasks(gang)]]
        waiting += [task.uid for task in sorted(mates, key=attrgetter("order")) if not task.decision]
        return not is_cut_off(decision, bound, list(dict.fromkeys(waiting)))
