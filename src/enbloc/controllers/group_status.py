"""Keeps the status of a kind of PodGroup: pods are counted as they come and go, and what follows from it is written.

What that is differs by kind and is said by the module of each (`koordinator`, `coscheduling`, `kubernetes`). Volcano's
PodGroups, whose phases hang together with its Jobs, have a controller of their own (`podgroup`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from enbloc.api.meta import Obj, Ref, is_terminating, name_of, namespace_of, uid_of
from enbloc.api.writes import Patch, Refused, WatchEvent, Write
from enbloc.controllers.merge_diff import difference
from enbloc.controllers.retry import Retries, watch_tells

Key = tuple[str, str]


class Member(msgspec.Struct, frozen=True, gc=False):
    uid: str
    group: Key
    phase: str
    """As the pod's status says; `Scheduled` if it has a node and does not run yet."""
    owners: tuple[str, ...]


class Members:
    """The pods of one group that are not about to go."""

    def __init__(self) -> None:
        self.pods: dict[str, Member] = {}

    def count(self, *phases: str) -> int:
        return sum(pod.phase in phases for pod in self.pods.values())

    @property
    def owners(self) -> str:
        return ",".join(sorted({owner for pod in self.pods.values() for owner in pod.owners}))


Wanted = Callable[[Obj, Members, int], dict[str, Any]]
"""What a group's status should say: the group, its members, the time."""


class GroupStatus:
    """The controller of one kind of PodGroup."""

    def __init__(self, kind: str, group_of: Callable[[Obj], str], wanted: Wanted) -> None:
        self.kinds = frozenset({kind, "Pod"})
        self._kind = kind
        self._group_of = group_of
        self._wanted = wanted
        self._groups: dict[Key, Obj] = {}
        self._member_of: dict[Key, Member] = {}
        self._members: dict[Key, Members] = {}
        self._dirty: set[Key] = set()
        self._retries: Retries[Key] = Retries()

    def observe(self, event: WatchEvent) -> None:
        key = (namespace_of(event.obj), name_of(event.obj))
        gone = event.type == "DELETED"
        if event.kind == "Pod":
            self._observe_pod(event.obj, key, gone)
            return
        if gone:
            self._groups.pop(key, None)
            self._dirty.discard(key)
        else:
            self._groups[key] = event.obj
            self._dirty.add(key)

    def _look_at(self, key: Key) -> None:
        """Something of a group changed. A group that is not there is looked at when it comes."""
        if key in self._groups:
            self._dirty.add(key)

    def _observe_pod(self, pod: Obj, key: Key, gone: bool) -> None:
        before = self._member_of.get(key)
        if before is not None and gone and before.uid != uid_of(pod):
            return  # a namesake has come since
        if before is not None:
            del self._member_of[key]
            self._members[before.group].pods.pop(before.uid, None)
            if not self._members[before.group].pods:
                del self._members[before.group]
            self._look_at(before.group)
        group = self._group_of(pod)
        if not group or gone or is_terminating(pod):
            return
        member = self._member_of[key] = _member(pod, (key[0], group))
        self._members.setdefault(member.group, Members()).pods[member.uid] = member
        self._look_at(member.group)

    def reconcile(self, now: int) -> list[Write]:
        writes: list[Write] = []
        for key in sorted(self._dirty.union(self._retries.take_due(now))):
            group, members = self._groups.get(key), self._members.get(key) or Members()
            if group is None or is_terminating(group):
                self._retries.forget(key)
                continue
            patch = difference(group.get("status") or {}, self._wanted(group, members, now))
            if patch:
                version = group["metadata"].get("resourceVersion") or ""
                ref = Ref(self._kind, *key)
                writes.append(Patch(ref, {"status": patch}, "status", uid_of(group), version))
            else:
                self._retries.forget(key)
        self._dirty.clear()
        return writes

    def refused(self, write: Write, error: Refused, now: int) -> None:
        """A status that was out of date follows when the watch brings the newer group, any other after a while."""
        if isinstance(write, Patch) and not watch_tells(error):
            self._retries.refuse((write.ref.namespace, write.ref.name), now)

    def due(self) -> int | None:
        return self._retries.next()


def _member(pod: Obj, group: Key) -> Member:
    phase = (pod.get("status") or {}).get("phase") or "Pending"
    if phase == "Pending" and (pod.get("spec") or {}).get("nodeName"):
        phase = "Scheduled"
    owners = tuple(f"{group[0]}/{owner.get('name')}" for owner in pod["metadata"].get("ownerReferences") or ())
    return Member(uid_of(pod), group, phase, owners)
