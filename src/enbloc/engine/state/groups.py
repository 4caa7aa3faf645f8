"""GangGroups: gangs that start together or not at all (K7). Starting them is left to `actions.gang_groups`.

A group is the transitive closure of the lists that its gangs declare. Groups are rebuilt only when a list changes. A
gang with no list is in no group, unless it is NonStrict (K6) or has minResources to check before an attempt (K7): then
it is a group of one.
"""

from __future__ import annotations

from collections.abc import Iterable

from enbloc.engine.decisions import Complain
from enbloc.engine.state.state import State
from enbloc.engine.tables.commit_marks import covers
from enbloc.engine.tables.tasks import GangState, TaskStatus
from enbloc.gangs.model import GangKey, GangSpec

_BOUND = frozenset({TaskStatus.BOUND, TaskStatus.SUCCEEDED})


class Group:
    """Gangs that start together, including listed gangs that do not exist yet."""

    __slots__ = ("committed", "holds", "keys", "met", "note", "waiting_ns")

    def __init__(self, keys: tuple[GangKey, ...]) -> None:
        self.keys = keys
        self.holds = False
        """Whether all its gangs are NonStrict."""
        self.waiting_ns = 0
        """The longest waiting time of its gangs."""
        self.committed: frozenset[str] = frozenset()
        """Decisions that are completely bound: one of their Bindings carries the commit mark (G11)."""
        self.met = False
        """Whether the minima of every gang are, or were once, bound."""
        self.note = ""
        """Appended to the message why it waits (K12)."""

    def __repr__(self) -> str:
        return f"Group({', '.join('/'.join(key[1:]) for key in self.keys[:5])})"


class Groups:
    """All groups, by gang."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._of: dict[GangKey, Group] = {}
        self._known: dict[GangKey, tuple[GangKey, ...]] = {}
        """Gang → its list when the groups were last built."""
        self._reported: dict[GangKey, str] = {}
        """Gang → the disagreement that was last reported of it."""
        self._forgotten = 0

    def of(self, gang: GangState) -> Group | None:
        return self._of.get(gang.key)

    def gangs(self, group: Group) -> list[GangState]:
        """The gangs of a group that exist."""
        return [self._state.gangs[key] for key in group.keys if key in self._state.gangs]

    def mates(self, gang: GangState) -> list[GangState]:
        """The gangs that start with a gang, itself included."""
        group = self.of(gang)
        return self.gangs(group) if group is not None else [gang]

    def settle(self, changed: Iterable[GangState]) -> list[Complain]:
        """Before gangs are read: brings the groups up to date with the lists of their gangs."""
        complaints: list[Complain] = []
        changed = list(changed)
        if not changed and self._forgotten == self._state.forgotten:
            return complaints
        gone = self._forgotten != self._state.forgotten and any(key not in self._state.gangs for key in self._known)
        self._forgotten = self._state.forgotten
        if gone or not all(self._is_known(gang) for gang in changed):
            complaints = self._rebuild()
            changed = list(self._state.dirty.values())  # includes gangs whose group changed
        seen: set[int] = set()
        for gang in changed:
            group = self.of(gang)
            if group is not None and id(group) not in seen:
                seen.add(id(group))
                before = (group.met, group.committed)
                self._review(group)
                if before != (group.met, group.committed):  # the start of one gang counts for all
                    for mate in self.gangs(group):
                        self._state.touch(mate)
        return complaints

    def _is_known(self, gang: GangState) -> bool:
        if not _is_special(gang.spec) and gang.key not in self._of:
            return True
        return self._known.get(gang.key) == gang.spec.group

    def _rebuild(self) -> list[Complain]:
        state = self._state
        before, self._of = self._of, {}
        gone = {key for key in self._known if key not in state.gangs}
        self._reported = {key: message for key, message in self._reported.items() if key in state.gangs}
        self._known = {key: gang.spec.group for key, gang in state.gangs.items() if _is_special(gang.spec)}
        complaints: list[Complain] = []
        for keys in _transitive_groups(self._known):
            known = before.get(keys[0])
            group = known if known is not None and known.keys == keys else Group(keys)
            for key in keys:
                self._of[key] = group
                if key in state.gangs:
                    self._known.setdefault(key, state.gangs[key].spec.group)
                    if before.get(key) is not group or not gone.isdisjoint(keys):
                        state.touch(state.gangs[key])
            if len(keys) > 1:
                complaints += self._disagreements(group)
        for key in before.keys() - self._of.keys():
            if key in state.gangs:
                state.touch(state.gangs[key])
        return complaints

    def _disagreements(self, group: Group) -> list[Complain]:
        """Gangs whose list is not the whole group (K7). Each is reported once."""
        found = []
        sizes: dict[int, frozenset[GangKey]] = {}
        for gang in self.gangs(group):
            named = sizes.setdefault(id(gang.spec.group), frozenset(gang.spec.group))
            if len(named) + (gang.key not in named) == len(group.keys):
                continue
            message = (
                f"gangs of a group disagree: {gang.spec.title} names {len(named)} gangs, "
                f"and {len(group.keys)} start together"
            )
            if self._reported.get(gang.key) != message:
                self._reported[gang.key] = message
                found.append(Complain(gang.key, message))
        return found

    def _review(self, group: Group) -> None:
        """Recounts a group, once however many of its gangs changed."""
        gangs = self.gangs(group)
        group.holds = all(gang.spec.holds for gang in gangs)
        group.waiting_ns = max((gang.spec.waiting for gang in gangs), default=0)
        group.committed = frozenset(
            task.decision for gang in gangs for task in gang.tasks.values() if task.mark and task.decision
        )
        group.met = len(gangs) == len(group.keys) and all(map(_has_been_met, gangs))
        if group.met:
            group.note = ""


def _is_special(spec: GangSpec) -> bool:
    return bool(spec.group or spec.holds or spec.min_free_resources)


def _has_been_met(gang: GangState) -> bool:
    if gang.covered:
        return True
    bound: dict[str, int] = {}
    for task in gang.tasks.values():
        if task.mark and task.status is not TaskStatus.RELEASING and covers(task.mark, gang.spec):
            return True
        if task.status in _BOUND:
            bound[task.role] = bound.get(task.role, 0) + 1
    minima = gang.spec.minima
    return sum(bound.values()) >= gang.spec.minimum and all(bound.get(role, 0) >= n for role, n in minima.items())


def _transitive_groups(named: dict[GangKey, tuple[GangKey, ...]]) -> list[tuple[GangKey, ...]]:
    """Groups of gangs that list each other, directly or transitively. Identical lists are walked once."""
    parent: dict[GangKey, GangKey] = {}

    def root(key: GangKey) -> GangKey:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = key = parent[parent[key]]
        return key

    seen: set[int] = set()
    for key, others in named.items():
        root(key)
        if others and id(others) not in seen:
            seen.add(id(others))
            for other in others:
                parent[root(other)] = root(others[0])
        if others:
            parent[root(key)] = root(others[0])
    found: dict[GangKey, list[GangKey]] = {}
    for key in parent:
        found.setdefault(root(key), []).append(key)
    return sorted(tuple(sorted(keys)) for keys in found.values())
