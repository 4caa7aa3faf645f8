"""Units: gangs that start together or not at all (K7). Most gangs are one by themselves.

A gang names other gangs in its list. Gangs are one unit if each reaches the other along these names: a gang that is
named and does not name back, directly or through gangs that it names, is not bound to the one that names it (S1). It is
*awaited* instead: the unit that names it is attempted once it is satisfied.

Units are rebuilt only when a list changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from enbloc.engine.core.state.components import strongly_connected
from enbloc.engine.core.state.state import State
from enbloc.engine.core.tables.commit_marks import covers, covers_mark, merged
from enbloc.engine.core.tables.tasks import GangState, TaskStatus
from enbloc.engine.decisions import Complain
from enbloc.gangs.koordinator_values import DIALECT
from enbloc.gangs.model import GangKey, GangSpec
from enbloc.gangs.single_pod import SinglePod
from enbloc.listing import plural

_BOUND = frozenset({TaskStatus.BOUND, TaskStatus.SUCCEEDED})
_DIALECTS = (DIALECT, "volcano", "kubernetes")
"""In this order gangs are meant by a name that several have."""
STARTED = _BOUND | {TaskStatus.ASSUMED, TaskStatus.FAILED}


class Unit:
    """Gangs that start together: one, or several that name each other (K7). It is what is queued, attempted, held,
    reserved for and evicted for."""

    __slots__ = ("_all", "absent", "awaits", "committed", "holds", "is_alone", "keys", "met", "stands", "unsatisfied",
                 "waiting_ns")  # fmt: skip

    def __init__(
        self, keys: tuple[GangKey, ...], awaits: tuple[GangKey, ...], every: Mapping[GangKey, GangState]
    ) -> None:
        self._all = every
        self.keys = keys
        self.awaits = awaits
        """Gangs outside of it that its gangs name; some may not exist."""
        self.unsatisfied: tuple[GangKey, ...] = awaits
        """Those of them that are not satisfied."""
        self.absent = len(awaits)
        """How many of them do not exist."""
        self.is_alone = False
        """Whether it is one gang without rules about starting together (K5 to K8): most units."""
        self.holds = False
        """Whether all its gangs are NonStrict."""
        self.waiting_ns = 0
        """The longest waiting time of its gangs."""
        self.committed: frozenset[str] = frozenset()
        """Decisions that are completely bound: one of their Bindings carries the commit mark (G11)."""
        self.stands = False
        """Whether its clock stands: all that it lacks are pods that our controllers have not created yet (K8)."""
        self.met = False
        """Whether the minima of every gang are, or were once, bound."""

    @property
    def gangs(self) -> list[GangState]:
        """Those that exist."""
        return [self._all[key] for key in self.keys if key in self._all]

    def to_start(self, order: Callable[[GangState], Any]) -> list[GangState]:
        """The gangs whose minima are to be placed yet, in order."""
        return sorted((gang for gang in self.gangs if gang.starts), key=order)

    def __repr__(self) -> str:
        return f"Unit({', '.join('/'.join(key[1:]) for key in self.keys[:5])})"


class _Alone(Unit):
    """One gang without rules about starting together."""

    __slots__ = ()
    awaits = unsatisfied = ()
    absent = waiting_ns = 0
    holds = stands = met = False
    is_alone = True
    committed = frozenset()

    def __init__(self, gang: GangState, every: Mapping[GangKey, GangState]) -> None:
        self.keys, self._all = (gang.key,), every


class Units:
    """All units, by gang."""

    def __init__(self, state: State, *, isolated: bool = False) -> None:
        """`isolated`: messages in one namespace name no gang of another one."""
        self._state = state
        self._isolated = isolated
        self._of: dict[GangKey, Unit] = {}
        """The units of gangs that are not alone."""
        self._awaiting: dict[GangKey, list[Unit]] = {}
        """Gang → the units that await it."""
        self._known: dict[GangKey, tuple[GangKey, ...]] = {}
        """Gang → its list when the units were last built."""
        self._lists: dict[GangKey, tuple[GangKey, ...]] = {}
        """The same, with the gangs that are meant: a name may be one of any dialect (K1)."""
        self._names: dict[GangKey, set[GangKey]] = {}
        """Name in a list → the gangs that have it."""
        self._reported: dict[GangKey, str] = {}
        """Gang → the disagreement that was last reported of it."""
        self._forgotten = 0

    def of(self, gang: GangState) -> Unit:
        return self._of.get(gang.key) or gang.alone or self._alone(gang)

    def _alone(self, gang: GangState) -> Unit:
        gang.alone = _Alone(gang, self._state.gangs)
        return gang.alone

    def several(self) -> list[Unit]:
        """The units of two gangs or more."""
        return list({id(unit): unit for unit in self._of.values() if len(unit.keys) > 1}.values())

    def mates(self, gang: GangState) -> list[GangState]:
        """The gangs that start with a gang, itself included."""
        return self._of[gang.key].gangs if gang.key in self._of else [gang]

    def partners(self, gang: GangState) -> list[GangState]:
        """The gangs that are to start with a gang, itself included; once satisfied it replaces what it lost alone."""
        return [gang] if gang.satisfied else [mate for mate in self.mates(gang) if not mate.satisfied]

    def needed_by(self, gang: GangState) -> set[GangKey]:
        """The gangs without which a gang could not start: those that it starts with, and while it is not satisfied
        those that its unit awaits, with all that start with them."""
        unit = self.of(gang)
        found = set(unit.keys)
        for key in unit.awaits if not gang.satisfied else ():
            awaited = self._of.get(key)
            found.update(awaited.keys if awaited is not None else (key,))
        return found

    def settle(self, changed: Iterable[GangState]) -> list[Complain]:
        """Before gangs are read: brings the units up to date with the lists of their gangs."""
        changed = list(changed)
        if not changed and self._forgotten == self._state.gang_table.forgotten:
            return []
        complaints: list[Complain] = []
        if self._is_outdated(changed):
            complaints = self._rebuild()
            changed = list(self._state.dirty.values())  # includes gangs whose unit changed
        seen = {id(unit): unit for gang in changed if (unit := self._of.get(gang.key)) is not None}
        for unit in seen.values():
            before = (unit.met, unit.committed)
            self._review(unit)
            if before != (unit.met, unit.committed):  # the start of one gang counts for all
                for mate in unit.gangs:
                    self._state.touch(mate)
        if self._awaiting:
            keys = {gang.key for gang in changed}.union(*(unit.keys for unit in seen.values()))
            self._review_awaiting(keys)
        return complaints

    def _is_outdated(self, changed: Iterable[GangState]) -> bool:
        """Whether a gang is gone, or names others than when the units were built."""
        forgotten, self._forgotten = self._forgotten, self._state.gang_table.forgotten
        gone = forgotten != self._forgotten and any(key not in self._state.gangs for key in self._known)
        return gone or not all(map(self._is_known, changed))

    def _review_awaiting(self, keys: Iterable[GangKey]) -> None:
        """The units that await these gangs are read again if other gangs keep them waiting now."""
        found = {id(unit): unit for key in keys for unit in self._awaiting.get(key, ())}
        for unit in found.values():
            unsatisfied = tuple(key for key in unit.awaits if not self._is_satisfied(key))
            absent = sum(key not in self._state.gangs for key in unsatisfied)
            if (unsatisfied, absent) != (unit.unsatisfied, unit.absent):
                unit.unsatisfied, unit.absent = unsatisfied, absent
                for gang in unit.gangs:
                    self._state.touch(gang)

    def _is_satisfied(self, key: GangKey) -> bool:
        """Whether a gang exists and it, and every gang that it starts with, is or was satisfied."""
        gang, unit = self._state.gangs.get(key), self._of.get(key)
        if gang is None or gang.spec.problem:
            return False
        return unit.met if unit is not None else _has_been_met(gang)

    def _is_known(self, gang: GangState) -> bool:
        if self._names and any(gang.key not in self._names.get(name, (gang.key,)) for name in _names_of(gang.spec)):
            return False  # a list names it
        if _is_special(gang.spec) != (gang.key in self._of):
            return False  # one that a list names may have become NonStrict since
        if gang.key not in self._of and gang.key not in self._awaiting:
            return True
        return self._known.get(gang.key) == gang.spec.group

    def _find_named(self) -> None:
        """Which gangs the lists mean: a name may be that of a gang of any dialect (K1), the list's own first."""
        self._names = {name: set() for one in {id(one): one for one in self._known.values()}.values() for name in one}
        for key, gang in self._state.gangs.items() if self._names else ():
            for name in _names_of(gang.spec):
                if name in self._names:
                    self._names[name].add(key)
        lists: dict[tuple[int, str], tuple[GangKey, ...]] = {}  # equal lists stay one: they may be long
        for key, names in self._known.items():
            at = (id(names), key.dialect)
            if at not in lists:
                meant = tuple(min(self._names[name], key=_precedence(key.dialect), default=name) for name in names)
                lists[at] = names if meant == names else meant
            self._lists[key] = lists[at]

    def _rebuild(self) -> list[Complain]:
        state = self._state
        before, self._of, self._awaiting = self._of, {}, {}
        gone = {key for key in self._known if key not in state.gangs}
        self._read_lists()
        for keys, awaits in _groups_by_consent(self._lists):
            known = before.get(keys[0])
            if known is None or (known.keys, known.awaits) != (keys, awaits):
                known = Unit(keys, awaits, state.gangs)
            self._enter(known, before, anew=not gone.isdisjoint(awaits))
        for gang in self._existing(self._awaiting):
            self._known.setdefault(gang.key, gang.spec.group)
        for gang in self._existing([key for key in before if key not in self._of]):
            state.touch(gang)
        complaints: list[Complain] = []
        for unit in {id(unit): unit for unit in self._of.values()}.values():
            self._review(unit)
            complaints += self._disagreements(unit) if unit.awaits or len(unit.keys) > 1 else []
        self._review_awaiting(self._awaiting)
        return complaints

    def _existing(self, keys: Iterable[GangKey]) -> list[GangState]:
        return [self._state.gangs[key] for key in keys if key in self._state.gangs]

    def _read_lists(self) -> None:
        gangs = self._state.gangs
        self._reported = {key: message for key, message in self._reported.items() if key in gangs}
        self._known = {key: gang.spec.group for key, gang in gangs.items() if _is_special(gang.spec)}
        self._lists = {}
        self._find_named()

    def _enter(self, unit: Unit, before: Mapping[GangKey, Unit], *, anew: bool) -> None:
        """A unit is known by its gangs, which are read again if it is another one, or `anew`."""
        for key in unit.awaits:
            self._awaiting.setdefault(key, []).append(unit)
        for key in unit.keys:
            self._of[key] = unit
            if anew or before.get(key) is not unit:
                self._state.touch(self._state.gangs[key])

    def _disagreements(self, unit: Unit) -> list[Complain]:
        """Gangs whose list is not the whole unit (K7). Each is reported once."""
        found = []
        sizes: dict[int, frozenset[GangKey]] = {}
        for gang in unit.gangs:
            names = self._lists.get(gang.key, ())
            named = sizes.setdefault(id(names), frozenset(names))
            others = sorted(key for key in named if key in unit.awaits and self.is_declared(key))
            if self._isolated:  # others are named to their own namespace only (S7)
                others = [key for key in others if key.namespace == gang.key.namespace]
            if others:
                message = (
                    f"gangs of a group disagree: {gang.spec.title} names {_title(others[0])}, which does not name it"
                )
            elif len(named - set(unit.awaits)) + (gang.key not in named) != len(unit.keys):
                message = (
                    f"gangs of a group disagree: {gang.spec.title} names {plural(len(named), 'gang')}, "
                    f"and {len(unit.keys)} start together"
                )
            else:
                continue
            if self._reported.get(gang.key) != message:
                self._reported[gang.key] = message
                found.append(Complain(gang.key, message))
        return found

    def is_declared(self, key: GangKey) -> bool:
        """Whether a gang exists and what it names is known: pods may come before their PodGroup (K4)."""
        gang = self._state.gangs.get(key)
        return gang is not None and not gang.spec.problem

    def _review(self, unit: Unit) -> None:
        """Recounts a unit, once however many of its gangs changed."""
        gangs = unit.gangs
        unit.holds = all(gang.spec.holds for gang in gangs)
        unit.waiting_ns = max((gang.spec.waiting_ns for gang in gangs), default=0)
        unit.committed = frozenset(
            task.decision for gang in gangs for task in gang.tasks.values() if task.mark and task.decision
        )
        unit.met = all(map(_has_been_met, gangs))


