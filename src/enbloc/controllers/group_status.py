"""The status controller of all four PodGroup kinds: counts the pods of each group and writes what follows from it.

What a group's status says differs by kind and is `GroupKind`'s: see `volcano`, `koordinator`, `coscheduling` and
`kubernetes`. The scheduler writes the same status too, so every patch carries the version that it was computed from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import msgspec

from enbloc.api.meta import Obj, Ref, is_terminating, labels_of, name_of, namespace_of, uid_of
from enbloc.api.volcano import role_of
from enbloc.api.writes import Patch, Refused, WatchEvent, Write
from enbloc.controllers.guarded import guarded
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.retry import Retries, is_superseded
from enbloc.faults import Faults

Key = tuple[str, str]
"""Namespace and name of a group or a pod."""

SCHEDULED = "Scheduled"
"""The phase of a pending pod that has a node."""
TERMINATING = "Terminating"


class GroupMember(msgspec.Struct, frozen=True, gc=False):
    """A pod as far as its group's status counts it."""

    uid: str
    group: Key
    role: str
    phase: str
    """Its status' phase, or `SCHEDULED` or `TERMINATING`."""
    owners: tuple[str, ...]
    labels: Mapping[str, str]


class GroupMembers:
    """The pods of one group by phase; terminating pods count under their own phase only."""

    def __init__(self) -> None:
        self._phases: Counter[str] = Counter()
        self._of_roles: Counter[tuple[str, str]] = Counter()
        self._owners: Counter[str] = Counter()
        self._by_uid: dict[str, GroupMember] = {}

    def add(self, member: GroupMember) -> None:
        self._by_uid[member.uid] = member
        self._phases[member.phase] += 1
        self._of_roles[member.role, member.phase] += 1
        if member.phase != TERMINATING:
            self._owners.update(member.owners)

    def remove(self, member: GroupMember) -> None:
        del self._by_uid[member.uid]
        self._phases[member.phase] -= 1
        self._of_roles[member.role, member.phase] -= 1
        if not self._of_roles[member.role, member.phase]:
            del self._of_roles[member.role, member.phase]  # pods may name ever other roles
        if member.phase != TERMINATING:
            self._owners.subtract(member.owners)

    def count(self, *phases: str) -> int:
        return sum(self._phases[phase] for phase in phases)

    def count_of(self, role: str, *phases: str) -> int:
        return sum(self._of_roles[role, phase] for phase in phases)

    def those(self, *phases: str) -> Iterator[GroupMember]:
        return (member for member in self._by_uid.values() if member.phase in phases)

    @property
    def total(self) -> int:
        return self._phases.total()

    @property
    def live(self) -> int:
        """Pods that are not terminating."""
        return self.total - self._phases[TERMINATING]

    @property
    def owners(self) -> str:
        return ",".join(sorted(owner for owner, count in self._owners.items() if count))


class GroupKind(Protocol):
    """What is particular to one kind of PodGroup."""

    @property
    def kind(self) -> str: ...

    @property
    def other_kinds(self) -> frozenset[str]:
        """Kinds besides pods on which the status depends."""
        return frozenset()

    def group_of(self, pod: Obj) -> str:
        """The name of the group that a pod belongs to; empty if to none of this kind."""
        ...

    def observe_other(self, event: WatchEvent) -> Key | None:
        """An object of `other_kinds` changed; returns the group whose status may follow."""
        return None

    def status(self, group: Obj, members: GroupMembers, now_ns: int) -> dict[str, Any]:
        """The fields that the group's status should have."""
        ...


def _says_nothing(group: Obj, patch: Obj) -> bool:
    """Whether it only adds counts of 0, which an absent count means too: not worth a write for every new group."""
    status = group.get("status") or {}
    return all(value == 0 and key not in status for key, value in patch.items())


class GroupStatus:
    """The controller of one kind of PodGroup."""

    def __init__(self, kind: GroupKind) -> None:
        self.kinds = frozenset({kind.kind, "Pod"}) | kind.other_kinds
        self._kind = kind
        self._groups: dict[Key, Obj] = {}
        self._pods: dict[Key, GroupMember] = {}
        self._members: dict[Key, GroupMembers] = {}
        self._dirty: set[Key] = set()
        self._retries: Retries[Key] = Retries()
        self.faults: Faults[str] = Faults()

    def observe(self, event: WatchEvent) -> None:
        gone = event.type == "DELETED"
        if event.kind == "Pod":
            self._observe_pod(event.obj, gone)
            return
        key = (namespace_of(event.obj), name_of(event.obj))
        if event.kind != self._kind.kind:
            self._requeue(self._kind.observe_other(event))
        elif gone:
            self._groups.pop(key, None)
            self._dirty.discard(key)
        else:
            self._groups[key] = event.obj
            self._dirty.add(key)

    def _requeue(self, key: Key | None) -> None:
        """Marks a group for the next reconcile. One that does not exist is marked when it is created."""
        if key in self._groups:
            self._dirty.add(key)

    def _observe_pod(self, pod: Obj, gone: bool) -> None:
        group = self._kind.group_of(pod)
        if not group and not self._pods:
            return  # no pod of this cluster is in a group of this kind
        key = (namespace_of(pod), name_of(pod))
        before = self._pods.get(key)
        if before is not None and gone and before.uid != uid_of(pod):
            return  # a pod of the same name was created since
        member = _member(pod, (key[0], group)) if group and not gone else None
        if member == before:
            return  # nothing of it counts, or what counts is as it was
        if before is not None:
            del self._pods[key]
            members = self._members[before.group]
            members.remove(before)
            if not members.total:
                del self._members[before.group]
            self._requeue(before.group)
        if member is None:
            return
        self._pods[key] = member
        self._members.setdefault(member.group, GroupMembers()).add(member)
        self._requeue(member.group)

    def reconcile(self, now_ns: int) -> list[Write]:
        writes: list[Write] = []
        again = set(self.faults.take_due(now_ns))
        self._dirty.update(key for key, group in self._groups.items() if again and uid_of(group) in again)
        for key in sorted(self._dirty.union(self._retries.take_due(now_ns))):
            group = self._groups.get(key)
            if group is None or is_terminating(group):
                self._retries.forget(key)
                continue
            writes += guarded(self.faults, uid_of(group), group, partial(self._status, key, group, now_ns))
        self._dirty.clear()
        return writes

    def _status(self, key: Key, group: Obj, now_ns: int) -> list[Write]:
        members = self._members.get(key) or GroupMembers()
        patch = difference(group.get("status") or {}, self._kind.status(group, members, now_ns))
        if not patch or _says_nothing(group, patch):
            self._retries.forget(key)
            return []
        version = group["metadata"].get("resourceVersion") or ""
        return [Patch(Ref(self._kind.kind, *key), {"status": patch}, "status", uid_of(group), version)]

    def refused(self, write: Write, error: Refused, now_ns: int) -> None:
        """An outdated status is computed again when the watch delivers the newer group, any other after a delay."""
        if isinstance(write, Patch) and not is_superseded(error):
            self._retries.refuse((write.ref.namespace, write.ref.name), now_ns)

    def due(self) -> int | None:
        return self._retries.next()


def _member(pod: Obj, group: Key) -> GroupMember:
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    if is_terminating(pod):
        phase = TERMINATING
    elif phase == "Pending" and (pod.get("spec") or {}).get("nodeName"):
        phase = SCHEDULED
    owners = tuple(f"{group[0]}/{owner.get('name')}" for owner in pod["metadata"].get("ownerReferences") or ())
    return GroupMember(uid_of(pod), group, role_of(pod), phase, owners, labels_of(pod))