def _names_of(spec: GangSpec) -> tuple[GangKey, ...]:
    """What lists call a gang: its Job's or its PodGroup's name, in the keys of Koordinator's dialect."""
    if spec.key.dialect == SinglePod.name:
        return ()
    own = GangKey(DIALECT, spec.key.namespace, spec.key.name)
    title = GangKey(DIALECT, *spec.title.split("/", 1))
    return (own,) if own == title else (own, title)


def _precedence(dialect: str) -> Callable[[GangKey], tuple[int, GangKey]]:
    order = (dialect, *_DIALECTS)
    return lambda key: (order.index(key.dialect) if key.dialect in order else len(order), key)


def _is_special(spec: GangSpec) -> bool:
    return bool(spec.group or spec.holds or spec.min_free_resources)


def bound_by_role(gang: GangState) -> dict[str, int]:
    bound: dict[str, int] = {}
    for task in gang.tasks.values():
        if task.status in _BOUND:
            bound[task.role] = bound.get(task.role, 0) + 1
    return bound


def minima_are_bound(gang: GangState) -> bool:
    bound, minima = bound_by_role(gang), gang.minima.by_role
    return sum(bound.values()) >= gang.minima.total and all(bound.get(role, 0) >= n for role, n in minima.items())


def mark_left(gang: GangState) -> str:
    """The commit mark of what was bound of a gang once, as its pods carry it or as it was known so far; empty if no pod
    is left that shows that it started (G11)."""
    best = gang.covered
    is_left = False
    for task in gang.tasks.values():
        is_left = is_left or task.status in STARTED
        if not task.mark or task.status is TaskStatus.RELEASING:
            continue
        if gang.spec.waves:
            best = merged(best, task.mark)  # each wave has its own; with relaxed minima none covers those before
        elif not best or covers_mark(task.mark, best):
            best = task.mark
    return best if is_left else ""


def _has_been_met(gang: GangState) -> bool:
    return covers(mark_left(gang), gang.minima) or minima_are_bound(gang)


def _title(key: GangKey) -> str:
    return f"{key.namespace}/{key.name}"


def _groups_by_consent(
    named: Mapping[GangKey, tuple[GangKey, ...]],
) -> list[tuple[tuple[GangKey, ...], tuple[GangKey, ...]]]:
    """The sets of gangs that reach each other, and what each set names outside of itself, in order."""
    lists = {id(names): names for names in named.values() if names}

    def names_of(vertex: GangKey | int) -> Sequence[GangKey | int]:
        """From a gang to its list to the gangs in it: identical lists are walked once."""
        if isinstance(vertex, int):
            return lists[vertex]
        names = named.get(vertex)
        return (id(names),) if names else ()

    vertices: list[GangKey | int] = list(named)
    found = []
    for component in strongly_connected(vertices, names_of):
        keys = {vertex for vertex in component if not isinstance(vertex, int) and vertex in named}
        own = {id(named[key]): named[key] for key in keys}
        awaits = {other for names in own.values() for other in names if other not in keys}
        if keys:
            found.append((tuple(sorted(keys)), tuple(sorted(awaits))))
    return sorted(found)
